// A client of a dpbandits server: decisions, and private answers to them. The noise is drawn on this device, in
// `report`, before anything leaves. Nothing here throws into the page that uses it.
import { add, BudgetError, charge, encode, indexedDBStore, rational, read, real, transact, write, type Rational, type State, type Store } from "./device.js";
import { plain, responder } from "./responder.js";
import type { Budget, ClientSettings, CuratorBlock, DecideOptions, Decision, DeviceEvent, Silence } from "./types.js";

export { indexedDBStore, responder, type Store };
export type * from "./types.js";

/** A store that forgets with the page, for tests and simulations: a budget for life it is not. */
export function memoryStore(): Store {
  let kept: string | undefined;
  return { update: async (change) => (kept = change(kept)) };
}

// A decision that was asked for, until it is opened: what an answer needs.
interface Offer {
  token: string;
  curator: CuratorBlock;
  otherwise: number | null;
  asked: number;
  within: number; // milliseconds from the request to the end of the server's window
  after: number | undefined;
}

// A decision that waits for its answer, as it is kept: everything is fixed before the reward is known.
interface Open {
  token: string;
  curator: CuratorBlock;
  otherwise: number | null;
  next: number; // when to send, by this device's clock
  most: number; // the longest time to wait for that, whatever the clock says
  tries: number;
}

interface Kept extends State {
  open?: Record<string, Open>;
}

const FINAL = ["accepted", "duplicate", "conflict", "late", "unknown", "invalid"];
const PATIENCE = 10_000; // milliseconds for an answer of the server to a response
const LEASE = 15_000; // no other tab sends the same answer meanwhile
const HOUR = 3_600_000;

const chance = (): number => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;

const detailOf = (problem: unknown): string => `${(problem as Error)?.message ?? problem}`;

/**
 * A client for one user. `decide` and `report` never reject. Every decision is answered at a time that is fixed with the
 * decision, whether something was reported or not.
 */
export class Client {
  readonly #settings: ClientSettings;
  readonly #store: Store;
  readonly #limit: Rational;
  readonly #url: string;
  readonly #offers = new WeakMap<Decision, Offer>();
  readonly #heard = new Map<string, unknown>(); // reports that could not be kept yet
  readonly #online = () => void this.flush(true);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wakes = Infinity; // when the timer ends
  #working: Promise<void> | undefined;
  #closed = false;

  constructor(settings: ClientSettings) {
    this.#limit = rational("limit", settings.limit ?? "10");
    if (!/^https?:\/\/[^/]/.test(settings.url)) throw new RangeError(`url must begin with http:// or https://, got '${settings.url}'`);
    this.#settings = settings;
    this.#url = settings.url.replace(/\/+$/, "");
    this.#store = settings.store ?? indexedDBStore("dpbandits");
    globalThis.addEventListener?.("online", this.#online);
    void this.flush(); // what an earlier visit has left
  }

  #now(): number {
    return (this.#settings.now ?? Date.now)();
  }

  #change(change: (state: Kept) => void): Promise<Kept> {
    return transact<Kept>(this.#store, this.#limit, change, true);
  }

  #tell(event: DeviceEvent): void {
    try {
      this.#settings.observer?.(event);
    } catch {
      // an observer must not change what happens
    }
  }

