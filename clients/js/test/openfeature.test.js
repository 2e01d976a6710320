// OpenFeature: an experiment is a string flag, evaluation is a decision, tracking is the report.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { OpenFeature as Web } from "@openfeature/web-sdk";
import { OpenFeature as Server } from "@openfeature/server-sdk";
import { DpbanditsProvider } from "dpbandits/openfeature-server";
import { DpbanditsWebProvider } from "dpbandits/openfeature-web";
import { fake } from "./fake.js";

const settled = () => new Promise((resolve) => setTimeout(resolve, 30));
// Until it is true, or ten seconds are over and the test fails.
const until = async (isTrue) => {
  for (let n = 0; n < 1000 && !isTrue(); n++) await new Promise((resolve) => setTimeout(resolve, 10));
};
const drawn = ({ events }) => events.filter(({ type }) => type === "drawn");

async function web(world, settings) {
  const provider = new DpbanditsWebProvider({ ...world.settings, otherwise: { banner: 0, price: 0 }, ...settings });
  await Web.setProviderAndWait(provider);
  return { client: Web.getClient(), provider };
}

async function server(world, settings) {
  const folder = mkdtempSync(join(tmpdir(), "dpbandits-"));
  const provider = new DpbanditsProvider({ ...world.settings, store: undefined, folder, otherwise: 0, ...settings });
  await Server.setProviderAndWait(provider);
  return { client: Server.getClient(), provider, folder };
}

test("web: evaluation is a decision, and tracking its report", async () => {
  const world = fake({ user: undefined });
  const { client, provider } = await web(world);
  assert.equal((await provider.client.budget()).spent, "0", "what nobody has seen costs nothing");
  const details = client.getStringDetails("banner", "red");
  assert.deepEqual([details.value, details.variant, details.reason, details.errorCode], ["green", "green", "SPLIT", undefined]);
  assert.equal(details.flagMetadata.answered, true);
  assert.equal(client.getStringValue("banner", "red"), "green");
  client.track("banner");
  client.track("banner", { value: 0 });
  await until(() => drawn(world).length);
  await settled();
  assert.equal((await provider.client.budget()).spent, "1/2");
  assert.deepEqual(drawn(world).map(({ id, reward }) => [id, reward]), [[details.flagMetadata.decision, 1]], "the first report stands");
  world.now += 100_000;
  await provider.client.flush();
  assert.equal(world.sent.length, 1, "the price was never shown, and is not answered");
});

test("web: other events, values, and what was not shown", async () => {
  const world = fake();
  const { client } = await web(world, { events: { checkout: ["banner", "price"] } });
  client.track("checkout", { value: 0.5 });
  await settled();
  assert.equal(drawn(world).length, 0);
  client.getStringValue("price", "1.99");
  client.track("checkout", { value: 0.5 });
  await until(() => drawn(world).length);
  assert.deepEqual(drawn(world).map(({ reward }) => reward), [0.5]);
});

test("web: errors are OpenFeature's codes and the default value", async () => {
  const expected = { 404: "FLAG_NOT_FOUND", garbled: "PARSE_ERROR", away: "GENERAL", 503: "GENERAL", 401: "GENERAL", 409: "GENERAL", 422: "INVALID_CONTEXT" };
  for (const [mood, code] of Object.entries(expected)) {
    const world = fake();
    world.mood = mood;
    const details = (await web(world)).client.getStringDetails("banner", "red");
    assert.deepEqual([details.value, details.reason, details.errorCode], ["red", "ERROR", code], mood);
  }
  const { client } = await web(fake());
  assert.equal(client.getStringDetails("other", "red").errorCode, "FLAG_NOT_FOUND");
  assert.equal(client.getBooleanDetails("banner", true).errorCode, "TYPE_MISMATCH");
  assert.equal(client.getNumberDetails("banner", 7).value, 7);
  assert.deepEqual(client.getObjectDetails("banner", { a: 1 }).value, { a: 1 });
  const early = new DpbanditsWebProvider({ ...fake().settings, otherwise: { banner: 0 } });
  assert.equal(early.resolveStringEvaluation("banner", "red").errorCode, "PROVIDER_NOT_READY");
});

