import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Away, get, type Plan, type Policy, post, Refused, type Settings } from "./api";
import { LossCurve } from "./charts";
import { epsilonInWords, number, percent, seconds, value, whole } from "./words";

interface Form {
  name: string;
  arms: string;
  policy: string;
  epsilon: string;
  levels: string;
  cap: string;
  window: string;
  best: string;
  gap: string;
  traffic: string;
  days: string;
}

const START: Form = {
  name: "",
  arms: "red\ngreen\nblue",
  policy: "ldp-imed-b",
  epsilon: "1",
  levels: "0.5, 1, 2",
  cap: "10",
  window: "86400",
  best: "10",
  gap: "3",
  traffic: "5000",
  days: "14",
};

const armsOf = (text: string): string[] => text.split("\n").map((arm) => arm.trim()).filter(Boolean);
const levelsOf = (text: string): string[] => text.split(/[\s,;]+/).filter(Boolean);

export function Create() {
  const [form, setForm] = useState(START);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [policies, setPolicies] = useState<Policy[]>([]);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "New experiment · dpbandits";
    get<{ policies: Policy[] }>("v1/policies").then((found) => setPolicies(found.policies), () => {});
  }, []);
  const chosen = policies.find((policy) => policy.name === form.policy);
  const set = (field: keyof Form) => (event: { currentTarget: { value: string } }) => {
    setForm({ ...form, [field]: event.currentTarget.value });
    setErrors({ ...errors, [field]: "" });
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const made = await post<Settings>("v1/experiments", asked(form, chosen));
      location.hash = `#/e/${encodeURIComponent(made.name)}`;
    } catch (error) {
      setErrors(refusals(error));
      setTimeout(() => document.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    }
    setBusy(false);
  };
  const field = (name: keyof Form, label: string, help: string, more: object = {}) => (
    <Field name={name} label={label} help={help} error={errors[name]} value={form[name]} onInput={set(name)} {...more} />
  );
  return (
    <>
      <div class="head">
        <h1>New experiment</h1>
      </div>
      <div class="split">
        <form class="card form" onSubmit={submit} noValidate>
          {field("name", "Name", "Letters, digits and . _ - signs.")}
          <Labelled name="arms" label="Arms, one on each line" help="What visitors may get." error={errors["arms"]}>
            {(about) => <textarea rows={4} value={form.arms} onInput={set("arms")} {...about} />}
          </Labelled>
          <PolicyField policies={policies} value={form.policy} error={errors["policy"]} onInput={set("policy")} />
          {(!chosen || chosen.epsilon) && field("epsilon", "Epsilon", "Smaller is more private: 0.1, 1 or 1/3. It cannot change later.")}
          {chosen?.levels &&
            field("levels", "Levels that users may have", "An epsilon for each kind of user, such as 0.5, 1, 2. Clients name a user's own when they ask for a decision; 0 is a user who sends nothing.")}
          <div class="pair">
            {field("cap", "Responses per user, at most", "Over it a user still gets decisions, and sends nothing. Empty: no cap.", { inputMode: "numeric" })}
            {field("window", "Response window, seconds", `What comes later is not used. Now: ${seconds(Number(form.window) || null)}.`, { inputMode: "numeric" })}
          </div>
          <fieldset>
            <legend>What you expect, for the plan beside</legend>
            <div class="pair">
              {field("best", "The best arm pays, %", "Such as how many click.", { inputMode: "decimal" })}
              {field("gap", "The others pay less by, %", "In percentage points.", { inputMode: "decimal" })}
              {field("traffic", "Visitors a day", "", { inputMode: "numeric" })}
              {field("days", "Days", "", { inputMode: "numeric" })}
            </div>
          </fieldset>
          {errors["form"] && (
            <p class="wrong" role="alert">
              {errors["form"]}
            </p>
          )}
          <div class="buttons">
            <button class="main" disabled={busy}>
              Begin the experiment
            </button>
          </div>
        </form>
        <Planned form={form} chosen={chosen} />
      </div>
    </>
  );
}

