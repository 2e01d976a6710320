// What the two OpenFeature providers share: decisions in OpenFeature's words.
import type { ErrorCode, ResolutionDetails } from "@openfeature/core";
import type { ClientSettings, Decision, Silence } from "./client.js";

export interface ProviderSettings extends ClientSettings {
  /** The flags that a tracking event reports on: `{ checkout: ["banner"] }`. An event reports on the flag of its name. */
  events?: Record<string, string[]>;
  /** Answer this many seconds after a decision, as in `decide`. */
  after?: number;
}

// Where the arm is not the server's.
const CODES: Partial<Record<Silence, string>> = {
  unknown: "FLAG_NOT_FOUND",
  unreadable: "PARSE_ERROR",
  input: "INVALID_CONTEXT",
  storage: "GENERAL",
  unreachable: "GENERAL",
  refused: "GENERAL",
};

export const instead = <T>(value: T, errorCode: string, errorMessage: string): ResolutionDetails<T> => ({
  value,
  reason: "ERROR",
  errorCode: errorCode as ErrorCode,
  errorMessage,
});

export const mismatch = <T>(value: T): ResolutionDetails<T> =>
  instead(value, "TYPE_MISMATCH", "an experiment is a string flag: its value is the name of an arm");

/** A decision in OpenFeature's words. Over budget the arm is the server's, and there is no error. */
export function resolution({ id, arm, silent, detail = "", status }: Decision, value: string): ResolutionDetails<string> {
  const code = silent && CODES[silent];
  if (code) return instead(value, silent === "refused" && status === 422 ? "INVALID_CONTEXT" : code, `${silent}: ${detail}`);
  const metadata = { decision: id, answered: !silent, ...(silent && { silent }) };
  return { value: arm!, variant: arm!, reason: "SPLIT", flagMetadata: metadata };
}

export const levelOf = (context: Record<string, unknown> | undefined): string | undefined =>
  context?.["level"] == null ? undefined : `${context["level"]}`;
