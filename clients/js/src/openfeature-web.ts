// An OpenFeature provider for browsers: an experiment is a string flag, evaluation is a decision, tracking is the report.
import type { EvaluationContext, JsonValue, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/web-sdk";
import { Client, type Decision } from "./client.js";
import { instead, levelOf, mismatch, resolution, type ProviderSettings } from "./resolution.js";

export interface WebSettings extends ProviderSettings {
  /** The flags of this page, each with the reward that stands for "nothing happened", as 0 for clicks. */
  otherwise: Record<string, number | null>;
}

/**
 * Evaluation is synchronous in browsers, so decisions are fetched when the provider is set or the context changes. A
 * decision is charged and answered only once it is evaluated: an arm that nobody saw is not answered. It stays until
 * the page or the context changes.
 */
export class DpbanditsWebProvider implements Provider {
  readonly metadata = { name: "dpbandits" } as const;
  readonly runsOn = "client";
  readonly client: Client;
  readonly #settings: WebSettings;
  #fetched = new Map<string, Decision>();
  #shown = new Map<string, Promise<Decision>>();

  constructor(settings: WebSettings) {
    this.#settings = settings;
    this.client = new Client(settings);
  }

  async initialize(context?: EvaluationContext): Promise<void> {
    const { otherwise, after } = this.#settings;
    const fetched = new Map<string, Decision>();
    const ask = async (flag: string) => {
      const options = { otherwise: otherwise[flag]!, after, user: context?.targetingKey, level: levelOf(context) };
      fetched.set(flag, await this.client.ask(flag, options));
    };
    await Promise.all(Object.keys(otherwise).map(ask));
    this.#fetched = fetched;
    this.#shown = new Map();
  }

  onContextChange(_old: EvaluationContext, context: EvaluationContext): Promise<void> {
    return this.initialize(context);
  }

  async onClose(): Promise<void> {
    this.client.close();
  }

  resolveStringEvaluation(flag: string, value: string): ResolutionDetails<string> {
    const decision = this.#fetched.get(flag);
    if (!decision)
      return flag in this.#settings.otherwise
        ? instead(value, "PROVIDER_NOT_READY", "no decision yet")
        : instead(value, "FLAG_NOT_FOUND", `otherwise does not name the flag ${flag}`);
    if (!this.#shown.has(flag)) this.#shown.set(flag, this.client.open(decision));
    return resolution(decision, value);
  }

  resolveBooleanEvaluation = (_: string, value: boolean): ResolutionDetails<boolean> => mismatch(value);
  resolveNumberEvaluation = (_: string, value: number): ResolutionDetails<number> => mismatch(value);
  resolveObjectEvaluation = <T extends JsonValue>(_: string, value: T): ResolutionDetails<T> => mismatch(value);

  track(event: string, _context: EvaluationContext, details?: TrackingEventDetails): void {
    for (const flag of this.#settings.events?.[event] ?? [event])
      void this.#shown.get(flag)?.then((decision) => this.client.report(decision, details?.value ?? 1));
  }
}
