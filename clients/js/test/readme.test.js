// The README's example runs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { IDBFactory } from "fake-indexeddb";
import * as dpbandits from "dpbandits";

test("the example of the README makes a response", async () => {
  globalThis.indexedDB = new IDBFactory();
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, names, code] = /```js\nimport { (.*) } from "dpbandits";\n([^]*?)```/.exec(readme);
  const example = Object.getPrototypeOf(async () => {}).constructor(names, `${code}; return body;`);
  const body = await example(...names.split(", ").map((name) => dpbandits[name]));
  assert.match(body, /^{"decision":"decision-42","epsilon":"1\/10","response":[01]}$/);
});
