// The client: an answer for every decision, at a time that does not depend on what happened, drawn once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IDBFactory } from "fake-indexeddb";
import { Client, indexedDBStore, memoryStore } from "dpbandits/client";
import { BLOCK, fake } from "./fake.js";

const options = { otherwise: 0, fallback: "red" };
const drawn = ({ events }) => events.filter(({ type }) => type === "drawn");

test("a decision is shown, and its answer is sent when it is due, with the bytes that were kept", async () => {
  const world = fake();
  const decision = await world.client.decide("shop", options);
  assert.deepEqual({ ...decision, id: "" }, { id: "", experiment: "shop", arm: "green", silent: null });
  assert.equal(world.urls[0], "https://bandits.test/v1/experiments/shop/decisions");
  assert.equal(await world.client.report(decision, 1), true);
  await world.wait(10);
  assert.deepEqual(world.sent, [], "a report sends nothing: its time would tell");
  await world.wait(86);
  assert.equal(world.sent.length, 1);
  assert.match(world.sent[0], new RegExp(`^{"token":"token-${decision.id}","response":{"decision":"${decision.id}","epsilon":"1/2","response":[01]}}$`));
  await world.wait(1000);
  assert.equal(world.sent.length, 1, "accepted: never sent again");
  assert.deepEqual(await world.client.budget(), { limit: "10", spent: "1/2" });
});

test("whether something is reported changes neither the number, the time nor the size of what is sent", async () => {
  for (const reported of [true, false]) {
    const world = fake();
    const decision = await world.client.decide("shop", options);
    if (reported) await world.client.report(decision, 1);
    const due = world.events[0].due;
    assert.ok(due - world.now >= 85_000 && due - world.now <= 95_000, "near the end of the window of 100 s");
    world.now = due - 1;
    await world.client.flush();
    assert.equal(world.sent.length, 0);
    world.now = due;
    await world.client.flush();
    assert.equal(world.sent.length, 1);
    assert.equal(world.sent[0].length, 138, "the same size");
    assert.equal(drawn(world)[0].reported, reported);
  }
});

test("answers go out at different times, and `after` brings them forward", async () => {
  const world = fake({ limit: "1000" });
  for (let n = 0; n < 40; n++) await world.client.decide("shop", options);
  const times = world.events.map(({ due }) => due - world.now);
  assert.ok(new Set(times).size > 30, "forty draws of 2^32 values");
  const soon = await (await fake()).client.decide("shop", { ...options, after: 5 });
  assert.equal(soon.silent, null);
  const other = fake();
  await other.client.decide("shop", { ...options, after: 5 });
  const due = other.events[0].due - other.now;
  assert.ok(due >= 5000 && due <= 5500);
  const never = fake({ curator: { ...BLOCK, respond_within: null } });
  await never.client.decide("shop", options);
  assert.ok(never.events[0].due - never.now <= 66_000, "without a window: a minute");
});

test("what stands for nothing must be said, and null says: nothing is sent", async () => {
  const world = fake();
  for (const otherwise of [undefined, NaN, "0", Infinity]) {
    const decision = await world.client.decide("shop", { otherwise, fallback: "red" });
    assert.deepEqual([decision.arm, decision.silent], ["red", "input"]);
    assert.match(decision.detail, /otherwise must be/);
  }
  assert.equal(world.urls.length, 0);
  const silent = await world.client.decide("shop", { otherwise: null });
  await world.wait(100);
  assert.equal(silent.silent, null);
  assert.deepEqual(world.sent, [], "missing, and never a zero");
  assert.deepEqual((await world.state()).open, {});
  const told = await world.client.decide("shop", { otherwise: null });
  await world.client.report(told, 1);
  await world.wait(100);
  assert.equal(world.sent.length, 1);
});

test("the same bytes on every retry, whatever the server's mood, and one draw", async () => {
  const world = fake();
  const decision = await world.client.decide("shop", options);
  await world.client.report(decision, 0.7);
  const moods = ["away", "503", "garbled", "slow", "500", "401", "403", "429", "404"];
  for (const mood of moods) {
    world.mood = mood;
    if (mood === "slow") continue; // its time limit of ten seconds is real time: the browser tests have it
    await world.wait(100_000);
  }
  world.mood = "well";
  await world.wait(100_000);
  assert.equal(new Set(world.sent).size, 1);
  assert.equal(world.sent.length, moods.length - 1); // away and slow never got them
  assert.equal(drawn(world).length, 1);
  assert.deepEqual((await world.state()).open, {});
});

