// Talking to the service: one place that knows about keys, lost connections and streams of events.

export interface Problem {
  status: number;
  detail: string;
  parameter?: string;
  errors?: { parameter: string; detail: string }[];
}

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** The server did not answer. */
export class Away extends Error {}

export interface Converged {
  converged: boolean;
  arm: string | null;
  error: number;
  words: string;
  leader?: string;
  at_least?: number;
  rival?: string;
  at_most?: number;
  undecided?: string[];
}

export interface Finding {
  level: "warning" | "note";
  about: string;
  arm: string | null;
  text: string;
}

export interface Glance {
  name: string;
  status: string;
  policy: string;
  trust: Trust;
  epsilon: string | null;
  created: number;
  arms: number;
  decisions: number;
  responses: number;
  leader: string | null;
  share: number | null;
  converged: Converged;
  health: Finding[];
}

export interface Overview {
  version: string;
  demo: boolean;
  experiments: Glance[];
}

export type Trust = "local" | "central" | "none";

export interface Arm {
  arm: string;
  paused: boolean;
  decisions: number;
  share: number | null;
  responses: number;
  rates: Record<"response" | "late" | "duplicate" | "missing", number | null>;
  counts: Record<"decisions" | "silent" | "used" | "apart" | "late" | "duplicate" | "refused", number>;
  estimate: { mean: number; interval: [number, number] | null; confidence: number; of: string; responses: number } | null;
}

export interface Summary {
  experiment: string;
  status: string;
  policy: string;
  mode: "live" | "shadow";
  version: number;
  decisions: number;
  responses: Record<"accepted" | "used" | "apart" | "waiting" | "late" | "duplicate" | "refused" | "missing", number>;
  arms: Arm[];
  guarantee: { epsilon: number | null; delta: number; trust: Trust; words: string; conditions?: string };
  users: { count: number; max_responses: number | null; epsilon: Record<string, string> | null };
  converged: Converged;
  health: Finding[];
}

export interface Settings {
  name: string;
  arms: string[];
  policy: string;
  epsilon: string | null;
  levels: string[] | null;
  status: string;
  created: number;
  mode: string;
  baseline: string | null;
  paused_arms: string[];
  response_window: number | null;
  max_responses_per_user: number | null;
  reward: { kind: string; low: number; high: number };
}

export interface Shares {
  arms: string[];
  step_seconds: number;
  time: number[];
  decisions: number[][];
}

export interface Release {
  release: number;
  arm: string;
  responses: number;
  closed_by: string;
  time: number;
  mean: number;
  epsilon: string;
}

export interface Ledger {
  unit: string;
  releases: number;
  worst_reward: string | null;
  entries: Release[];
}

export interface Policy {
  name: string;
  trust: Trust;
  paper: string;
  epsilon: boolean;
  levels: boolean;
  least_level: boolean;
  horizon: boolean;
  strong: boolean;
  caution: string;
}

export interface Forecast {
  policy: string;
  trust: Trust;
  epsilon: number | null;
  lost: number;
  error: number;
  loss: number | null;
  one_in_twenty: number;
  settled: number | null;
}

export interface Plan extends Forecast {
  rounds: number;
  days: number;
  runs: number;
  paid: number;
  free: Forecast | null;
  other: Forecast | null;
  curve: Forecast[];
  levels: number[] | null;
  at_random: { lost: number; loss: number | null };
  caution: string;
}

export type Connection = "ok" | "away" | "key";

let connection: Connection = "ok";
const watchers = new Set<(state: Connection) => void>();

function set(state: Connection): void {
  if (state === connection) return;
  connection = state;
  for (const watcher of watchers) watcher(state);
}

/** Call `watcher` now and whenever the connection changes; the result ends that. */
export function watch(watcher: (state: Connection) => void): () => void {
  watchers.add(watcher);
  watcher(connection);
  return () => void watchers.delete(watcher);
}

const KEY = "dpbandits-key";
let key = stored();

function stored(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage may be forbidden
  }
}

/** Use an API key, until the tab is closed. */
export function keepKey(text: string): void {
  key = text.trim();
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // it is kept in memory
  }
  set("ok");
}

/** The key in use, or nothing. */
export const currentKey = (): string | undefined => key || undefined;

async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key) headers.set("authorization", `Bearer ${key}`);
  if (init.body) headers.set("content-type", "application/json");
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers, cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    set("away");
    throw new Away("the server does not answer");
  }
  if (answer.status === 401) {
    set("key");
    throw new Away("an API key is needed");
  }
  set("ok");
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => null)) as Problem | null;
    throw new Refused(problem ?? { status: answer.status, detail: `the server answered ${answer.status}` });
  }
  return answer;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, signal ? { signal } : {})).json() as Promise<T>;
}

export async function post<T>(path: string, body?: unknown, method = "POST"): Promise<T> {
  return (await send(path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).json() as Promise<T>;
}

/** Save what an address answers as a file; a plain link could not send the key. */
export async function download(path: string, name: string): Promise<void> {
  const link = document.createElement("a");
  if (!key) {
    link.href = path;
  } else {
    link.href = URL.createObjectURL(await (await send(path)).blob());
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
  link.download = name;
  link.click();
}

export const at = (name: string, more = ""): string => `v1/experiments/${encodeURIComponent(name)}${more}`;

const SILENCE = 6000; // milliseconds without a word from the server, which says something every second
const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/**
 * Follow the summary of an experiment until the result is called. A lost connection is made again by itself.
 * However many events come, `show` is called at most once for each frame.
 */
export function follow(name: string, show: (summary: Summary) => void, gone: (problem: Problem) => void): () => void {
  const end = new AbortController();
  let latest: Summary | null = null;
  let frame = 0;
  const take = (summary: Summary): void => {
    latest = summary;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (latest && !end.signal.aborted) show(latest);
    });
  };
  void (async () => {
    for (let tries = 0; !end.signal.aborted; tries++) {
      const stream = new AbortController();
      const stop = (): void => stream.abort();
      end.signal.addEventListener("abort", stop);
      try {
        const answer = await send(at(name, "/events"), { signal: stream.signal });
        tries = 0;
        await events(answer.body!.getReader(), stop, take);
      } catch (error) {
        if (error instanceof Refused) return gone(error.problem);
      }
      if (end.signal.aborted) return;
      set(connection === "key" ? "key" : "away");
      await sleep(Math.min(500 * 2 ** tries, 4000));
    }
  })();
  return () => {
    end.abort();
    cancelAnimationFrame(frame);
  };
}

async function events(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  stop: () => void,
  take: (summary: Summary) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const silence = setTimeout(stop, SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop()!;
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "));
      if (data) take(JSON.parse(data.slice(6)) as Summary);
    }
  }
}
