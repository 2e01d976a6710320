// Attacks on the device: copies of curators, rewards that throw, damaged and failing stores, several tabs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IDBFactory } from "fake-indexeddb";
import * as dpbandits from "dpbandits";
import { responder } from "dpbandits/client";

const { bernoulliCurator, BudgetError, Device, indexedDBStore, laplaceCurator, randomisedResponse, sigmoidCurator } = dpbandits;

function memory(state) {
  const store = { state, update: async (change) => (store.state = change(store.state)) };
  return store;
}

const curators = {
  randomisedResponse,
  bernoulliCurator,
  laplaceCurator,
  sigmoid: (epsilon) => sigmoidCurator(bernoulliCurator(epsilon)),
};

for (const [name, make] of Object.entries(curators)) {
  test(`a copy with another epsilon is refused, and costs nothing (${name})`, async () => {
    const device = new Device(memory(), "10");
    for (const epsilon of ["0.001", "1/1000", "2"]) {
      const copy = { ...make("1"), epsilon };
      await assert.rejects(device.respond("d1", 1, copy), /^RangeError: epsilon must be 1, which the curator was made for/);
      assert.throws(() => sigmoidCurator(copy), /epsilon must be 1, which the curator was made for/);
    }
    assert.equal((await device.budget()).spent, "0");
    assert.equal(typeof (await device.respond("d1", 1, { ...make("1") })), "string", "a copy with its own level is a curator");
  });

  test(`the level cannot be set afterwards (${name})`, async () => {
    const curator = make("1");
    assert.throws(() => (curator.epsilon = "0.001"), TypeError);
    assert.throws(() => (curator.respond = () => 1), TypeError);
    assert.throws(() => Object.defineProperty(curator, "epsilon", { value: "0.001" }), TypeError);
    assert.equal(curator.epsilon, "1");
  });

  test(`no reward leaves a decision without response (${name})`, async () => {
    const device = new Device(memory(), "100");
    const hostile = { valueOf: () => assert.fail("0.8414"), toString: () => assert.fail("0.8414") };
    const rewards = [undefined, null, "text", "", 10n ** 400n, -1n, Symbol("x"), {}, [], hostile, () => 1, true, NaN, new Date(NaN)];
    for (const [n, reward] of rewards.entries())
      assert.match(await device.respond(`d${n}`, reward, make("1")), /"response":-?\d+}$/);
    assert.equal((await device.budget()).spent, `${rewards.length}`);
  });
}

test("true is 1, and a text that is a number is that number", () => {
  const silent = (n) => new BigUint64Array(n).fill(2n ** 64n - 1n);
  for (const [reward, response] of [[true, 65536n], [false, 0n], ["0.5", 32768n], [10n ** 400n, 65536n], [null, 0n], [Symbol("x"), 0n]])
    assert.equal(laplaceCurator("1", silent).respond(reward), response);
});

test("a level that refunds or is none is refused, and costs nothing", async () => {
  const device = new Device(memory(), "1");
  for (const epsilon of ["-1", "0", "NaN", "Infinity", "1e-3", "", " 1", -1, 0, NaN, 0.1, null, undefined, {}, ["1"], "9".repeat(201), "0." + "3".repeat(150)])
    await assert.rejects(device.respond("d1", 1, { epsilon, respond: () => 1 }), /epsilon must be positive/);
  assert.equal((await device.budget()).spent, "0");
});

test("what is no integer does not leave the device, and is not shown", async () => {
  for (const drawn of [0.7312, NaN, "0.7312", null, undefined, 1e21, {}]) {
    const device = new Device(memory(), "1");
    await assert.rejects(device.respond("d1", 1, { epsilon: "0.1", respond: () => drawn }), (error) => {
      assert.equal(`${error}`, "RangeError: response must be whole");
      return true;
    });
    assert.equal((await device.budget()).spent, "1/10", "a charge is never taken back");
  }
});

test("a decision is a text: a reward in its place is refused, not shown, and costs nothing", async () => {
  const device = new Device(memory(), "1");
  for (const decision of [0.8414, 1, 1n, true, null, undefined, ["0.8414"], { toString: () => "0.8414" }])
    await assert.rejects(device.respond(decision, "d1", bernoulliCurator("0.1")), (error) => {
      assert.match(`${error}`, /^RangeError: decision must be text, got a \w+$/);
      return true;
    });
  assert.equal((await device.budget()).spent, "0");
});

test("what is no number is the lowest reward, also where 0 is not: as in Python", () => {
  const silent = (n) => new BigUint64Array(n).fill(2n ** 64n - 1n);
  const block = { mechanism: "laplace", epsilon: "1", range: [-10, 10], sigmoid: false };
  for (const reward of [null, undefined, "", " ", "text", [], [5], {}, NaN, Symbol("x"), Object.create(null), () => 1]) {
    assert.equal(sigmoidCurator(laplaceCurator("1", silent)).respond(reward), 0n);
    assert.equal(responder(block, silent)(reward), 0n);
  }
  for (const reward of [0, -0, 0n, false, "0", " 0 ", new Number(0)]) assert.equal(responder(block, silent)(reward), 32768n);
});