test("a lost acknowledgement is a duplicate, not a second answer", async () => {
  const world = fake();
  const decision = await world.client.decide("shop", options);
  const { fetch } = world;
  let lost = 0;
  const lossy = world.open({ fetch: async (...call) => { const answer = await fetch(...call); if (lost++ < 3) throw new TypeError("reset"); return answer; } });
  world.client.close();
  await lossy.report(decision, 1);
  for (let n = 0; n < 6; n++) { world.now += 100_000; await lossy.flush(); await lossy.flush(); }
  assert.equal(world.sent.length, 4);
  assert.equal(new Set(world.sent).size, 1);
  assert.equal(world.known.size, 1);
});

test("tokens that expired, are unknown, invalid or contradicted end the matter, and nothing is drawn again", async () => {
  for (const status of ["late", "unknown", "invalid", "conflict"]) {
    const world = fake();
    const decision = await world.client.decide("shop", options);
    world.mood = status;
    await world.wait(100);
    world.mood = "well";
    await world.wait(100_000);
    assert.equal(world.sent.length, 1, status);
    assert.equal(await world.client.report(decision, 1), false);
    assert.equal(drawn(world).length, 1);
    assert.equal((await world.client.budget()).spent, "1/2", "what was spent stays spent");
  }
});

test("a reload answers what the last visit left, with the same bytes", async () => {
  const world = fake();
  const [first, second] = [await world.client.decide("shop", options), await world.client.decide("shop", options)];
  await world.client.report(first, 1);
  world.client.close();
  world.now += 1_000_000;
  const again = world.open();
  await again.flush();
  assert.equal(world.sent.length, 2, "one reported, one otherwise");
  assert.ok(world.sent.some((body) => body.includes(second.id)));
  assert.equal(drawn(world).length, 2);
  assert.equal(await again.report(first.id, 0), false);
});

test("a crash after the draw and before the send resends, and never draws again", async () => {
  const world = fake();
  const decision = await world.client.decide("shop", options);
  await world.client.report(decision, 0.5);
  const { made } = await world.state();
  world.client.close();
  for (let n = 0; n < 20; n++) {
    const { client } = { client: world.open({ fetch: () => new Promise(() => {}) }) }; // killed while it sends
    assert.equal(await client.report(decision, n % 2), false, "the first answer stands");
    client.close();
  }
  world.now += 100_000;
  await world.open().flush();
  assert.deepEqual(world.sent, [`{"token":"token-${decision.id}","response":${made["." + decision.id][1]}}`]);
  assert.equal(drawn(world).length, 1);
});

test("the budget is charged with the decision, so that which decisions are answered tells nothing", async () => {
  const world = fake({ limit: "1" });
  const decisions = [];
  for (let n = 0; n < 5; n++) decisions.push(await world.client.decide("shop", options));
  assert.deepEqual(decisions.map(({ arm }) => arm), Array(5).fill("green"), "over budget there are decisions still");
  assert.deepEqual(decisions.map(({ silent }) => silent), [null, null, "budget", "budget", "budget"]);
  assert.equal(await world.client.report(decisions[4], 1), false);
  await world.wait(1000);
  assert.equal(world.sent.length, 2);
  assert.deepEqual(await world.client.budget(), { limit: "1", spent: "1" });
  const higher = world.open({ limit: "100" });
  assert.deepEqual(await higher.budget(), { limit: "1", spent: "1" }, "an earlier promise stands");
  assert.equal((await higher.decide("shop", options)).silent, "budget");
  assert.deepEqual(await world.open({ limit: "1/2" }).budget(), { limit: "1/2", spent: "1" });
});

test("without a place to keep answers nothing is asked, drawn or sent, and the fallback is played", async () => {
  const full = new DOMException("full", "QuotaExceededError");
  for (const store of [
    { update: async () => { throw full; } },
    { update: () => { throw new Error("forbidden"); } },
    { update: async (change) => change("garbled") },
    { update: async (change) => change("") },
  ]) {
    const world = fake({ store });
    const decision = await world.client.decide("shop", options);
    assert.deepEqual([decision.arm, decision.silent], ["red", "storage"]);
    assert.equal(await world.client.report(decision, 1), false);
    assert.equal(await world.client.budget(), null);
    await world.wait(1000);
    assert.deepEqual([world.urls, world.sent, drawn(world)], [[], [], []]);
  }
  globalThis.indexedDB = { open: () => { throw new DOMException("no", "SecurityError"); } };
  const world = fake({ store: indexedDBStore("dpbandits") });
  assert.equal((await world.client.decide("shop", options)).silent, "storage");
  delete globalThis.indexedDB;
  assert.equal((await fake({ store: indexedDBStore("dpbandits") }).client.decide("shop", options)).silent, "storage");
});

