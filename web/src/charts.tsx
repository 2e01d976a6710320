// Charts: shares over time with uPlot, everything else with plain elements.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Arm, Forecast, Shares, Summary } from "./api";
import { armColour, colours, COLOURS, onTheme } from "./theme";
import { number, percent, value, whole } from "./words";

/** Seconds between the marks of a time axis. */
const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000];
const ENOUGH = 25; // decisions in a step before its shares are worth a point
const POINTS = 400; // at most: a screen shows no more
const SHOWN = COLOURS - 1; // arms with a colour of their own; the others are one band

function sum(row: number[], from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += row[i]!;
  return total;
}

/** The rows with the largest totals, in their order. */
function largest(rows: number[][], most: number): number[] {
  const totals = rows.map((row) => sum(row, 0, row.length));
  return [...rows.keys()].sort((a, b) => totals[b]! - totals[a]!).slice(0, most).sort((a, b) => a - b);
}

/** Stacked shares: for each arm the share of it and of those below, over time. */
export function stacked(shares: Shares): { names: string[]; data: uPlot.AlignedData } {
  const many = shares.arms.length > COLOURS;
  const order = [...shares.arms.keys()];
  const kept = many ? largest(shares.decisions, SHOWN) : order;
  const rows = kept.map((arm) => shares.decisions[arm]!);
  const names = kept.map((arm) => shares.arms[arm]!);
  if (many) {
    const rest = order.filter((arm) => !kept.includes(arm));
    rows.push(shares.time.map((_, i) => rest.reduce((total, arm) => total + shares.decisions[arm]![i]!, 0)));
    names.push(`${rest.length} others`);
  }
  const times: number[] = [];
  const columns: number[][] = rows.map(() => []);
  const open = rows.map(() => 0); // decisions since the last point
  const steps = shares.time.length;
  const group = Math.ceil(steps / POINTS);
  for (let first = 0; first < steps; first += group) {
    const end = Math.min(first + group, steps);
    let count = 0;
    for (let arm = 0; arm < rows.length; arm++) {
      open[arm]! += sum(rows[arm]!, first, end);
      count += open[arm]!;
    }
    const last = end === steps;
    if (last ? times.length && (count < ENOUGH || end - first < group) : count < ENOUGH) continue;
    times.push(shares.time[times.length ? end - 1 : 0]!);
    let below = 0;
    for (let arm = 0; arm < rows.length; arm++) {
      below += open[arm]!;
      columns[arm]!.push(below / Math.max(count, 1));
      open[arm] = 0;
    }
  }
  if (times.length === 1) {
    times.push(times[0]! + Math.max(shares.step_seconds, 1));
    for (const column of columns) column.push(column[0]!);
  }
  return { names, data: [times, ...columns.reverse()] as uPlot.AlignedData };
}