test("random bits are those of the browser, whatever the page puts in their place afterwards", () => {
  crypto.getRandomValues = (array) => array;
  try {
    // Without noise from the replaced function, all bits would be equal; with real noise that has probability 2^-199.
    const bits = Array.from({ length: 200 }, () => randomisedResponse("0.000001").respond(1));
    assert.equal(new Set(bits).size, 2);
  } finally {
    delete crypto.getRandomValues;
  }
});

test("a store that was changed fails closed", async () => {
  const store = memory();
  await new Device(store, "1").respond("d1", 1, bernoulliCurator("0.5"));
  const good = JSON.parse(store.state);
  const spoiled = [
    ..."garbled,NaN,-1,0,1/4,,1/0,Infinity,0x1,undefined".split(",").map((spent) => ({ ...good, spent })),
    ...[0, 0.5, null, [], {}, true].map((spent) => ({ ...good, spent })),
    ...["garbled", "Infinity", null, 1, "-1"].map((limit) => ({ ...good, limit })),
    { ...good, made: {} },
    { ...good, made: { ".d1": ["garbled"] } },
    { ...good, made: { ".d1": [] } },
    { ...good, made: { ".d1": ["0"] } },
    { limit: "1", made: good.made },
    { limit: "1", spent: "1/2" },
    {},
    [],
    1,
  ];
  for (const state of [...spoiled.map((state) => JSON.stringify(state)), "", " ", "nonsense", "null"]) {
    await assert.rejects(new Device(memory(state), "1").respond("d2", 1, bernoulliCurator("0.5")), undefined, state);
    await assert.rejects(new Device(memory(state), "1").budget(), undefined, state);
  }
  assert.equal((await new Device(memory(JSON.stringify(good)), "1").budget()).spent, "1/2");
});

test("a failed open is tried again", async () => {
  const factory = new IDBFactory();
  globalThis.indexedDB = {
    open: () => {
      const request = { error: new Error("no access yet") };
      queueMicrotask(() => request.onerror());
      return request;
    },
  };
  const device = new Device(indexedDBStore("dpbandits"), "1");
  await assert.rejects(device.respond("d1", 1, bernoulliCurator("0.1")), /no access yet/);
  globalThis.indexedDB = { open: () => { throw new Error("private window"); } };
  await assert.rejects(device.respond("d1", 1, bernoulliCurator("0.1")), /private window/);
  globalThis.indexedDB = factory;
  assert.match(await device.respond("d1", 1, bernoulliCurator("0.1")), /"response":[01]}$/);
  assert.equal((await device.budget()).spent, "1/10");
});

test("another program's database of the same name is an error, not a wait", async () => {
  globalThis.indexedDB = new IDBFactory();
  await new Promise((resolve) => {
    const request = indexedDB.open("dpbandits");
    request.onsuccess = () => (request.result.close(), resolve());
  });
  await assert.rejects(new Device(indexedDBStore("dpbandits"), "1").budget(), /NotFoundError/);
});

test("tabs that ask at once share one budget and one response", async () => {
  globalThis.indexedDB = new IDBFactory();
  const tabs = Array.from({ length: 8 }, () => new Device(indexedDBStore("dpbandits"), "1"));
  const same = await Promise.all(tabs.map((tab) => tab.respond("d1", 0.5, laplaceCurator("0.1"))));
  assert.equal(new Set(same).size, 1);
  const asked = tabs.flatMap((tab, t) => [0, 1].map((n) => tab.respond(`t${t}-${n}`, 1, bernoulliCurator("0.1"))));
  const settled = await Promise.allSettled(asked);
  assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 9, "nine of sixteen fit");
  assert.ok(settled.every(({ reason }) => !reason || reason instanceof BudgetError));
  assert.equal((await tabs[0].budget()).spent, "1");
});

test("a tab that deletes the database is not kept waiting, and an open device goes on", async () => {
  globalThis.indexedDB = new IDBFactory();
  const device = new Device(indexedDBStore("dpbandits"), "1");
  await device.respond("d1", 1, bernoulliCurator("0.1"));
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase("dpbandits");
    request.onsuccess = resolve;
    request.onblocked = request.onerror = () => reject(new Error("blocked"));
  });
  await device.respond("d1", 1, bernoulliCurator("0.1"));
});

test("when the storage is full, what was not kept is not returned", async () => {
  globalThis.indexedDB = new IDBFactory();
  const store = indexedDBStore("dpbandits");
  const device = new Device(store, "1");
  let calls = 0;
  const { update } = store;
  store.update = (change) => update((old) => { if (++calls === 2) throw new DOMException("full", "QuotaExceededError"); return change(old); });
  await assert.rejects(device.respond("d1", 1, bernoulliCurator("0.1")), { name: "QuotaExceededError" });
  const body = await device.respond("d1", 1, bernoulliCurator("0.1"));
  assert.equal(await device.respond("d1", 0, bernoulliCurator("0.1")), body);
  assert.equal((await device.budget()).spent, "1/10");
});