function asked(form: Form, chosen: Policy | undefined): object {
  return {
    name: form.name.trim(),
    arms: armsOf(form.arms),
    policy: form.policy,
    ...(chosen?.epsilon === false ? {} : { epsilon: form.epsilon.trim() }),
    ...(chosen?.levels ? { levels: levelsOf(form.levels) } : {}),
    ...(chosen?.least_level ? { options: { epsilon_min: "auto" } } : {}),
    ...(chosen?.horizon ? { horizon: Math.round(Number(form.traffic) * Number(form.days)) } : {}),
    response_window: form.window.trim() ? Number(form.window) : null,
    max_responses_per_user: form.cap.trim() ? Number(form.cap) : null,
  };
}

const FIELDS: Record<string, keyof Form> = { max_responses_per_user: "cap", response_window: "window", horizon: "days" };

/** What the server refused, by the field it is about. */
function refusals(error: unknown): Record<string, string> {
  if (!(error instanceof Refused)) return { form: error instanceof Away ? `Nothing was begun: ${error.message}.` : String(error) };
  const { parameter, detail, errors } = error.problem;
  const found: Record<string, string> = {};
  for (const one of errors ?? [{ parameter: parameter ?? "form", detail }]) {
    const root = one.parameter.split(".")[0]!;
    const field = FIELDS[root] ?? root;
    found[field in START ? field : "form"] ??= one.detail.replace(new RegExp(`^${root}:? `), "");
  }
  return found;
}

interface About {
  id: string;
  "aria-invalid": "true" | undefined;
  "aria-describedby": string | undefined;
}

/** A label, what is entered, and below it help or what is wrong. */
function Labelled({ name, label, help, error, children }: { name: string; label: string; help: string; error: string | undefined; children: (about: About) => VNode }) {
  const about = error || help ? `${name}-help` : undefined;
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children({ id: name, "aria-invalid": error ? "true" : undefined, "aria-describedby": about })}
      {about && (
        <small id={about} class={error ? "wrong" : ""}>
          {error || help}
        </small>
      )}
    </div>
  );
}

type Typed = (event: { currentTarget: { value: string } }) => void;

function Field({ name, label, help, error, ...input }: { name: string; label: string; help: string; error: string | undefined; value: string; onInput: Typed }) {
  return (
    <Labelled name={name} label={label} help={help} error={error}>
      {(about) => <input name={name} autocomplete="off" {...about} {...input} />}
    </Labelled>
  );
}

const GROUPS = [
  ["local", "Private on each device: nobody need trust the server"],
  ["central", "A trusted server sees rewards, and reveals none"],
  ["none", "No privacy"],
] as const;