test("a database that never answers is no store", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const world = fake({ store: { update: () => new Promise(() => {}) } });
  const asking = world.client.decide("shop", options);
  const [budget, report] = [world.client.budget(), world.client.report("d1", 1)];
  context.mock.timers.tick(5000);
  // The observer is told the budget, for which another five seconds are waited.
  for (let n = 0; n < 20; n++) await null;
  context.mock.timers.tick(5000);
  assert.deepEqual([(await asking).silent, await budget, await report], ["storage", null, false]);
  assert.deepEqual(world.urls, []);
});

test("a disk that is full when the click comes: the click is answered when there is room again", async () => {
  const store = memoryStore();
  const { update } = store;
  let full = false;
  store.update = (change) => (full ? Promise.reject(new DOMException("full", "QuotaExceededError")) : update(change));
  const world = fake({ store });
  const decision = await world.client.decide("shop", options);
  full = true;
  assert.equal(await world.client.report(decision, 1), false);
  await world.wait(100);
  assert.deepEqual([world.sent, drawn(world)], [[], []], "no draw without a store");
  full = false;
  await world.wait(0);
  assert.equal(world.sent.length, 1);
  assert.deepEqual(drawn(world).map(({ reward, reported }) => [reward, reported]), [[1, true]]);
});

test("a disk that fills up after the server has the answer: the same bytes again", async () => {
  const store = memoryStore();
  const { update } = store;
  const world = fake({ store });
  await world.client.decide("shop", options);
  let calls = 0;
  store.update = (change) => (++calls > 1 ? Promise.reject(new Error("full")) : update(change));
  world.now += 100_000;
  await world.client.flush();
  store.update = update;
  await world.wait(1000);
  assert.equal(world.sent.length, 2);
  assert.equal(new Set(world.sent).size, 1);
});

test("the server is away, slow, broken, refuses or speaks in riddles: the fallback, and a word that says why", async () => {
  const expected = { away: "unreachable", slow: "unreachable", 500: "unreachable", 503: "unreachable", 429: "unreachable", garbled: "unreadable", 404: "unknown", 401: "refused", 403: "refused", 409: "refused", 422: "refused" };
  for (const [mood, silent] of Object.entries(expected)) {
    const world = fake();
    world.mood = mood;
    const decision = await world.client.decide("shop", options);
    assert.deepEqual([decision.arm, decision.silent], ["red", silent], mood);
    assert.equal(await world.client.report(decision, 1), false);
    world.mood = "well";
    await world.wait(1000);
    assert.deepEqual([world.sent, (await world.client.budget()).spent], [[], "0"], "what was not shown is not answered");
  }
});

test("answers that are not decisions are refused", async () => {
  for (const [change, silent, arm] of [
    [{ decision: "another" }, "unreadable", "red"],
    [{ arm: 7 }, "unreadable", "red"],
    [{ curator: null, token: null }, "cap", "green"],
    [{ curator: { ...BLOCK, mechanism: "none" } }, "trust", "green"],
    [{ curator: { ...BLOCK, mechanism: "shout" } }, "curator", "green"],
    [{ curator: { ...BLOCK, epsilon: "0" } }, "curator", "green"],
    [{ curator: { ...BLOCK, epsilon: 1 } }, "curator", "green"],
    [{ curator: { ...BLOCK, epsilon: "1000" } }, "budget", "green"],
  ]) {
    const world = fake();
    const { fetch } = world;
    const client = world.open({ fetch: async (...call) => Response.json({ ...(await (await fetch(...call)).json()), ...change }) });
    const decision = await client.decide("shop", options);
    assert.deepEqual([decision.silent, decision.arm], [silent, arm], JSON.stringify(change));
    world.now += 1_000_000;
    await client.flush();
    assert.deepEqual(world.sent, []);
  }
});

