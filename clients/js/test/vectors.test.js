// The vectors that every client reads: the same words, and the same responses to the same random bits.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as dpbandits from "dpbandits";
import { responder } from "dpbandits/client";

const vectors = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));
const { rational } = dpbandits;

/** Entropy that gives these words and no others. */
function rigged(words) {
  const left = words.map((word) => BigInt("0x" + word));
  return Object.assign((n) => {
    assert.ok(left.length >= n, "more random words than in the vector");
    return BigUint64Array.from(left.splice(0, n));
  }, { left });
}

function make(curator, epsilon, entropy) {
  const [, outer, inner] = /^(\w+)(?:\((\w+)\))?$/.exec(curator);
  return inner ? dpbandits[outer](dpbandits[inner](epsilon, entropy)) : dpbandits[outer](epsilon, entropy);
}

test("texts are read as in Python", () => {
  for (const [text, lowest] of Object.entries(vectors.good)) {
    const [n, d] = rational("epsilon", text);
    assert.equal(d > 1n ? `${n}/${d}` : `${n}`, lowest);
  }
  for (const text of [...vectors.bad, 0.1, 1, 1n, null])
    assert.throws(() => rational("limit", text ?? "null"), /^RangeError: limit must be positive, as a decimal number or a fraction such as "0.1" or "1\/3", got '/);
});

test("threshold words are those of Python, in whatever order they are asked for", () => {
  for (const { epsilon, ...words } of vectors.words)
    for (const kind of ["logistic", "exponential"])
      for (const order of [[0, 1, 2, 3], [3, 0, 2, 1]]) {
        const digits = dpbandits[kind](rational("epsilon", epsilon));
        for (const k of order) assert.equal(digits(k).toString(16).padStart(16, "0"), words[kind][k], `${kind} ${epsilon}`);
      }
});

test("every random word is compared with Python's threshold, to the last unit", () => {
  const most = 2n ** 64n - 1n;
  for (const { curator, epsilon, before, words, adds } of vectors.thresholds)
    words.forEach((pair, place) => {
      const [first, second] = pair.map((word) => BigInt("0x" + word));
      const answer = (word, then) => {
        const draw = [...Array(before + words.length).fill(most), ...then, ...Array(3).fill(most)];
        draw[before + place] = word;
        const entropy = (n) => BigUint64Array.from(draw.splice(0, n));
        return BigInt(dpbandits[curator](epsilon, entropy).respond(0));
      };
      const below = BigInt(adds[place]);
      const expected = [
        ...(first > 0n ? [[0n, [], below], [first - 1n, [], below], [first >> 3n, [], below]] : []),
        [first, [second - 1n], below],
        [first, [second + 1n], 0n],
        [first + 1n, [], 0n],
        [most, [], 0n],
        ...(first > 0n && first << 1n < most ? [[first << 1n, [], 0n]] : []),
      ];
      for (const [word, then, response] of expected)
        assert.equal(answer(word, then), response, `${curator} ${epsilon}, word ${place}: ${word} ${then}`);
    });
});

test("responses are those of Python, and take the same random words", () => {
  assert.ok(vectors.responses.length > 300);
  for (const { curator, epsilon, reward, entropy, response } of vectors.responses) {
    const words = rigged(entropy);
    assert.equal(`${make(curator, epsilon, words).respond(Number(reward))}`, response, `${curator} ${epsilon} ${reward}`);
    assert.deepEqual(words.left, []);
  }
});

test("a client does with rewards what Python's does", () => {
  assert.ok(vectors.clients.length >= 160);
  for (const { block, reward, entropy, response } of vectors.clients) {
    const words = rigged(entropy);
    assert.equal(`${responder(block, words)(Number(reward))}`, response, `${JSON.stringify(block)} ${reward}`);
    assert.deepEqual(words.left, []);
  }
});

test("bodies are those of Python, byte for byte", async () => {
  for (const { curator, epsilon, reward, entropy, body } of vectors.responses) {
    let kept;
    const store = { update: async (change) => (kept = change(kept)) };
    const device = new dpbandits.Device(store, "1000000");
    assert.equal(await device.respond("d-1", Number(reward), make(curator, epsilon, rigged(entropy))), body);
  }
});

test("with the browser's entropy, every reward gets a response, and noise is fresh", () => {
  const strange = [0, 1, 0.3, NaN, Infinity, -Infinity, 1e308, -1e308, 5e-324];
  for (const epsilon of ["0.000001", "1", "100", "1000"])
    for (const reward of strange) {
      for (const curator of ["randomisedResponse", "bernoulliCurator", "sigmoidCurator(bernoulliCurator)"])
        assert.ok([0, 1].includes(make(curator, epsilon).respond(reward)));
      for (const curator of ["laplaceCurator", "piecewiseCurator", "sigmoidCurator(laplaceCurator)"])
        assert.equal(typeof make(curator, epsilon).respond(reward), "bigint");
    }
  const curator = dpbandits.laplaceCurator("0.001");
  // Two draws are equal with probability below 1e-8, so a hundred repetitions do not happen.
  assert.ok(new Set(Array.from({ length: 1000 }, () => curator.respond(0.5))).size > 900);
});

test("frequencies are those of the closed form", () => {
  // A correct curator fails each with probability below 1e-9: six standard deviations.
  const n = 20000;
  for (const [name, reward, epsilon] of [["randomisedResponse", 1, 1], ["bernoulliCurator", 0.3, 1], ["bernoulliCurator", 0.9, 2]]) {
    const curator = dpbandits[name](`${epsilon}`);
    let ones = 0;
    for (let i = 0; i < n; i++) ones += curator.respond(reward);
    const mean = (1 + reward * (Math.exp(epsilon) - 1)) / (1 + Math.exp(epsilon));
    assert.ok(Math.abs(ones - n * mean) < 6.1 * Math.sqrt(n * mean * (1 - mean)), `${name} ${ones}`);
  }
});

test("a level that is not positive is refused by every curator", () => {
  for (const name of ["randomisedResponse", "bernoulliCurator", "laplaceCurator", "piecewiseCurator"])
    assert.throws(() => dpbandits[name]("0"), /epsilon must be positive/);
});
