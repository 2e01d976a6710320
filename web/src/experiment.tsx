import { useEffect, useState } from "preact/hooks";
import { at, Away, download, follow, get, type Ledger, post, type Problem, Refused, type Settings, type Shares, type Summary, type Trust } from "./api";
import { Estimates, Responses, ShareChart, Spending } from "./charts";
import { Badge, Card, Careful, useConnection, usePolled } from "./parts";
import { armColour } from "./theme";
import { epsilonInWords, number, percent, seconds, TRUST, value, whole } from "./words";

export function ExperimentPage({ name }: { name: string }) {
  const [summary, setSummary] = useState<Summary | null>(null);
  const [gone, setGone] = useState<Problem | null>(null);
  const [refused, setRefused] = useState("");
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    document.title = `${name} · dpbandits`;
    const again = (): void => setChanges((n) => n + 1);
    addEventListener("newkey", again);
    return () => removeEventListener("newkey", again);
  }, [name]);
  useEffect(() => follow(name, setSummary, setGone), [name]);
  const [settings] = usePolled(() => get<Settings>(at(name)), 60_000, [name, changes]);
  const stamp = summary ? Math.floor(Date.now() / 3000) : 0;
  const [shares, setShares] = useState<Shares | null>(null);
  const [ledger, setLedger] = useState<Ledger | null>(null);
  useEffect(() => {
    if (!summary) return;
    get<Shares>(at(name, "/shares?points=80")).then(setShares, () => {});
    get<Ledger>(at(name, `/ledger?limit=8&after=${Math.max(summary.version - 8, 0)}`)).then(setLedger, () => {});
  }, [name, stamp, summary?.decisions === 0]);

  if (gone)
    return (
      <div class="card empty">
        <h1>{gone.status === 404 ? "There is no such experiment" : "The server refused"}</h1>
        <p>{gone.detail}</p>
        <a class="button" href="#/">
          All experiments
        </a>
      </div>
    );
  if (!summary || !settings) return <p class="quiet">Asking the server about {name} …</p>;

  const change = async (path: string, body?: object): Promise<void> => {
    setRefused("");
    try {
      await post(at(name, path), body, body ? "PATCH" : "POST");
      setChanges((n) => n + 1);
    } catch (error) {
      setRefused(error instanceof Refused || error instanceof Away ? error.message : String(error));
    }
  };
  const trust = summary.guarantee.trust;
  const epsilon = summary.guarantee.epsilon;
  const [low, high] = settings.reward.kind === "bounded" ? [settings.reward.low, settings.reward.high] : [0, 1];
  const cost = settings.epsilon ? value(settings.epsilon) : settings.levels ? Math.max(...settings.levels.map(value)) : null;
  return (
    <>
      <div class="head">
        <h1>
          {name} <Badge status={summary.status} /> <Live />
        </h1>
        <Actions summary={summary} change={change} name={name} />
      </div>
      <p class="quiet">
        {summary.policy} · {TRUST[trust]}
        {epsilon !== null && trust !== "none" ? ` · epsilon ${settings.epsilon ?? epsilon}` : ""} · responses within {seconds(settings.response_window)}
      </p>
      {refused && (
        <p class="bar" role="alert">
          {refused}
        </p>
      )}
      <Verdict summary={summary} />
      <dl class="numbers">
        <Figure words="decisions" value={whole(summary.decisions)} />
        <Figure words="responses" value={whole(summary.responses.accepted)} />
        <Figure words="users who answered" value={whole(summary.users.count)} />
        <Figure words="releases" value={whole(summary.version)} />
      </dl>
      <div class="cards">
        <Card title="Share of traffic over time" wide>
          {shares?.time.length ? <ShareChart shares={shares} /> : <p class="quiet">{shares ? "Nobody has asked for a decision yet." : "Asking the server …"}</p>}
        </Card>
        <Card title="Estimates" note={`The mean of ${summary.arms.find((arm) => arm.estimate)?.estimate?.of ?? "the reward"}, with intervals that miss it for one arm in 20.`}>
          <Estimates arms={summary.arms} low={low!} high={high!} />
        </Card>
        <Card title="Responses against decisions">
          <Responses arms={summary.arms} />
        </Card>
        <Card title="Health">
          <HealthList summary={summary} />
        </Card>
        <Card title="Arms" note="Nobody gets a paused arm. What it has learned stays.">
          <Arms summary={summary} change={change} />
        </Card>
        <Card title="What is promised">
          <p>
            <b>{summary.guarantee.words}</b>
          </p>
          {epsilon !== null && <p>{epsilonInWords(epsilon, trust)}</p>}
          {trust !== "none" && summary.guarantee.conditions && (
            <>
              <p class="quiet">It holds as long as:</p>
              <ul>
                {summary.guarantee.conditions.split("; ").map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
            </>
          )}
        </Card>
        <Unknown trust={trust} users={summary.users.count} />
        <Card title="What users have spent">
          {trust === "none" ? <p class="quiet">Nothing is promised, so nothing is counted.</p> : <Spending users={summary.users} cost={cost} />}
        </Card>
        <Card title="Ledger" note="The latest releases, and what each cost. A release is drawn once and kept.">
          <Releases ledger={ledger} trust={trust} />
        </Card>
      </div>
    </>
  );
}

function Live() {
  const state = useConnection();
  return <span class={state === "ok" ? "live" : "live lost"}>{state === "ok" ? "live" : "not live"}</span>;
}

