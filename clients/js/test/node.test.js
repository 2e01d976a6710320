// The store in files: atomic, on disk, for several processes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { fileStore } from "dpbandits/node";
import { bernoulliCurator, Device } from "dpbandits";
import { fake } from "./fake.js";

const folder = () => join(mkdtempSync(join(tmpdir(), "dpbandits-")), "store");

test("what is kept survives, and one file is left", async () => {
  const path = folder();
  const first = await new Device(fileStore(path), "1").respond("d1", 0.3, bernoulliCurator("0.1"));
  assert.equal(await new Device(fileStore(path), "1").respond("d1", 0.9, bernoulliCurator("0.1")), first);
  assert.equal(readdirSync(path).length, 1);
  assert.equal(statSync(path).mode & 0o777, 0o700);
});

test("processes that change it at once lose nothing", async () => {
  const path = folder();
  const script = `import { fileStore } from "dpbandits/node";
    for (let n = 0; n < 40; n++) await fileStore(${JSON.stringify(path)}).update((old) => \`\${Number(old ?? 0) + 1}\`);`;
  const run = () => promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { cwd: import.meta.dirname });
  await Promise.all([run(), run(), run(), ...Array.from({ length: 10 }, () => fileStore(path).update((old) => `${Number(old ?? 0) + 1}`))]);
  assert.equal(await fileStore(path).update((old) => old), "130");
});

test("clients of several processes share one budget and one answer", async () => {
  const path = folder();
  const world = fake({ store: fileStore(path), limit: "2" });
  const others = [1, 2, 3].map(() => world.open({ store: fileStore(path) }));
  const made = await Promise.all(others.flatMap((client) => [client.decide("shop", { otherwise: 0 }), client.decide("shop", { otherwise: 0 })]));
  assert.equal(made.filter(({ silent }) => silent === null).length, 4);
  const open = made.find(({ silent }) => silent === null);
  const stood = await Promise.all(others.map((client) => client.report(open.id, 1)));
  assert.equal(stood.filter(Boolean).length, 1);
  world.now += 100_000;
  await Promise.all(others.map((client) => client.flush()));
  assert.equal(world.sent.length, new Set(world.sent).size);
  assert.equal(world.sent.length, 4);
  assert.equal(world.events.filter(({ type }) => type === "drawn").length, 4);
});

test("a folder that cannot be written, and a file that is damaged, are no store", async () => {
  const path = folder();
  writeFileSync(path, "a file where the folder should be");
  const world = fake({ store: fileStore(path) });
  assert.equal((await world.client.decide("shop", { otherwise: 0, fallback: "red" })).silent, "storage");
  const damaged = folder();
  await fileStore(damaged).update(() => "garbled");
  assert.equal((await fake({ store: fileStore(damaged) }).client.decide("shop", { otherwise: 0 })).silent, "storage");
  assert.equal(readFileSync(path, "utf8"), "a file where the folder should be");
  await assert.rejects(fileStore(damaged).update(() => { throw new Error("no"); }), /no/);
  assert.deepEqual(readdirSync(damaged), ["1"]);
});

test("files that vanish are no fresh budget", async () => {
  for (const remove of [(path) => rmSync(path, { recursive: true }), (path) => readdirSync(path).forEach((name) => rmSync(join(path, name)))]) {
    const path = folder();
    const device = new Device(fileStore(path), "1");
    await device.respond("d1", 1, bernoulliCurator("1"));
    remove(path);
    await assert.rejects(device.respond("d2", 1, bernoulliCurator("1")), /ENOENT|store has vanished/);
    await assert.rejects(device.budget(), /ENOENT|store has vanished/);
  }
});
