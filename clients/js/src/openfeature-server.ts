// An OpenFeature provider for servers: the targeting key is the user, and every user has a budget of their own.
import type { EvaluationContext, JsonValue, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/server-sdk";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Client, type Decision } from "./client.js";
import { fileStore } from "./node.js";
import { instead, levelOf, mismatch, resolution, type ProviderSettings } from "./resolution.js";

export interface ServerSettings extends Omit<ProviderSettings, "store" | "user"> {
  /** Where budgets and answers are kept, in a folder for each user that is named by a hash. */
  folder: string;
  /** The reward that stands for "nothing happened", one for all flags or one for each. */
  otherwise: number | null | Record<string, number | null>;
}

/** A user of this process: the client, and the newest decision of each flag. */
interface User {
  client: Client;
  decisions: Map<string, Promise<Decision>>;
}

const MOST_USERS = 10_000;

/**
 * A user keeps an arm as long as the decision waits for its answer. Decisions and reports of a user should come to one
 * process; the budget is kept right by any number of them.
 */
export class DpbanditsProvider implements Provider {
  readonly metadata = { name: "dpbandits" } as const;
  readonly runsOn = "server";
  readonly #settings: ServerSettings;
  readonly #users = new Map<string, User>();

  constructor(settings: ServerSettings) {
    this.#settings = settings;
    new Client(settings).close(); // refuses wrong settings now, and not with the first user
  }

  /** Go on with what an earlier process has left. */
  async initialize(): Promise<void> {
    const left = await readdir(this.#settings.folder).catch(() => []);
    for (const name of left.slice(0, MOST_USERS)) if (/^[0-9a-f]{64}$/.test(name)) this.#user(name);
  }

  async onClose(): Promise<void> {
    for (const { client } of this.#users.values()) client.close();
    this.#users.clear();
  }

  #user(name: string): User {
    const { folder } = this.#settings;
    const user = this.#users.get(name) ?? {
      client: new Client({ ...this.#settings, store: fileStore(join(folder, name)) }),
      decisions: new Map(),
    };
    this.#users.delete(name); // the one that was used last is at the end
    this.#users.set(name, user);
    for (const [oldest, { client }] of this.#users) {
      if (this.#users.size <= MOST_USERS) break;
      client.close();
      this.#users.delete(oldest);
    }
    return user;
  }

  async resolveStringEvaluation(flag: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>> {
    const { targetingKey } = context;
    if (!targetingKey) return instead(value, "TARGETING_KEY_MISSING", "the targeting key is the user");
    const { otherwise, after } = this.#settings;
    const several = otherwise !== null && typeof otherwise === "object";
    if (several && !(flag in otherwise)) return instead(value, "FLAG_NOT_FOUND", `otherwise does not name the flag ${flag}`);
    const { client, decisions } = this.#user(hashed(targetingKey));
    const before = decisions.get(flag);
    const decide = async (): Promise<Decision> => {
      const last = await before; // evaluations at once are one decision
      if (last && (await client.waits(last))) return last;
      const options = { otherwise: several ? otherwise[flag]! : otherwise, after, fallback: value, user: targetingKey, level: levelOf(context) };
      return client.decide(flag, options);
    };
    const decision = decide();
    decisions.set(flag, decision);
    return resolution(await decision, value);
  }

  resolveBooleanEvaluation = async (_: string, value: boolean): Promise<ResolutionDetails<boolean>> => mismatch(value);
  resolveNumberEvaluation = async (_: string, value: number): Promise<ResolutionDetails<number>> => mismatch(value);
  resolveObjectEvaluation = async <T extends JsonValue>(_: string, value: T): Promise<ResolutionDetails<T>> => mismatch(value);

  track(event: string, { targetingKey }: EvaluationContext, details?: TrackingEventDetails): void {
    if (!targetingKey) return;
    const { client, decisions } = this.#user(hashed(targetingKey));
    for (const flag of this.#settings.events?.[event] ?? [event])
      void decisions.get(flag)?.then((decision) => client.report(decision, details?.value ?? 1));
  }
}

const hashed = (user: string): string => createHash("sha256").update(user).digest("hex");
