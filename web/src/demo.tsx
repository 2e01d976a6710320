// The shop that keeps its secrets: banners, a visitor, and an x-ray of what leaves the visitor's device.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Client, type Decision, type DeviceEvent, memoryStore } from "../../clients/js/src/client";
import { at, currentKey, get, post, type Settings, type Shares, type Summary } from "./api";
import { ShareChart } from "./charts";
import { ConnectionBar, ThemeButton, usePolled } from "./parts";
import "./style.css";
import "./demo.css";
import { show } from "./theme";
import { number, percent, value, whole } from "./words";

const FIRST = "demo-shop";
const LIMIT = "12"; // what a visitor will ever spend
const PATIENCE = 6; // seconds after which a visitor's device answers, click or not
const CROWD = 1000;
const AT_ONCE = 12;

const BANNERS: Record<string, { text: string; more: string; likes: number }> = {
  "Free shipping": { text: "Free shipping", more: "on every order, this week", likes: 0.25 },
  "Summer sale": { text: "Summer sale", more: "up to half price", likes: 0.65 },
  "New arrivals": { text: "New arrivals", more: "fresh from the workshop", likes: 0.15 },
};

const experiment = new URLSearchParams(location.search).get("experiment") ?? FIRST;
const base = new URL(".", location.href).href;
type Of<T> = Extract<DeviceEvent, { type: T }>;

interface Xray {
  decided?: Of<"decided">;
  drawn?: Of<"drawn">;
  sent?: Of<"sent">;
}

function Demo() {
  const [summary] = usePolled(() => get<Summary>(at(experiment, "/summary")), 1000, []);
  const [shares, setShares] = useState<Shares | null>(null);
  useEffect(() => void get<Shares>(at(experiment, "/shares?points=60")).then(setShares, () => {}), [summary?.decisions]);
  const [visitor, setVisitor] = useState(1);
  return (
    <>
      <header>
        <a class="brand" href="./">
          <img src="./icon.svg" alt="" width="24" height="24" /> dpbandits
        </a>
        <nav aria-label="Main">
          <a href="./">Experiments</a>
          <a href="demo" aria-current="page">
            Demo shop
          </a>
        </nav>
        <ThemeButton />
      </header>
      <ConnectionBar />
      <main>
        <div class="intro">
          <h1>The shop that keeps your secrets</h1>
          <p class="quiet">
            The shop tries three banners and learns which one people click. It can never be sure whether <em>you</em> clicked: your browser answers
            with a coin toss mixed in. Click, or do not, and watch what leaves.
          </p>
        </div>
        <Visit key={visitor} visitor={visitor} next={() => setVisitor((n) => n + 1)} />
        <Crowd summary={summary} shares={shares} />
      </main>
    </>
  );
}

/** One visitor with a device of their own: a client, a budget, and what can be seen on the device. */
function Visit({ visitor, next }: { visitor: number; next: () => void }) {
  const [xray, setXray] = useState<Xray>({});
  const [decision, setDecision] = useState<Decision | null>(null);
  const [left, setLeft] = useState(0);
  const due = useRef(0);
  const client = useMemo(
    () =>
      new Client({
        url: base,
        limit: LIMIT,
        key: currentKey(),
        user: `visitor-${crypto.randomUUID()}`,
        store: memoryStore(),
        timeout: 5000,
        observer: (event) => {
          if (event.type === "decided") due.current = event.due ?? 0;
          setXray((old) => (event.type === "decided" ? { decided: event } : { ...old, [event.type]: event }));
        },
      }),
    [],
  );
  const look = async (): Promise<void> => setDecision(await client.decide(experiment, { otherwise: 0, after: PATIENCE, fallback: "New arrivals" }));
  useEffect(() => {
    void look();
    const timer = setInterval(() => setLeft(Math.max(0, Math.ceil((due.current - Date.now()) / 1000))), 200);
    return () => {
      clearInterval(timer);
      client.close();
    };
  }, []);
  const banner = decision?.arm ? (BANNERS[decision.arm] ?? { text: decision.arm, more: "", likes: 0 }) : null;
  const answered = xray.drawn !== undefined || Boolean(decision?.silent);
  return (
    <div class="split">
      <section class="card shop" aria-label="The shop">
        <div class="window">
          <p class="address">corner-shop.example</p>
          {banner ? (
            <button
              class={`banner b${Object.keys(BANNERS).indexOf(decision!.arm!)}`}
              disabled={answered}
              onClick={() => void client.report(decision!, 1)}
            >
              <b>{banner.text}</b>
              <span>{banner.more}</span>
            </button>
          ) : (
            <div class="banner waiting">…</div>
          )}
          <div class="goods" aria-hidden="true">
            {["◍", "△", "▢"].map((good) => (
              <span key={good}>{good}</span>
            ))}
          </div>
        </div>
        <div class="buttons">
          <button disabled={answered || !decision} onClick={() => void client.report(decision!, 0)}>
            Not interested
          </button>
          <button disabled={!xray.sent && !decision?.silent} onClick={() => void look()}>
            Come back later
          </button>
          <button class="plain" onClick={next}>
            Be somebody else
          </button>
        </div>
        <p class="quiet" aria-live="polite">
          You are visitor {visitor}.{" "}
          {decision?.silent
            ? SILENCES[decision.silent] ?? `Nothing is sent: ${decision.silent}.`
            : xray.sent
              ? "Your device has answered."
              : `Your device answers in ${left} s, whether you click or not: silence must not speak.`}
        </p>
      </section>
      <XrayPanel xray={xray} silent={decision?.silent ?? null} />
    </div>
  );
}

const SILENCES: Record<string, string> = {
  budget: "Your budget is spent. You still get banners, and nothing more is sent about you.",
  cap: "The shop takes no more answers of yours.",
  unreachable: "The server does not answer: you get the usual banner, and nothing is sent.",
};

