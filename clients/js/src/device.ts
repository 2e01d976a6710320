// Differentially private responses on a user's device. The mathematics, constants and bytes are those of the Python
// package (dpbandits.exact and dpbandits.client), which explains them. Both are tested with clients/vectors.json.

/** A rational in lowest terms: numerator, denominator. */
export type Rational = readonly [bigint, bigint];

function fail(text: string): never {
  throw new RangeError(text);
}

/** A source of random bits, called with the number of 64-bit words. */
export type Entropy = (words: number) => BigUint64Array;

/**
 * Makes one private response from one reward. Call `respond` only once for each reward: every call costs epsilon. No
 * reward makes it throw: the silence would tell. What is not a number is answered like NaN, as the lowest reward.
 */
export interface Curator {
  /** The level, as "1/10": pure epsilon-privacy of the reward, delta 0. */
  readonly epsilon: string;
  respond(reward: number): number | bigint;
}

// Taken when this module is loaded: what a page puts in its place afterwards is not used.
const random = crypto.getRandomValues.bind(crypto);
const system: Entropy = (words) => random(new BigUint64Array(words));

const divisor = (a: bigint, b: bigint): bigint => (b ? divisor(b, a % b) : a);

const lowest = (n: bigint, d: bigint): Rational => [n / divisor(n, d), d / divisor(n, d)];

/** A rational as text, "1/10". */
export const write = ([n, d]: Rational): string => (d > 1n ? `${n}/${d}` : `${n}`);

/** The rational in a text. What is none must not be read as 0: in a damaged store nothing would have been spent. */
export function read(text: unknown, message = "store is damaged"): Rational {
  const [all, whole, digits = "", below] = /^(\d+)(?:\.(\d+)|\/(\d*[1-9]\d*))?$/.exec(text as string) ?? fail(message);
  if (all !== text) fail(message);
  return lowest(BigInt(whole + digits), below ? BigInt(below) : 10n ** BigInt(digits.length));
}

/** "0.1" or "1/3" as an exact positive rational. Numbers are refused: pass the text of the exact value. */
export function rational(name: string, text: string): Rational {
  const message = `${name} must be positive, as a decimal number or a fraction such as "0.1" or "1/3", got '${text}'`;
  const value = read(text?.length <= 200 && text, message);
  if (!value[0] || write(value).length > 200) fail(message);
  return value;
}

// Integers low <= 2^bits e^-x <= high: the Taylor series of e^-(x / 2^k), then k squarings. Every step rounds outwards.
function encloseExp([n, d]: Rational, bits: bigint): Rational {
  const squarings = BigInt(8 + (n / d).toString(2).length);
  const precision = bits + squarings + 16n;
  const y = (n << precision) / (d << squarings);
  let term = 1n << precision;
  let total = term;
  let i = 0n;
  while (term) {
    term = ((term * y) >> precision) / ++i;
    total += i & 1n ? -term : term;
  }
  let low = total - 2n * i - 2n;
  let high = total + 2n * i + 2n;
  for (let k = squarings; k; k--) {
    low = (low * low) >> precision;
    high = -((-high * high) >> precision);
  }
  return [low >> (precision - bits), -(-high >> (precision - bits))];
}

/** The k-th 64 binary digits of a probability. */
export type Probability = (k: number) => bigint;

// The digits of e^-x, or of a / (a + b e^x). The precision grows until the digits are certain (Ziv's loop).
function probability(x: Rational, [a, b] = [0n, 1n]): Probability {
  let words: bigint[] = [];
  return (k) => {
    for (let guard = 32n; words.length <= k; guard *= 2n) {
      const bits = 64n * BigInt(k + 1) + guard;
      let [low, high] = encloseExp(x, bits);
      if (a) {
        low = ((a * low) << bits) / ((b << bits) + a * low);
        high = ((a * high) << bits) / ((b << bits) + a * high) + 1n;
      }
      if (low >> guard === high >> guard)
        words = Array.from({ length: k + 1 }, (_, j) => BigInt.asUintN(64, low >> (guard + 64n * BigInt(k - j))));
    }
    return words[k]!;
  };
}

/** 1 / (1 + e^x): the probability that randomised response at epsilon x answers falsely. */
export const logistic = (x: Rational): Probability => probability(x, [1n, 1n]);

/** e^-x. */
export const exponential = (x: Rational): Probability => probability(x);

// True with exactly the probability p. The first k words of p have been compared, and were equal to the random ones.
function draw(p: Probability, entropy: Entropy, k = 0): boolean {
  for (; ; k++) {
    const uniform = entropy(1)[0]!;
    if (uniform !== p(k)) return uniform < p(k);
  }
}