function PolicyField({ policies, value, error, onInput }: { policies: Policy[]; value: string; error: string | undefined; onInput: Typed }) {
  const paper = policies.find((policy) => policy.name === value)?.paper ?? "";
  return (
    <Labelled name="policy" label="Policy, and whom users must trust" help={paper} error={error}>
      {(about) => (
        <select value={value} onInput={onInput} {...about}>
          {GROUPS.map(([trust, words]) => (
            <optgroup key={trust} label={words}>
              {policies
                .filter((policy) => policy.trust === trust)
                .sort((a, b) => Number(b.strong) - Number(a.strong))
                .map((policy) => (
                  <option key={policy.name} value={policy.name}>
                    {policy.name}
                    {policy.strong ? " (recommended)" : policy.levels ? " (each user's own epsilon)" : ""}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      )}
    </Labelled>
  );
}

/** Ask again, twice, where the planner took too long: on a new machine it compiles first, and keeps what it has compiled. */
async function patiently<T>(ask: () => Promise<T>, tries = 2): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!tries || !(error instanceof Refused) || error.problem.status !== 503) throw error;
    return patiently(ask, tries - 1);
  }
}

/** The planner's answer, as one types. One question is asked at a time; the latest one counts. */
function Planned({ form, chosen }: { form: Form; chosen: Policy | undefined }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const levels = chosen?.levels ? levelsOf(form.levels) : [];
  const epsilon = chosen?.levels ? Math.max(...levels.map(value)) : value(form.epsilon.trim());
  const asks: [string, string][] = [
    ["policy", form.policy],
    ["arms", String(armsOf(form.arms).length)],
    ["best", String(Number(form.best) / 100)],
    ["gap", String(Number((Number(form.gap) / 100).toPrecision(12)))],
    ["traffic", form.traffic.trim()],
    ["days", form.days.trim()],
    ...levels.map((level): [string, string] => ["levels", level]),
  ];
  if (chosen?.epsilon !== false) asks.push(["epsilon", String(epsilon)]);
  const query = new URLSearchParams(asks).toString();
  useEffect(() => {
    const end = new AbortController();
    const timer = setTimeout(async () => {
      setBusy(true);
      try {
        setPlan(await patiently(() => get<Plan>(`v1/plan?${query}`, end.signal)));
        setWrong("");
      } catch (error) {
        if (end.signal.aborted) return;
        setPlan(null);
        setWrong(error instanceof Refused ? error.problem.detail : (error as Error).message);
      }
      if (!end.signal.aborted) setBusy(false);
    }, 500);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [query]);
  const trust = chosen?.trust ?? "local";
  return (
    <section class="card plan" aria-label="The plan" aria-busy={busy}>
      <h2>What to expect {busy && <span class="busy">simulating …</span>}</h2>
      {wrong && <p class="wrong">No plan: {wrong}</p>}
      {plan && <Forecasts plan={plan} stale={busy} />}
      {!plan && !wrong && <p class="quiet">The planner plays your experiment 20 times in simulation. This takes some seconds, and longer the first time.</p>}
      <h3>What epsilon means{chosen?.levels ? ", at the highest level" : ""}</h3>
      <p>{Number.isFinite(epsilon) && epsilon > 0 ? epsilonInWords(epsilon, trust) : "Epsilon must be a positive number, such as 0.1, 1 or 1/3."}</p>
      {plan && plan.other && plan.free && (
        <>
          <h3>What trust changes</h3>
          <p>{trustInWords(plan, plan.other)}</p>
        </>
      )}
      {plan?.caution && <p class="wrong">Caution: {plan.caution}.</p>}
    </section>
  );
}

function trustInWords(plan: Plan, other: NonNullable<Plan["other"]>): string {
  const change = plan.lost - other.lost;
  const noise = Math.hypot(plan.error, other.error);
  const rather = other.trust === "central" ? "If users trusted the server" : "If users did not have to trust the server";
  if (Math.abs(change) <= noise) return `${rather}, ${other.policy} would lose about as much.`;
  return `${rather}, ${other.policy} would lose ${number(other.lost)} (${percent(other.loss)}), ${number(Math.abs(change))} ${change > 0 ? "less" : "more"}.`;
}

function Forecasts({ plan, stale }: { plan: Plan; stale: boolean }) {
  const rows = [
    { words: `${plan.policy}, as here`, one: plan, mark: true },
    ...(plan.free ? [{ words: "the same without privacy", one: plan.free, mark: false }] : []),
    { words: "every arm equally often", one: plan.at_random, mark: false },
  ];
  const most = Math.max(...rows.map((row) => row.one.lost), 1e-9);
  const settled =
    plan.settled === null
      ? "The best arm does not get 90 % of the traffic in this time."
      : `The best arm gets 90 % of the traffic after ${whole(plan.settled)} visitors (${number((plan.settled / plan.rounds) * plan.days)} days).`;
  return (
    <div class={stale ? "stale" : ""}>
      <p class="big">
        <b>{percent(plan.loss)}</b> expected loss
      </p>
      <p>
        {number(plan.lost)} ± {number(plan.error)} rewards of the {whole(plan.paid)} that the best arm would bring to {whole(plan.rounds)} visitors. One
        experiment in 20 loses more than {number(plan.one_in_twenty)}. {settled}
      </p>
      {plan.lost > 0.8 * plan.at_random.lost && (
        <p class="wrong">
          That is practically what giving every arm equally often would lose. Take a larger epsilon, more visitors, or another policy.
        </p>
      )}
      <div class="rows" role="list">
        {rows.map((row) => (
          <div class="row" role="listitem" key={row.words}>
            <span class="name">{row.words}</span>
            <span class="track" aria-hidden="true">
              <i class={row.mark ? "part used" : "part open"} style={{ width: `${(100 * row.one.lost) / most}%` }} />
            </span>
            <span class="figure">
              <b>{number(row.one.lost)}</b>
              <small>lost</small>
            </span>
          </div>
        ))}
      </div>
      {plan.curve.length > 1 && (
        <>
          <h3>{plan.levels ? "Loss if all levels were lower or higher (the highest is shown)" : "Loss at other epsilons"}</h3>
          <LossCurve curve={plan.curve} at={plan.epsilon!} />
        </>
      )}
      <p class="quiet">
        {plan.runs} simulated experiments each. For more: <code>dpbandits plan</code>.
      </p>
    </div>
  );
}