test("a wrong clock changes nothing; one that is set back makes nobody wait for ever", async () => {
  for (const offset of [-1e12, 1e12]) {
    const world = fake();
    world.now += offset;
    await world.client.decide("shop", options);
    await world.wait(84);
    assert.equal(world.sent.length, 0);
    await world.wait(12);
    assert.equal(world.sent.length, 1);
  }
  const back = fake();
  await back.client.decide("shop", options);
  back.now -= 1e11; // three years
  await back.wait(1);
  assert.equal(back.sent.length, 0);
  await back.wait(96);
  assert.equal(back.sent.length, 1);
  const forth = fake();
  const decision = await forth.client.decide("shop", options);
  await forth.client.report(decision, 1);
  await forth.wait(1e9);
  assert.equal(forth.sent.length, 1, "sent at once, and the server says whether it is late");
});

test("rewards are mapped from their range, and a sigmoid takes any", async () => {
  for (const curator of [{ ...BLOCK, range: [-10, 10], epsilon: "9" }, { ...BLOCK, range: null, sigmoid: true, epsilon: "9" }])
    for (const [reward, bit] of [[10, 1], [1e9, 1], [-10, 0], [-Infinity, 0], [NaN, 0], [Symbol("x"), 0], [undefined, 0]]) {
      const counts = [0, 0];
      for (let n = 0; n < 6; n++) {
        const world = fake({ curator });
        const decision = await world.client.decide("shop", options);
        await world.client.report(decision, reward);
        counts[JSON.parse(drawn(world)[0].response).response]++;
      }
      // A lie has probability 1/8000 (and the sigmoid of 10 is short of 1 by 1/22000): three of six, below 2e-11.
      assert.ok(counts[bit] > 3, `${String(reward)} ${counts}`);
    }
});

test("rewards themselves leave only for a server that asks for them, and with leave", async () => {
  const world = fake({ curator: { ...BLOCK, mechanism: "none" }, trust: "central" });
  const rewards = [0.25, NaN, Infinity, -Infinity, "x", 3];
  for (const reward of rewards) await world.client.report(await world.client.decide("shop", options), reward);
  await world.wait(100);
  assert.deepEqual(world.sent.map((body) => JSON.parse(body).reward).sort(), [0.25, 0, 1e308, -1e308, 0, 3].sort());
  assert.ok(world.urls.slice(rewards.length).every((url) => url === "https://bandits.test/v1/rewards"));
  assert.equal((await world.client.budget()).spent, "3");
  assert.ok(!JSON.stringify(await world.state()).includes("0.25"), "what the server has is not kept");
});

test("two clients on one store never draw twice for one decision", async () => {
  globalThis.indexedDB = new IDBFactory();
  const world = fake({ store: indexedDBStore("dpbandits"), limit: "100" });
  const others = Array.from({ length: 4 }, () => world.open({ store: indexedDBStore("dpbandits") }));
  for (let n = 0; n < 10; n++) {
    const decision = await world.client.decide("shop", options);
    const stood = await Promise.all(others.map((tab, t) => tab.report(decision.id, t % 2)));
    assert.equal(stood.filter(Boolean).length, 1, "one report stands");
  }
  world.now += 100_000;
  await Promise.all(others.map((tab) => tab.flush()));
  assert.equal(world.sent.length, 10, "and one tab sends it");
  assert.equal(drawn(world).length, 10);
  assert.equal((await world.client.budget()).spent, "5");
});

test("a report and the end of the wait at once: one answer", async () => {
  globalThis.indexedDB = new IDBFactory();
  const world = fake({ store: indexedDBStore("dpbandits"), limit: "100" });
  const tab = world.open({ store: indexedDBStore("dpbandits") });
  for (let n = 0; n < 10; n++) {
    const decision = await world.client.decide("shop", options);
    world.now += 100_000;
    await Promise.all([tab.report(decision, 1), world.client.flush(), tab.flush()]);
  }
  await world.wait(100_000);
  assert.equal(new Set(world.sent).size, 10);
  assert.equal(drawn(world).length, 10);
});

test("a decision that is asked for early is answered only if it is shown", async () => {
  const world = fake();
  const [shown, never, tooLate] = [await world.client.ask("shop", options), await world.client.ask("shop", options), await world.client.ask("shop", options)];
  assert.equal((await world.client.budget()).spent, "0");
  assert.equal((await world.client.open(shown)).silent, null);
  assert.equal((await world.client.open(shown)).silent, null, "once");
  assert.equal((await world.client.budget()).spent, "1/2");
  await world.wait(200);
  assert.equal((await world.client.open(tooLate)).silent, "late");
  await world.wait(200);
  assert.deepEqual(world.sent.map((body) => JSON.parse(body).response.decision), [shown.id]);
  assert.equal(never.arm, "green");
});