/** Whatever is not a number is NaN, as in Python: null, empty texts and lists among it, which Number takes for 0. */
export function real(reward: any): number {
  try {
    const value = reward.valueOf();
    return typeof value === "object" || !`${value}`.trim() ? NaN : Number(value);
  } catch {
    return NaN;
  }
}

// The reward clamped to [0, 1], rounded to the nearest multiple of 2^-bits, in that unit. NaN becomes 0.
const onGrid = (reward: number, bits: number): bigint =>
  BigInt(Math.floor((reward > 0 ? Math.min(reward, 1) : 0) * 2 ** bits + 0.5));

type Respond = (reward: number) => number | bigint;

// The level for which each of our curators was made, by its function: a copy of a curator cannot have another one.
const levels = new WeakMap<Respond, string>();

function made(level: Rational, from: Respond): Curator {
  const epsilon = write(level);
  const respond: Respond = (reward) => from(real(reward));
  levels.set(respond, epsilon);
  return Object.freeze({ epsilon, respond });
}

function levelOf({ epsilon, respond }: Curator): Rational {
  const level = rational("epsilon", epsilon);
  const own = levels.get(respond);
  if (own && own !== write(level)) fail(`epsilon must be ${own}, which the curator was made for, got ${epsilon}`);
  return level;
}

/** Keeps a reward of 0 or 1 with probability e^epsilon / (1 + e^epsilon). `entropy` is for tests only. */
export function randomisedResponse(epsilon: string, entropy = system): Curator {
  const level = rational("epsilon", epsilon);
  const lie = logistic(level);
  return made(level, (reward) => +(reward >= 0.5 !== draw(lie, entropy)));
}

/** Convert-to-Bernoulli: a reward in [0, 1] becomes one private bit. `entropy` is for tests only. */
export function bernoulliCurator(epsilon: string, entropy = system): Curator {
  const within = randomisedResponse(epsilon, entropy);
  return made(levelOf(within), (reward) => within.respond(+(entropy(1)[0]! >> 16n < onGrid(reward, 48))));
}

/** The Laplace curator: the reward in units of 2^-16, plus discrete Laplace noise. `entropy` is for tests only. */
export function laplaceCurator(epsilon: string, entropy = system): Curator {
  const level = rational("epsilon", epsilon);
  const scale = level[1] << 16n;
  let bits = 0n;
  while (level[0] << bits < 45n * scale) bits++;
  const coins = [exponential([level[0] << bits, scale])];
  for (let i = bits; i--; ) coins.push(logistic([level[0] << i, scale]));
  const both = [...coins, ...coins];
  const extend = (geometric: bigint): bigint => {
    while (geometric >> bits && draw(coins[0]!, entropy)) geometric += 1n << bits;
    return geometric;
  };
  return made(level, (reward) => {
    const uniforms = entropy(both.length);
    let drawn = 0n;
    both.forEach((coin, i) => {
      drawn += drawn + BigInt(uniforms[i] === coin(0) ? draw(coin, entropy, 1) : uniforms[i]! < coin(0));
    });
    return onGrid(reward, 16) + extend(drawn >> (bits + 1n)) - extend(BigInt.asUintN(coins.length, drawn));
  });
}

/** The piecewise mechanism on integers: for rewards that are not just 0 or 1. `entropy` is for tests only. */
export function piecewiseCurator(epsilon: string, entropy = system): Curator {
  const level = rational("epsilon", epsilon);
  const width = exponential([level[0], 2n * level[1]])(0) >> 48n || 1n;
  const outside = probability(level, [65536n, width]);
  return made(level, (reward) => {
    const value = onGrid(reward, 16);
    const [first, second, third] = entropy(3) as unknown as [bigint, bigint, bigint];
    const out = first === outside(0) ? draw(outside, entropy, 1) : first < outside(0);
    let digits = second;
    let bits = 64n;
    for (; (digits * width) >> bits !== ((digits + 1n) * width - 1n) >> bits; bits += 64n)
      digits = (digits << 64n) | entropy(1)[0]!;
    const there = third >> 48n;
    return out ? there + (there < value ? 0n : width) : value + ((digits * width) >> bits);
  });
}

/** Applies the logistic function to any real reward, and then the given curator. */
export const sigmoidCurator = (within: Curator): Curator =>
  made(levelOf(within), (reward) => within.respond((1 + Math.tanh(reward / 2)) / 2));

/** Keeps one text. `update` is atomic, and resolves to the new text once it would survive a crash. */
export interface Store {
  update(change: (state: string | undefined) => string): Promise<string>;
}

/**
 * A store in the browser's database. Every update opens it, so that neither a failed attempt nor a connection that the
 * browser has closed stays in the way, and no tab keeps another waiting.
 */