  async #post(path: string, body: string, timeout: number): Promise<[number, any?]> {
    try {
      const { key, fetch: send = fetch } = this.#settings;
      const answer = await send(this.#url + path, {
        method: "POST",
        body,
        headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) },
        signal: AbortSignal.timeout(timeout),
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      return [answer.status, await answer.json().catch(() => null)];
    } catch {
      return [0];
    }
  }

  // A change that the page waits for: some browsers leave a database that they do not allow unanswered for ever.
  #soon(change: (state: Kept) => void): Promise<Kept> {
    return new Promise((resolve, reject) => {
      let over = false;
      const timer = setTimeout(() => {
        over = true;
        reject(new Error("storage does not answer"));
      }, 5000);
      this.#change((state) => {
        if (over) throw new Error("too late");
        change(state);
      })
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  /** What is left to spend, or null where nothing can be kept. */
  async budget(): Promise<Budget | null> {
    try {
      const { limit, spent } = await this.#soon(() => {});
      return { limit, spent };
    } catch {
      return null;
    }
  }

  /** A decision, which will be answered: `ask` and `open` at once. */
  async decide(experiment: string, options: DecideOptions): Promise<Decision> {
    return this.open(await this.ask(experiment, options));
  }

  /** A decision that is not shown yet: it is answered only once it is opened. */
  async ask(experiment: string, options: DecideOptions): Promise<Decision> {
    const { otherwise, fallback = null, user = this.#settings.user, level, after } = options ?? {};
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const instead = (silent: Silence, detail: string): Decision => ({ id, experiment, arm: fallback, silent, detail });
    try {
      if (otherwise !== null && !Number.isFinite(otherwise))
        return instead("input", `otherwise must be the reward for "nothing happened", or null, got ${otherwise}`);
      if (after !== undefined && !(after > 0)) return instead("input", `after must be positive seconds, got ${after}`);
      const asked = this.#now();
      try {
        await this.#soon(() => {});
      } catch (problem) {
        return instead("storage", detailOf(problem));
      }
      const { timeout = 2000, trust } = this.#settings;
      const path = `/v1/experiments/${encodeURIComponent(experiment)}/decisions`;
      const [status, answer] = await this.#post(path, JSON.stringify({ decision: id, user, level }), timeout);
      const detail = `${status} ${answer?.detail ?? ""}`;
      const without = (silent: Silence): Decision => ({ ...instead(silent, detail), status });
      if (!status || status >= 500 || status === 429) return without("unreachable");
      if (status === 404) return without("unknown");
      if (status !== 200) return without("refused");
      const { arm, token, curator } = answer ?? {};
      if (answer?.decision !== id || typeof arm !== "string") return instead("unreadable", "not a decision");
      const silently = (silent: Silence): Decision => ({ id, experiment, arm, silent });
      if (!curator || typeof token !== "string") return silently("cap");
      const central = curator.mechanism === "none";
      if (central && trust !== "central") return silently("trust");
      try {
        central ? read(curator.epsilon ?? "0") : responder(curator);
      } catch {
        return silently("curator");
      }
      const decision: Decision = { id, experiment, arm, silent: null };
      const within = curator.respond_within == null ? Infinity : 1000 * curator.respond_within;
      this.#offers.set(decision, { token, curator, otherwise, asked, within, after });
      return decision;
    } catch (problem) {
      return instead("unreadable", detailOf(problem));
    }
  }

  /** Begin to wait for the reward of a decision that is now shown: charge the budget, and keep when to answer. */
  async open(decision: Decision): Promise<Decision> {
    const offer = this.#offers.get(decision);
    this.#offers.delete(decision);
    let due: number | null = null;
    let result = decision;
    if (offer)
      try {
        const { token, curator, otherwise, asked, within, after } = offer;
        const now = this.#now();
        const latest = asked + within * (0.85 + 0.1 * chance());
        const next = after || within === Infinity ? Math.min(now + 1000 * (after ?? 60) * (1 + chance() / 10), latest) : latest;
        if (next > now) {
          await this.#soon((state) => {
            const key = "." + decision.id;
            state.made[key] = charge(state, read(curator.epsilon ?? "0"));
            (state.open ??= {})[key] = { token, curator, otherwise, next, most: next - now, tries: 0 };
          });
          this.#wake((due = next) - now);
        } else result = { ...decision, silent: "late" };
      } catch (problem) {
        result = { ...decision, silent: problem instanceof BudgetError ? "budget" : "storage", detail: detailOf(problem) };
      }
    if (this.#settings.observer) {
      const budget = await this.budget();
      this.#tell({ type: "decided", decision: result, curator: offer?.curator ?? null, due, budget });
    }
    return result;
  }

  /**
   * What happened. The answer is drawn and kept now, and sent when it is due. True: it stands. False: an answer was
   * already made, or none is awaited. A report that cannot be kept is tried again when the answer is due.
   */
  async report(decision: Decision | string, reward: unknown): Promise<boolean> {
    try {
      const id = typeof decision === "string" ? decision : !decision.silent && decision.id;
      const key = "." + id;
      if (!id) return false;
      this.#heard.set(key, reward);
      let drew = false;
      const state = await this.#soon((state) => {
        drew = this.#draw(state, key, reward);
      });
      this.#heard.delete(key);
      if (drew) this.#drawn(state, key, reward, true);
      return drew;
    } catch {
      return false;
    }
  }

  // Make the answer to an open decision, unless there is one. This is part of a transaction: nobody sees it before it is kept.
  #draw(state: Kept, key: string, reward: unknown): boolean {
    const open = state.open?.[key];
    const made = state.made[key];
    if (!open || !made || made[1]) return false;
    const { curator } = open;
    if (this.#distrusts(open)) throw new RangeError("trust must be central");
    const [epsilon] = made; // what was charged is the level of the noise
    made[1] =
      curator.mechanism === "none"
        ? `${plain(reward, curator.range)}`
        : encode(key.slice(1), epsilon, responder({ ...curator, epsilon })(reward));
    return true;
  }

  // Whether this is for a reward that this client may not give, although an earlier one with the same store could.
  #distrusts({ curator }: Open): boolean {
    return curator.mechanism === "none" && this.#settings.trust !== "central";
  }

  #drawn({ made, spent, limit }: Kept, key: string, reward: unknown, reported: boolean): void {
    this.#tell({ type: "drawn", id: key.slice(1), reward: real(reward), reported, response: made[key]![1]!, budget: { limit, spent } });
  }

  /** Whether a decision still waits: its answer is not due yet. */
  async waits(decision: Decision): Promise<boolean> {
    try {
      const open = (await this.#soon(() => {})).open?.["." + decision.id];
      return !!open && !open.tries && open.next > this.#now();
    } catch {
      return false;
    }
  }

  /** Send what is due. It happens by itself; with `now`, what failed before is tried again at once. */
  flush(now = false): Promise<void> {
    return (this.#working ??= this.#work(now).finally(() => {
      this.#working = undefined;
    }));
  }

  /** Stop sending. What is kept is sent by the next client with the same store. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#online);
  }

  #wake(wait: number): void {
    const at = Date.now() + Math.min(Math.max(wait, 0), HOUR);
    if (this.#closed || at >= this.#wakes) return;
    clearTimeout(this.#timer);
    this.#wakes = at;
    this.#timer = setTimeout(() => {
      this.#wakes = Infinity;
      void this.flush();
    }, at - Date.now());
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #work(again: boolean): Promise<void> {
    let wait = HOUR;
    try {
      const due: string[] = [];
      const done: string[] = [];
      const drawn: [string, unknown, boolean][] = [];
      const state = await this.#change((state) => {
        const now = this.#now();
        due.length = drawn.length = 0; // a store may try a change again
        for (const key in state.open) {
          const open = state.open[key]!;
          open.next = Math.min(open.next, now + open.most); // the clock may have been set back
          if (open.next > now && !(again && open.tries)) continue;
          const reported = this.#heard.has(key);
          const reward = reported ? this.#heard.get(key) : open.otherwise;
          if (this.#distrusts(open) || (!state.made[key]?.[1] && reward === null && !reported)) {
            forget(state, key);
            continue;
          }
          try {
            if (this.#draw(state, key, reward)) drawn.push([key, reward, reported]);
          } catch {
            forget(state, key); // what is kept of it is damaged
            continue;
          }
          due.push(key);
          open.most = Math.min(LEASE * 2 ** Math.min(open.tries++, 9), HOUR) * (1 + chance());
          open.next = now + open.most;
        }
      });
      for (const [key, reward, reported] of drawn) {
        this.#heard.delete(key);
        this.#drawn(state, key, reward, reported);
      }
      for (const key of due) {
        const status = await this.#send(key, state);
        if (FINAL.includes(status)) done.push(key);
        if (status === "unreachable") break; // the others are tried again with it
      }
      const left = await this.#change((state) => done.forEach((key) => forget(state, key)));
      for (const key in left.open) wait = Math.min(wait, left.open[key]!.next - this.#now());
    } catch {
      wait = LEASE; // nothing can be kept now, so nothing is drawn and nothing is sent
    }
    this.#wake(wait);
  }

  // The same bytes every time. What the server says became of them.
  async #send(key: string, { open, made }: Kept): Promise<string> {
    const { token, curator, tries } = open![key]!;
    const central = curator.mechanism === "none";
    const body = `{"token":${JSON.stringify(token)},"${central ? "reward" : "response"}":${made[key]![1]}}`;
    const path = central ? "/v1/rewards" : "/v1/responses";
    const [code, answer] = await this.#post(path, body, PATIENCE);
    const status = FINAL.includes(answer?.status) ? answer.status : `${code || "unreachable"}`;
    this.#tell({ type: "sent", id: key.slice(1), url: this.#url + path, body, bytes: body.length, attempt: tries, status });
    return status;
  }
}

// An answer that the server has: only what it cost is kept.
function forget(state: Kept, key: string): void {
  const past = state.made[""]?.[0] ?? "0";
  const [cost] = state.made[key] ?? ["0"];
  state.made[""] = [write(add(read(past), read(cost)))];
  delete state.made[key];
  delete state.open?.[key];
}