test("the observer sees what the page may show, and cannot disturb", async () => {
  const world = fake();
  const decision = await world.client.decide("shop", options);
  await world.client.report(decision, 1);
  await world.wait(100);
  assert.deepEqual(world.events.map(({ type }) => type), ["decided", "drawn", "sent"]);
  const [decided, made, sent] = world.events;
  assert.deepEqual([decided.decision, decided.curator.epsilon, decided.budget], [decision, "1/2", { limit: "10", spent: "1/2" }]);
  assert.deepEqual([made.id, made.reward, made.reported, made.budget.spent], [decision.id, 1, true, "1/2"]);
  assert.deepEqual([sent.body, sent.bytes, sent.attempt, sent.status], [world.sent[0], world.sent[0].length, 1, "accepted"]);
  const rude = fake({ observer: () => { throw new Error("rude"); } });
  await rude.client.report(await rude.client.decide("shop", options), 1);
  await rude.wait(100);
  assert.equal(rude.sent.length, 1);
});

test("no reward is in anything that is sent or kept", async () => {
  const world = fake({ curator: { ...BLOCK, mechanism: "laplace" } });
  const reward = 0.8414709848;
  await world.client.report(await world.client.decide("shop", options), reward);
  const kept = JSON.stringify(await world.state());
  await world.wait(100);
  for (const text of [kept, ...world.sent, JSON.stringify(world.asked)]) assert.ok(!/0\.841/.test(text));
});

test("a user, a level and a key are sent with the request; names are escaped", async () => {
  const world = fake({ user: "ann" });
  let headers;
  const client = world.open({ fetch: (url, init) => ((headers = init.headers), world.fetch(url, init)) });
  await client.decide("a/b ?", { ...options, level: "1/2" });
  assert.equal(world.urls[0], "https://bandits.test/v1/experiments/a%2Fb%20%3F/decisions");
  assert.deepEqual({ ...world.asked[0], decision: "" }, { decision: "", user: "ann", level: "1/2" });
  assert.equal(headers.authorization, "Bearer dpb_k");
});

test("wrong settings are refused at once", () => {
  assert.throws(() => new Client({ url: "bandits.test", limit: "1" }), /url must begin with http/);
  assert.throws(() => new Client({ url: "http://x", limit: 1 }), /limit must be positive/);
});

test("a client that does not trust the server gives no reward, also where an earlier one did", async () => {
  const none = { ...BLOCK, mechanism: "none", epsilon: null };
  for (const drawnBefore of [true, false]) {
    const world = fake({ curator: none, trust: "central" });
    const decision = await world.client.decide("shop", options);
    if (drawnBefore) assert.equal(await world.client.report(decision, 0.8414), true);
    world.client.close();
    const local = world.open({ trust: "local" });
    assert.equal(await local.report(decision.id, 0.8414), false);
    world.now += 1_000_000;
    await local.flush();
    await local.flush();
    assert.deepEqual(world.sent, []);
    assert.deepEqual((await world.state()).open, {});
    local.close();
  }
});

test("the noise has the level that was charged, whatever else the store says", async () => {
  const world = fake({ curator: { ...BLOCK, mechanism: "laplace", epsilon: "0.001" } });
  const decision = await world.client.decide("shop", options);
  await world.store.update((kept) => kept.replace('"epsilon":"0.001"', '"epsilon":"1000000"'));
  await world.client.report(decision, 0);
  const [, body] = (await world.state()).made["." + decision.id];
  // At the level of the store the response would be 0; at the one that was charged, it is so with probability 8e-9.
  assert.equal(JSON.parse(body).epsilon, "1/1000");
  assert.notEqual(JSON.parse(body).response, 0);
});

test("nothing that a page passes makes the client throw", async () => {
  const { client } = fake();
  for (const wrong of [null, undefined, 7, {}, [], Symbol("x"), { id: Symbol("x") }, { get silent() { throw new Error("no"); } }]) {
    assert.equal(await client.report(wrong, 1), false);
    assert.equal(await client.waits(wrong), false);
  }
  for (const wrong of [null, undefined, 7, {}]) assert.equal((await client.decide("shop", wrong)).silent, "input");
});