function XrayPanel({ xray, silent }: { xray: Xray; silent: string | null }) {
  const epsilon = xray.decided?.curator?.epsilon ?? "2";
  const truth = 1 / (1 + Math.exp(-value(epsilon)));
  const { drawn, sent } = xray;
  const bit = drawn ? (JSON.parse(drawn.response) as { response: number }).response : null;
  const budget = drawn?.budget ?? xray.decided?.budget;
  const spent = budget ? value(budget.spent) : 0;
  return (
    <section class="card xray" aria-label="X-ray of your device">
      <h2>X-ray of your device</h2>
      <ol>
        <Step title="What you did" place="stays here" done={drawn !== undefined}>
          {drawn ? (drawn.reported ? (drawn.reward ? "You clicked: the reward is 1." : "You were not interested: the reward is 0.") : "You did nothing: the reward is 0.") : silent ? "Nothing is asked about this visit." : "Waiting for you."}
        </Step>
        <Step title="The coin" place="stays here" done={drawn !== undefined}>
          {`It says the truth with probability ${percent(truth)}. `}
          {drawn && <b>{bit === drawn.reward ? "This time: the truth." : "This time: the opposite."}</b>}
        </Step>
        <Step title="The bit that leaves" place="the server sees this" done={sent !== undefined} out>
          {drawn ? <span class="bit">{bit}</span> : "None yet."}{" "}
          {drawn && (sent ? "It has left." : "It waits for its time.")}
        </Step>
        <Step title="The bytes on the wire" place="the server sees this" done={sent !== undefined} out>
          {sent ? (
            <>
              {whole(sent.bytes)} bytes, answered “{sent.status}”.
              <code class="wire">{sent.body.replace(/("token":"[^"]{12})[^"]*/, "$1…")}</code>
            </>
          ) : (
            "Nothing yet."
          )}
        </Step>
        <Step title="Your budget" place="stays here" done={spent > 0}>
          <span class="meter" aria-hidden="true">
            <i style={{ width: `${(100 * spent) / value(LIMIT)}%` }} />
          </span>
          {silent === "budget" ? "All of it is spent." : `Epsilon ${number(spent)} of ${LIMIT} is spent, for life. A decision costs ${epsilon}.`}
        </Step>
      </ol>
    </section>
  );
}

function Step({ title, place, done, out, children }: { title: string; place: string; done: boolean; out?: boolean; children: preact.ComponentChildren }) {
  return (
    <li class={`${done ? "done" : ""} ${out ? "out" : ""}`}>
      <h3>
        {title} <small>{place}</small>
      </h3>
      <p>{children}</p>
    </li>
  );
}

/** A thousand visitors, each with a client of their own, through the same API. */
function Crowd({ summary, shares }: { summary: Summary | null; shares: Shares | null }) {
  const [done, setDone] = useState<number | null>(null);
  const running = done !== null && done < CROWD;
  const run = async (): Promise<void> => {
    setDone(0);
    let begun = 0;
    let finished = 0;
    let shown = 0;
    const visit = async (): Promise<void> => {
      while (begun++ < CROWD) {
        await one();
        finished++;
        shown ||= requestAnimationFrame(() => ((shown = 0), setDone(finished)));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, visit));
    setDone(CROWD);
  };
  return (
    <section class="card crowd">
      <div class="head">
        <h2>Traffic moves to the banner that people like best</h2>
        <div class="buttons">
          <button class="main" disabled={running} onClick={() => void run()}>
            {running ? `${whole(done)} of ${whole(CROWD)} …` : "A thousand visitors"}
          </button>
          <button onClick={() => void again()}>Start again</button>
          <a class="button second" href={`./#/e/${encodeURIComponent(experiment)}`}>
            Open the experiment
          </a>
        </div>
      </div>
      <p class={summary?.converged.converged ? "verdict yes" : "verdict"} aria-live="polite">
        <b>{summary ? summary.converged.words : "Asking the server …"}</b>
      </p>
      {shares && shares.time.length > 0 && <ShareChart shares={shares} height={200} />}
      <p class="quiet">
        The truth, which the server does not know: simulated visitors click {Object.values(BANNERS).map((one, i) => `${i ? ", " : ""}${one.text} with ${percent(one.likes)}`)}. Each of them has
        a device of their own, in this browser. {summary && `The server has seen ${whole(summary.responses.accepted)} private bits, and no click.`}
      </p>
    </section>
  );
}

/** One simulated visitor: look, click or not, answer, leave. */
async function one(): Promise<void> {
  let left = (): void => {};
  const gone = new Promise<void>((done) => (left = done));
  const client = new Client({
    url: base,
    limit: LIMIT,
    key: currentKey(),
    user: `visitor-${crypto.randomUUID()}`,
    store: memoryStore(),
    timeout: 20_000,
    observer: (event) => event.type === "sent" && left(),
  });
  const decision = await client.decide(experiment, { otherwise: 0, after: 0.02 });
  if (decision.silent === null) {
    const likes = BANNERS[decision.arm!]?.likes ?? 0;
    await client.report(decision, Math.random() < likes ? 1 : 0);
    await Promise.race([gone, new Promise((done) => setTimeout(done, 10_000))]);
  }
  client.close();
}

/** A new experiment with the same settings. */
async function again(): Promise<void> {
  const { arms, policy, epsilon, response_window, max_responses_per_user } = await get<Settings>(at(experiment));
  const name = `${FIRST}-${Date.now()}`;
  await post("v1/experiments", { name, arms, policy, epsilon, response_window, max_responses_per_user });
  location.search = `?experiment=${name}`;
}

show();
render(<Demo />, document.getElementById("app")!);
