// A server that is one function, with a memory and moods, and a clock that is set by hand.
import { Client, memoryStore } from "dpbandits/client";

export const BLOCK = {
  mechanism: "bernoulli", epsilon: "1/2", range: [0, 1], sigmoid: false, steps: 1, respond_within: 100, respond_by: "2026-01-01T00:00:00.000+00:00",
};

export function fake({ limit = "10", store = memoryStore(), curator = BLOCK, ...settings } = {}) {
  const world = {
    store,
    now: 1_700_000_000_000,
    curator,
    mood: "well", // or away, slow, 503, 401, garbled, and statuses of responses
    asked: [],
    sent: [], // the bodies of responses, as bytes on the wire
    urls: [],
    known: new Map(),
    events: [],
  };
  const answer = (status, body) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
  world.fetch = async (url, { body, signal }) => {
    world.urls.push(url);
    if (world.mood === "away") throw new TypeError("fetch failed");
    if (world.mood === "slow")
      await new Promise((_, reject) => {
        const busy = setInterval(() => {}, 1000); // Node would end: the timers of signals keep nothing alive
        signal.addEventListener("abort", () => (clearInterval(busy), reject(signal.reason)));
      });
    const deciding = url.endsWith("/decisions");
    if (!deciding) world.sent.push(body);
    if (/^\d+$/.test(world.mood)) return answer(+world.mood, { title: "Problem", status: +world.mood, detail: "as asked" });
    if (world.mood === "garbled") return answer(200, "<html>");
    if (deciding) {
      const { decision } = JSON.parse(body);
      world.asked.push(JSON.parse(body));
      const token = world.curator && `token-${decision}`;
      return answer(200, { decision, arm: "green", propensity: 1, version: 0, curator: world.curator, token });
    }
    if (world.mood !== "well") return answer(410, { status: world.mood });
    const { token, response, reward } = JSON.parse(body);
    const content = JSON.stringify(response ?? reward);
    const before = world.known.get(token);
    world.known.set(token, before ?? content);
    return answer(200, { status: before === undefined ? "accepted" : before === content ? "duplicate" : "conflict" });
  };
  world.settings = { url: "https://bandits.test/", key: "dpb_k", limit, store, fetch: world.fetch, now: () => world.now, observer: (event) => world.events.push(event), timeout: 50, ...settings };
  world.open = (more) => new Client({ ...world.settings, ...more });
  world.client = world.open();
  world.wait = async (seconds) => ((world.now += 1000 * seconds), await world.client.flush(), await world.client.flush());
  world.state = async () => JSON.parse(await store.update((kept) => kept));
  return world;
}
