// The README's example runs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { IDBFactory } from "fake-indexeddb";
import * as dpbandits from "dpbandits";
import { Client } from "dpbandits/client";
import { fake } from "./fake.js";

test("the client of the README decides, shows and reports", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, code] = /```js\nimport { Client } from "dpbandits\/client";\n([^]*?)```/.exec(readme);
  const world = fake();
  const shown = [];
  const clicks = [];
  class Told extends Client {
    constructor(settings) {
      super({ ...world.settings, ...settings });
    }
  }
  await Object.getPrototypeOf(async () => {}).constructor("Client", "show", "onClick", code)(Told, (arm) => shown.push(arm), (act) => clicks.push(act()));
  assert.deepEqual([shown, await Promise.all(clicks)], [["green"], [true]]);
  assert.equal(world.urls[0], "https://bandits.example.org/v1/experiments/banner/decisions");
});

test("the example of the README makes a response", async () => {
  globalThis.indexedDB = new IDBFactory();
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, names, code] = /```js\nimport { (.*) } from "dpbandits";\n([^]*?)```/.exec(readme);
  const example = Object.getPrototypeOf(async () => {}).constructor(names, `${code}; return body;`);
  const body = await example(...names.split(", ").map((name) => dpbandits[name]));
  assert.match(body, /^{"decision":"decision-42","epsilon":"1\/10","response":[01]}$/);
});