test("web: over budget there is an arm and no error; without a store the default", async () => {
  const world = fake({ limit: "1/4" });
  const { client } = await web(world);
  const details = client.getStringDetails("banner", "red");
  assert.deepEqual([details.value, details.errorCode], ["green", undefined]);
  client.track("banner");
  await settled();
  assert.equal(drawn(world).length, 0);
  const nowhere = fake({ store: { update: async () => { throw new Error("private window"); } } });
  const other = (await web(nowhere)).client.getStringDetails("banner", "red");
  assert.deepEqual([other.value, other.errorCode], ["red", "GENERAL"]);
});

test("web: another user is another decision", async () => {
  const world = fake();
  const { client } = await web(world);
  await Web.setContext({ targetingKey: "ann", level: "1/2" });
  assert.deepEqual(world.asked.slice(-2).map(({ user, level }) => [user, level]), [["ann", "1/2"], ["ann", "1/2"]]);
  const first = client.getStringDetails("banner", "red").flagMetadata.decision;
  await Web.setContext({ targetingKey: "bob" });
  assert.notEqual(client.getStringDetails("banner", "red").flagMetadata.decision, first);
  await Web.clearContext();
});

test("server: the targeting key is the user, with a budget and an arm of their own", async () => {
  const world = fake({ limit: "1/2" });
  const { client, provider } = await server(world);
  const ann = await client.getStringDetails("banner", "red", { targetingKey: "ann" });
  assert.deepEqual([ann.value, ann.variant, ann.reason, ann.flagMetadata.answered], ["green", "green", "SPLIT", true]);
  const again = await Promise.all([1, 2, 3].map(() => client.getStringDetails("banner", "red", { targetingKey: "ann" })));
  assert.ok(again.every(({ flagMetadata }) => flagMetadata.decision === ann.flagMetadata.decision), "an arm is kept");
  const other = await client.getStringDetails("price", "1.99", { targetingKey: "ann" });
  assert.deepEqual([other.value, other.flagMetadata.silent, other.errorCode], ["green", "budget", undefined]);
  const bob = await client.getStringDetails("banner", "red", { targetingKey: "bob" });
  assert.equal(bob.flagMetadata.answered, true);
  assert.deepEqual(world.asked.map(({ user }) => user), ["ann", "ann", "bob"]);
  client.track("banner", { targetingKey: "ann" }, { value: 0.5 });
  client.track("banner", { targetingKey: "carl" });
  client.track("banner", {});
  await until(() => drawn(world).length);
  await settled();
  assert.deepEqual(drawn(world).map(({ id, reward }) => [id, reward]), [[ann.flagMetadata.decision, 0.5]]);
  await provider.onClose();
});

test("server: at once, one decision; and the next process answers what is left", async () => {
  const world = fake();
  const { client, provider, folder } = await server(world, { otherwise: { banner: 0 } });
  const details = await Promise.all([1, 2, 3, 4].map(() => client.getStringDetails("banner", "red", { targetingKey: "ann" })));
  assert.equal(new Set(details.map(({ flagMetadata }) => flagMetadata.decision)).size, 1);
  assert.equal(world.asked.length, 1);
  await provider.onClose();
  world.now += 100_000;
  const next = new DpbanditsProvider({ ...world.settings, store: undefined, folder, otherwise: 0 });
  await next.initialize();
  await until(() => world.sent.length);
  assert.equal(world.sent.length, 1);
  await next.onClose();
});

test("server: errors are OpenFeature's codes and the default value", async () => {
  const world = fake();
  const { client } = await server(world, { otherwise: { banner: 0 } });
  assert.equal((await client.getStringDetails("banner", "red")).errorCode, "TARGETING_KEY_MISSING");
  assert.equal((await client.getStringDetails("other", "red", { targetingKey: "ann" })).errorCode, "FLAG_NOT_FOUND");
  assert.equal((await client.getBooleanDetails("banner", true, { targetingKey: "ann" })).errorCode, "TYPE_MISMATCH");
  for (const [mood, code] of Object.entries({ 404: "FLAG_NOT_FOUND", garbled: "PARSE_ERROR", away: "GENERAL", 422: "INVALID_CONTEXT" })) {
    world.mood = mood;
    const details = await client.getStringDetails("banner", "red", { targetingKey: "ann" });
    assert.deepEqual([details.value, details.errorCode], ["red", code]);
  }
  assert.throws(() => new DpbanditsProvider({ url: "nowhere", folder: "x", otherwise: 0 }), /url must begin/);
});
