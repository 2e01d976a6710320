// What clients are told, what they answer, and how they are set up.
import type { Store } from "./device.js";

/** What the server says a client must do with the reward. */
export interface CuratorBlock {
  mechanism: string;
  epsilon: string | null;
  range: readonly [number, number] | null;
  sigmoid?: boolean;
}

/** Why nothing will be sent for a decision. In the first group the arm is the server's, in the second the fallback. */
export type Silence =
  | "budget" // the user's budget does not allow another answer
  | "cap" // the server takes no more answers of this user
  | "trust" // the server asks for the reward itself, and this client may not give it
  | "curator" // the server asks for a mechanism that this client does not have
  | "late" // too much time has passed since the decision was asked for
  | "storage" // the browser keeps nothing: no answer without a place to keep it
  | "unreachable" // no answer in time, a server error, or too many requests
  | "unreadable" // the answer is not one of a dpbandits server
  | "unknown" // there is no such experiment
  | "refused" // the server refuses: a wrong key, a paused experiment, a wrong level
  | "input"; // decide was called wrongly

/** A decision. It is plain data: keep it, send it to another tab, or keep its id alone. */
export interface Decision {
  readonly id: string;
  readonly experiment: string;
  /** The arm to play: the server's, or the fallback. */
  readonly arm: string | null;
  /** null: an answer will be sent, whatever happens. Otherwise nothing will be sent, for this reason. */
  readonly silent: Silence | null;
  /** More about the reason. */
  readonly detail?: string;
  /** The HTTP status of a server that gave no decision; 0 where none answered. */
  readonly status?: number;
}

export interface DecideOptions {
  /**
   * The reward that stands for "nothing happened": 0 for clicks. It is answered when no report comes, because silence
   * would tell. There is no default: null says explicitly that nothing is sent without a report.
   */
  otherwise: number | null;
  /** The arm to play when the server gives none. */
  fallback?: string | null;
  /** Who the user is, if not as in the client's settings. The budget is that of the store, whoever the user is. */
  user?: string;
  /** This user's own epsilon, where the experiment has levels: one of them, as text. */
  level?: string;
  /** Answer this many seconds after the decision, and not near the end of the server's window. */
  after?: number;
}

/** What happens on this device, for its owner's eyes. It holds rewards: do not send it anywhere. */
export type DeviceEvent =
  | { type: "decided"; decision: Decision; curator: CuratorBlock | null; due: number | null; budget: Budget | null }
  | { type: "drawn"; id: string; reward: number; reported: boolean; response: string; budget: Budget }
  | { type: "sent"; id: string; url: string; body: string; bytes: number; attempt: number; status: string };

/** Epsilons as text: what the user will ever spend, and what is spent. */
export interface Budget {
  limit: string;
  spent: string;
}

export interface ClientSettings {
  /** Where the server is, as "https://bandits.example.org". */
  url: string;
  /** An API key with the role decide. */
  key?: string;
  /** The total epsilon that this user will ever spend, as text: "10" by default. A lower limit of an earlier visit stands. */
  limit?: string;
  /** Who the user is, where the server shall know; it stores a keyed hash. */
  user?: string;
  /** Where the budget and the answers are kept: the browser's database, if nothing else is said. */
  store?: Store;
  /** "central" lets rewards themselves go to a server that asks for them. */
  trust?: "local" | "central";
  /** Milliseconds after which a decision is the fallback. */
  timeout?: number;
  /** Is told what happens on this device. */
  observer?: (event: DeviceEvent) => void;
  /** For tests: the clock, in milliseconds, and what sends. */
  now?: () => number;
  fetch?: typeof fetch;
}