function Figure({ words, value }: { words: string; value: string }) {
  return (
    <div>
      <dt>{words}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Actions({ summary, change, name }: { summary: Summary; change: (path: string, body?: object) => Promise<void>; name: string }) {
  const active = summary.status === "running" || summary.status === "paused";
  return (
    <div class="buttons">
      {summary.status === "running" && <button onClick={() => change("", { status: "paused" })}>Pause</button>}
      {summary.status === "paused" && <button onClick={() => change("", { status: "running" })}>Go on</button>}
      {active && (
        <Careful
          label="Stop"
          question={`End ${name} for good? It makes no more decisions. Everything that was learned can still be read and exported.`}
          yes="End it"
          act={() => void change(":stop")}
        />
      )}
      {(summary.status === "stopped" || summary.status === "halted") && <button onClick={() => change(":archive")}>Archive</button>}
      <details class="menu">
        <summary class="button second">Export</summary>
        <div>
          <button class="plain" onClick={() => void download(at(name, "/export.csv"), `${name}.csv`)}>
            Decisions as CSV
          </button>
          <button class="plain" onClick={() => void download(at(name, "/export.parquet"), `${name}.parquet`)}>
            Decisions as Parquet
          </button>
        </div>
      </details>
    </div>
  );
}

function Verdict({ summary }: { summary: Summary }) {
  const known = summary.converged;
  return (
    <section class={known.converged ? "verdict yes" : "verdict"} aria-label="Is the best arm known?" aria-live="polite">
      <b>{known.words}</b>
      {known.leader && (
        <p>
          {known.leader} is at least {number(known.at_least!)}, and {known.rival} is at most {number(known.at_most!)}. These bounds hold
          {known.converged ? " together at every look, so watching does not spoil them." : ` together at every look; they must part before one can be sure (error ${percent(known.error)}).`}
        </p>
      )}
    </section>
  );
}

function HealthList({ summary }: { summary: Summary }) {
  const rates = summary.arms.map((arm) => ({ name: arm.arm, ...arm.rates, missing: Math.max(arm.rates.missing ?? 0, 0) }));
  const some = summary.decisions > 0;
  return (
    <>
      {summary.health.length ? (
        <ul class="findings">
          {summary.health.map((finding) => (
            <li key={finding.about + finding.arm} class={finding.level}>
              {finding.text}
            </li>
          ))}
        </ul>
      ) : (
        <p class="fine">Nothing looks wrong.</p>
      )}
      {some && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Missing, late and duplicate responses">
          <table>
            <thead>
              <tr>
                <th scope="col">arm</th>
                <th scope="col">not here yet</th>
                <th scope="col">late</th>
                <th scope="col">twice</th>
              </tr>
            </thead>
            <tbody>
              {rates.map((row) => (
                <tr key={row.name}>
                  <th scope="row">{row.name}</th>
                  <td>{percent(row.missing)}</td>
                  <td>{percent(row.late)}</td>
                  <td>{percent(row.duplicate)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Arms({ summary, change }: { summary: Summary; change: (path: string, body: object) => Promise<void> }) {
  const active = summary.status === "running" || summary.status === "paused";
  const paused = summary.arms.filter((arm) => arm.paused).map((arm) => arm.arm);
  return (
    <ul class="arms">
      {summary.arms.map((arm, i) => (
        <li key={arm.arm}>
          <i class="swatch" style={{ background: armColour(i) }} />
          <span class="name">{arm.arm}</span>
          <span class="quiet">{percent(arm.share)} of all</span>
          {active && (
            <button
              class="small"
              aria-label={`${arm.paused ? "Resume" : "Pause"} ${arm.arm}`}
              onClick={() => change("", { paused_arms: arm.paused ? paused.filter((name) => name !== arm.arm) : [...paused, arm.arm] })}
            >
              {arm.paused ? "Resume" : "Pause"}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Releases({ ledger, trust }: { ledger: Ledger | null; trust: Trust }) {
  if (!ledger) return <p class="quiet">Asking the server …</p>;
  const words =
    ledger.worst_reward === null ? "Nothing is promised, so nothing is charged." : `No reward has lost more than epsilon ${ledger.worst_reward} so far.`;
  return (
    <>
      <p>{words}</p>
      {trust === "local" && <p>The server draws no noise here: each response was made private on a device, once, and is a release of its own.</p>}
      {ledger.entries.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Releases">
          <table>
            <thead>
              <tr>
                <th scope="col">release</th>
                <th scope="col">arm</th>
                <th scope="col">responses</th>
                <th scope="col">released mean</th>
                <th scope="col">epsilon</th>
                <th scope="col">time</th>
              </tr>
            </thead>
            <tbody>
              {[...ledger.entries].reverse().map((one) => (
                <tr key={`${one.release} ${one.arm}`}>
                  <td>{whole(one.release)}</td>
                  <th scope="row">{one.arm}</th>
                  <td>{whole(one.responses)}</td>
                  <td>{number(one.mean)}</td>
                  <td>{one.epsilon}</td>
                  <td>{new Date(one.time * 1000).toLocaleTimeString("en-GB")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Unknown({ trust, users }: { trust: Summary["guarantee"]["trust"]; users: number }) {
  return (
    <Card title="What this page cannot tell you">
      <ul>
        {trust === "local" && <li>What any one person did. Their device told a noisy answer, and nobody here has seen another one.</li>}
        {trust === "central" && <li>What any one person did. The server adds up rewards, and this page reads noisy sums only.</li>}
        {trust === "none" && <li>Whether anybody is protected: this policy promises nothing.</li>}
        <li>Why a response is missing. It may be lost, or its user may have left; it counts as missing, never as zero.</li>
        <li>Whether the same person came under two names. Spending is added up for each name{users ? "" : ", and nobody was named so far"}.</li>
        <li>Whether it will stay so. Estimates speak about the visitors so far.</li>
      </ul>
    </Card>
  );
}