export const indexedDBStore = (name: string): Store => ({
  update: async (change) => {
    const request = indexedDB.open(name);
    request.onupgradeneeded = () => request.result.createObjectStore(name);
    await new Promise((resolve, reject) => {
      request.onsuccess = resolve;
      request.onerror = () => reject(request.error);
    });
    const transaction = request.result.transaction(name, "readwrite", { durability: "strict" });
    request.result.close(); // when the transaction is over
    const store = transaction.objectStore(name);
    const old = store.get(name);
    let state: string;
    await new Promise((resolve, reject) => {
      old.onsuccess = () => {
        try {
          store.put((state = change(old.result)), name);
        } catch (error) {
          reject(error);
          transaction.abort();
        }
      };
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    return state!;
  },
});

/** Whether one rational is at most another. */
export const atMost = ([a, b]: Rational, [c, d]: Rational): boolean => a * d <= c * b;

/** The sum of two rationals. */
export const add = ([a, b]: Rational, [c, d]: Rational): Rational => lowest(a * d + c * b, b * d);

/** A response would cost more than is left of the budget. */
export class BudgetError extends RangeError {}

/** What a store keeps of one user. */
export interface State {
  limit: string;
  spent: string;
  // The key is a dot and the decision. The value is what was charged, and the response once it is made.
  made: Record<string, [string, string?]>;
}

/** The bytes of a response that leaves the device. */
export const encode = (decision: string, epsilon: string, response: number | bigint): string =>
  /^-?\d+$/.test(`${response}`)
    ? `{"decision":"${decision}","epsilon":"${epsilon}","response":${response}}`
    : fail("response must be whole");

/**
 * One atomic change of what is kept. What does not add up is refused. A limit above the one that was promised before is
 * refused, or, with `lower`, does not count.
 */
export async function transact<S extends State>(
  store: Store,
  most: Rational,
  change: (state: S) => void,
  lower?: boolean,
): Promise<S> {
  const limit = write(most);
  let state: S;
  await store.update((old) => {
    state = JSON.parse(old ?? `{"limit":"${limit}","spent":"0","made":{}}`);
    let spent: Rational = [0n, 1n];
    for (const key in state.made) spent = add(spent, read(state.made[key]![0]));
    read(state.spent === write(spent) && "0");
    if (atMost(most, read(state.limit))) state.limit = limit;
    else lower || fail(`limit must be at most ${state.limit}, which was promised before, got ${limit}`);
    change(state);
    return JSON.stringify(state);
  });
  return state!;
}

/** Charge another response at this level, or refuse it. */
export function charge(state: State, level: Rational): [string] {
  const total = add(read(state.spent), level);
  if (!atMost(total, read(state.limit)))
    throw new BudgetError(`epsilon must fit in ${state.limit}, of which ${state.spent} is spent, got ${write(level)}`);
  state.spent = write(total);
  return [write(level)];
}

/** One user's device: makes the response to a decision once, and returns the same text afterwards. */
export class Device {
  readonly #update: (change: (state: State) => void) => Promise<State>;

  /** `limit` is the total epsilon that the user will ever spend. The store keeps it, and it can only be lowered. */
  constructor(store: Store, limit: string) {
    const most = rational("limit", limit);
    this.#update = (change) => transact(store, most, change);
  }

  /** The limit, and what has been spent. */
  async budget(): Promise<{ limit: string; spent: string }> {
    const { limit, spent } = await this.#update(() => {});
    return { limit, spent };
  }

  /**
   * The text to send for a decision. Fix the decision and the curator's epsilon before the reward is known. The order
   * of the steps matters: charge the budget, draw, keep the response, and only then return it.
   */
  async respond(decision: string, reward: number, curator: Curator): Promise<string> {
    if (typeof decision !== "string") fail(`decision must be text, got a ${typeof decision}`); // it may be the reward
    if (!/^[\w.:=~-]{1,200}$/.test(decision))
      fail(`decision must be 1 to 200 letters, digits or ._:=~- signs, got '${decision}'`);
    const key = "." + decision;
    const level = levelOf(curator);
    const epsilon = write(level);
    let { made } = await this.#update((state) => {
      const [charged, response] = (state.made[key] ??= charge(state, level));
      if (!response && charged !== epsilon)
        fail(`epsilon must be ${charged}, which ${decision} was charged, got ${epsilon}`);
    });
    if (!made[key]![1]) {
      const response = encode(decision, epsilon, curator.respond(reward));
      ({ made } = await this.#update(({ made }) => {
        made[key]![1] ??= response;
      }));
    }
    return made[key]![1]!;
  }
}
