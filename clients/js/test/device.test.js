// The device: one response a decision, the same text for ever, never more than the budget.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IDBFactory } from "fake-indexeddb";
import { bernoulliCurator, BudgetError, Device, indexedDBStore, laplaceCurator } from "dpbandits";

/** A store in memory, and a way to see and to spoil what it does. */
function memory() {
  const store = {
    state: undefined,
    log: [],
    update: async (change) => {
      store.state = change(store.state);
      store.log.push(store.state);
      return store.state;
    },
  };
  return store;
}

function browser() {
  globalThis.indexedDB = new IDBFactory();
  return indexedDBStore("dpbandits");
}

for (const [kind, make] of [["memory", memory], ["indexedDB", browser]]) {
  test(`a response is made once and resent (${kind})`, async () => {
    const store = make();
    const first = await new Device(store, "1").respond("d1", 0.3, laplaceCurator("0.1"));
    for (let i = 0; i < 5; i++)
      assert.equal(await new Device(store, "1").respond("d1", 0.9, laplaceCurator("0.1")), first);
    assert.match(first, /^{"decision":"d1","epsilon":"1\/10","response":-?\d+}$/);
    assert.deepEqual(await new Device(store, "1").budget(), { limit: "1", spent: "1/10" });
  });

  test(`the budget is exact and never exceeded (${kind})`, async () => {
    const device = new Device(make(), "1");
    for (let n = 0; n < 10; n++) await device.respond(`d${n}`, 1, bernoulliCurator("0.1"));
    for (const epsilon of ["0.1", "1/100000000000000000"])
      await assert.rejects(device.respond("more", 1, bernoulliCurator(epsilon)), (error) => {
        assert.ok(error instanceof BudgetError);
        return /^epsilon must fit in 1, of which 1 is spent, got 1\/10+$/.test(error.message);
      });
    assert.equal((await device.budget()).spent, "1");
    assert.equal(typeof (await device.respond("d3", 1, bernoulliCurator("0.1"))), "string");
  });

  test(`asked at once, there is one response and one charge (${kind})`, async () => {
    const device = new Device(make(), "1");
    const asked = Array.from({ length: 6 }, () => device.respond("d1", 0.5, laplaceCurator("0.1")));
    assert.equal(new Set(await Promise.all(asked)).size, 1);
    assert.equal((await device.budget()).spent, "1/10");
  });

  test(`a promise can be lowered only (${kind})`, async () => {
    const store = make();
    await new Device(store, "1").respond("d1", 1, bernoulliCurator("0.5"));
    await assert.rejects(new Device(store, "2").budget(), /limit must be at most 1, which was promised before, got 2/);
    assert.deepEqual(await new Device(store, "1/4").budget(), { limit: "1/4", spent: "1/2" });
    await assert.rejects(new Device(store, "1").budget(), /limit must be at most 1\/4/);
    await assert.rejects(new Device(store, "1/4").respond("d2", 1, bernoulliCurator("0.01")), BudgetError);
  });
}

test("the order is charge, draw, keep", async () => {
  const store = memory();
  const seen = [];
  const curator = { epsilon: "1/10", respond: () => (seen.push(JSON.parse(store.state)), 1) };
  const body = await new Device(store, "1").respond("d1", 1, curator);
  assert.equal(await new Device(store, "1").respond("d1", 1, curator), body);
  assert.deepEqual(seen, [{ limit: "1", spent: "1/10", made: { ".d1": ["1/10"] } }], "one draw, after the charge");
  assert.deepEqual(JSON.parse(store.state).made, { ".d1": ["1/10", body] });
});

test("a crash after the draw is charged once, at one level, and shows one response", async () => {
  const store = memory();
  const crashing = { epsilon: "1/10", respond: () => assert.fail("power lost") };
  await assert.rejects(new Device(store, "1").respond("d1", 1, crashing), /power lost/);
  await assert.rejects(
    new Device(store, "1").respond("d1", 1, bernoulliCurator("0.5")),
    /epsilon must be 1\/10, which d1 was charged, got 1\/2/,
  );
  const first = await new Device(store, "1").respond("d1", 1, laplaceCurator("0.1"));
  assert.equal(await new Device(store, "1").respond("d1", 1, laplaceCurator("0.1")), first);
  assert.equal((await new Device(store, "1").budget()).spent, "1/10");
});

test("a response that could not be kept is not returned", async () => {
  const store = memory();
  const device = new Device(store, "1");
  const { update } = store;
  let calls = 0;
  store.update = (change) => (++calls > 1 ? Promise.reject(new Error("disk full")) : update(change));
  await assert.rejects(device.respond("d1", 1, bernoulliCurator("0.1")), /disk full/);
  assert.equal((JSON.parse(store.state)).spent, "1/10");
});

test("names that objects have of their own are decisions like others", async () => {
  const device = new Device(memory(), "1");
  for (const decision of ["__proto__", "constructor", "toString"])
    assert.equal(JSON.parse(await device.respond(decision, 1, bernoulliCurator("0.1"))).decision, decision);
  assert.equal((await device.budget()).spent, "3/10");
});

test("a decision that is no name, a level that is none and a limit that is none are refused", async () => {
  const device = new Device(memory(), "1");
  for (const decision of ["", "a b", 'a"', "a\\", "é", "a\n", "x".repeat(201)])
    await assert.rejects(device.respond(decision, 1, bernoulliCurator("0.1")), /decision must be 1 to 200 letters/);
  await assert.rejects(device.respond("d1", 1, { epsilon: "free", respond: () => 1 }), /epsilon must be positive/);
  assert.throws(() => new Device(memory(), "0"), /limit must be positive/);
  assert.equal((await device.budget()).spent, "0");
});