export function ShareChart({ shares, height = 240 }: { shares: Shares; height?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const started = performance.now();
  const { names, data } = useMemo(() => stacked(shares), [shares]);
  const count = names.length;
  const latest = useRef(data); // what is drawn
  const began = useRef(0); // when the last drawing began: benchmarks/page.py reads how long it took

  useLayoutEffect(() => {
    const within = box.current!;
    const drawn = (): void => void performance.measure("chart", { start: began.current });
    let width = within.clientWidth;
    const make = (from: number): void => {
      plot.current?.destroy();
      began.current = from;
      plot.current = new uPlot(options(within, width, height, count, drawn), latest.current, within);
    };
    latest.current = data;
    make(started);
    const fit = new ResizeObserver(() => {
      if (within.clientWidth === width) return; // it is observed for the first time
      began.current = performance.now();
      width = within.clientWidth;
      plot.current?.setSize({ width, height });
    });
    fit.observe(within);
    const end = onTheme(() => make(performance.now()));
    return () => {
      end();
      fit.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [count, height]);
  useLayoutEffect(() => {
    if (latest.current === data) return; // it was just made with them
    latest.current = data;
    began.current = started;
    plot.current?.setData(data);
  }, [data]);

  const last = data[0].length - 1;
  const now = names.map((name, arm) => {
    const top = (data[count - arm] as number[])[last] ?? 0;
    const below = arm ? ((data[count - arm + 1] as number[])[last] ?? 0) : 0;
    return { name, share: top - below };
  });
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={`Share of traffic over time. Now: ${now.map((one) => `${one.name} ${percent(one.share)}`).join(", ")}.`} />
      <figcaption class="legend">
        {now.map((one, arm) => (
          <span key={one.name}>
            <i style={{ background: armColour(arm) }} />
            {one.name} <b>{percent(one.share)}</b>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function options(within: HTMLElement, width: number, height: number, arms: number, drawn: () => void): uPlot.Options {
  const bands = Array.from({ length: arms }, (_, i) => `arm${(arms - 1 - i) % COLOURS}`);
  const [quiet, line, card, ...fills] = colours(within, ["quiet", "line", "card", ...bands]);
  const axis = { stroke: quiet!, grid: { stroke: line!, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width,
    height,
    hooks: { draw: [drawn] },
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: [0, 1] }, x: { time: true } },
    padding: [8, 28, 0, 0],
    axes: [
      { ...axis, grid: { show: false }, space: 80, size: 30, incrs: STEPS, values: (_, ticks) => ticks.map(clock(ticks)) },
      { ...axis, size: 48, splits: () => [0, 0.25, 0.5, 0.75, 1], values: (_, ticks) => ticks.map((y) => `${100 * y} %`) },
    ],
    series: [{}, ...fills.map((fill) => ({ fill, stroke: card!, width: 1, points: { show: false } }))],
  };
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec".split(" ");
const two = (n: number): string => String(n).padStart(2, "0");

/** Times of an axis: with seconds, with minutes, or as days, as its steps need. Making an Intl format takes milliseconds. */
function clock(ticks: number[]): (time: number) => string {
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0);
  return (time) => {
    const at = new Date(time * 1000);
    if (step >= 86400) return `${at.getDate()} ${MONTHS[at.getMonth()]}`;
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
    return step < 60 ? `${minutes}:${two(at.getSeconds())}` : minutes;
  };
}

/** Estimates with their intervals, on one scale. */
export function Estimates({ arms, low, high }: { arms: Arm[]; low: number; high: number }) {
  const known = arms.filter((arm) => arm.estimate);
  if (!known.length) return <p class="quiet">No estimate yet: nothing has been released.</p>;
  const ends = known.flatMap((arm) => arm.estimate!.interval ?? [arm.estimate!.mean]);
  const from = Math.max(low, Math.min(...ends));
  const to = Math.min(high, Math.max(...ends));
  const pad = 0.06 * (to - from || high - low || 1);
  const [left, right] = [Math.max(low, from - pad), Math.min(high, to + pad)];
  const place = (x: number): number => (100 * (Math.min(Math.max(x, left), right) - left)) / (right - left || 1);
  return (
    <div class="rows" role="list">
      {arms.map((arm, i) => {
        const e = arm.estimate;
        const within = (x: number): number => Math.min(Math.max(x, low), high);
        const ends = e?.interval?.map(within);
        return (
          <div class="row" role="listitem" key={arm.arm}>
            <span class="name">{arm.arm}</span>
            <span class="track scale" aria-hidden="true">
              {e?.interval && (
                <i
                  class="interval"
                  style={{ left: `${place(e.interval[0])}%`, width: `${place(e.interval[1]) - place(e.interval[0])}%`, background: armColour(i) }}
                />
              )}
              {e && <i class="dot" style={{ left: `${place(e.mean)}%`, background: armColour(i) }} />}
            </span>
            <span class="figure">
              {e ? (
                <>
                  <b>{number(within(e.mean))}</b>
                  <small>{ends ? `${number(ends[0]!)} to ${number(ends[1]!)}` : "error not stated"}</small>
                </>
              ) : (
                <small>nothing yet</small>
              )}
            </span>
          </div>
        );
      })}
      <div class="row axis" aria-hidden="true">
        <span />
        <span class="ends">
          <span>{number(left)}</span>
          <span>{number(right)}</span>
        </span>
        <span />
      </div>
    </div>
  );
}

const OUTCOMES = [
  ["used", "used"],
  ["apart", "came, not learned from"],
  ["late", "late"],
  ["silent", "not asked for"],
  ["open", "on its way or missing"],
] as const;

/** Responses against decisions, for each arm. */
export function Responses({ arms }: { arms: Arm[] }) {
  const most = Math.max(...arms.map((arm) => arm.decisions), 1);
  const rows = arms.map((arm) => {
    const c = arm.counts;
    return { name: arm.arm, total: arm.decisions, parts: { ...c, open: Math.max(c.decisions - c.silent - c.used - c.apart - c.late, 0) } };
  });
  const used = OUTCOMES.filter(([key]) => key === "used" || rows.some((row) => row.parts[key]));
  return (
    <>
      <div class="rows" role="list">
        {rows.map((row) => (
          <div class="row" role="listitem" key={row.name}>
            <span class="name">{row.name}</span>
            <span class="track" aria-hidden="true">
              {used.map(([key]) => (
                <i key={key} class={`part ${key}`} style={{ width: `${(100 * row.parts[key]) / most}%` }} />
              ))}
            </span>
            <span class="figure">
              <b>{whole(row.parts.used + row.parts.apart)}</b>
              <small>of {whole(row.total)}</small>
            </span>
          </div>
        ))}
      </div>
      <p class="legend">
        {used.map(([key, words]) => (
          <span key={key}>
            <i class={key} />
            {words} <b>{whole(rows.reduce((sum, row) => sum + row.parts[key], 0))}</b>
          </span>
        ))}
      </p>
    </>
  );
}

const QUANTILES: [string, string][] = [
  ["0.5", "half of the users"],
  ["0.9", "9 of 10 users"],
  ["0.99", "99 of 100 users"],
  ["1.0", "every user"],
];

/** What users have spent, against the most that they can spend. */
export function Spending({ users, cost }: { users: Summary["users"]; cost: number | null }) {
  if (!users.epsilon) return <p class="quiet">No user who was named has answered yet.</p>;
  const cap = users.max_responses && cost ? users.max_responses * cost : null;
  const spent = QUANTILES.map(([q, words]) => ({ words, epsilon: value(users.epsilon![q]!) }));
  const most = Math.max(cap ?? 0, ...spent.map((one) => one.epsilon));
  return (
    <>
      <div class="rows" role="list">
        {spent.map(({ words, epsilon }) => (
          <div class="row" role="listitem" key={words}>
            <span class="name">{words}</span>
            <span class="track" aria-hidden="true">
              <i class="part used" style={{ width: `${(100 * epsilon) / most}%` }} />
            </span>
            <span class="figure">
              <b>{number(epsilon)}</b>
              <small>at most</small>
            </span>
          </div>
        ))}
      </div>
      <p class="quiet">
        Epsilons of {whole(users.count)} users, added up.{" "}
        {cap ? `The cap is ${number(cap)}: ${users.max_responses} responses are taken from each user.` : "There is no cap: set max_responses_per_user in the next experiment."}
      </p>
    </>
  );
}

/** The loss at other epsilons, as a curve. */
export function LossCurve({ curve, at }: { curve: Forecast[]; at: number }) {
  const points = curve.filter((point) => point.loss !== null && point.epsilon !== null);
  if (points.length < 2) return null;
  const [w, h, bottom, side] = [320, 132, 24, 40];
  const top = Math.max(...points.map((point) => point.loss!)) * 1.1 || 1;
  const x = (i: number): number => side + (i * (w - side - 12)) / (points.length - 1);
  const y = (loss: number): number => 8 + (1 - loss / top) * (h - bottom - 8);
  const line = points.map((point, i) => `${i ? "L" : "M"}${x(i)} ${y(point.loss!)}`).join("");
  return (
    <svg class="curve" viewBox={`0 0 ${w} ${h}`} role="img" aria-label={`Loss by epsilon: ${points.map((p) => `${percent(p.loss)} at ${p.epsilon}`).join(", ")}`}>
      {[0, top / 1.1].map((loss) => (
        <g key={loss}>
          <line x1={side} x2={w - 12} y1={y(loss)} y2={y(loss)} class="gridline" />
          <text x={side - 6} y={y(loss) + 4} text-anchor="end">
            {percent(loss)}
          </text>
        </g>
      ))}
      <path d={line} class="stroke" />
      {points.map((point, i) => (
        <g key={point.epsilon}>
          <circle cx={x(i)} cy={y(point.loss!)} r={point.epsilon === at ? 5 : 3} class={point.epsilon === at ? "here" : "point"} />
          <text x={x(i)} y={h - 6} text-anchor="middle">
            {number(point.epsilon!)}
          </text>
        </g>
      ))}
    </svg>
  );
}
