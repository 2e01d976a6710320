// Numbers and settings in plain words.

import type { Trust } from "./api";

export const whole = (n: number): string => Math.round(n).toLocaleString("en");

export function percent(share: number | null): string {
  if (share === null) return "–";
  const value = 100 * share;
  const text = value > 0 && value < 0.05 ? "< 0.1" : value >= 10 ? value.toFixed(0) : String(Number(value.toFixed(1)));
  return `${text}\u00a0%`;
}

/** Three significant digits below a hundred, whole from there on. */
export const number = (x: number): string => (Math.abs(x) >= 100 ? whole(x) : String(Number(x.toPrecision(3))));

/** An exact epsilon such as "1/3", as a number. */
export function value(epsilon: string): number {
  const [top, bottom] = epsilon.split("/");
  return Number(top) / Number(bottom ?? 1);
}

export function seconds(s: number | null): string {
  if (s === null) return "no limit";
  const units: [number, string][] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  for (const [size, unit] of units) {
    if (s >= size) {
      const n = Number((s / size).toPrecision(3));
      return `${n} ${unit}${n === 1 ? "" : "s"}`;
    }
  }
  return `${number(s)} seconds`;
}

export function ago(time: number): string {
  const passed = Date.now() / 1000 - time;
  if (passed < 60) return "just now";
  const unit = passed < 3600 ? 60 : passed < 86400 ? 3600 : 86400;
  return `${seconds(Math.floor(passed / unit) * unit)} ago`;
}

export const TRUST: Record<Trust, string> = {
  local: "on each device",
  central: "trusted server",
  none: "no privacy",
};

/** What an epsilon means. */
export function epsilonInWords(epsilon: number, trust: Trust): string {
  if (trust === "none") return "Nothing is promised: the server sees every reward, and its choices may reveal them.";
  const factor = Math.exp(epsilon);
  const times = factor >= 1e6 ? "more than a million" : number(factor);
  const strength =
    epsilon <= 0.5 ? "Very strong." : epsilon <= 1 ? "Strong." : epsilon <= 3 ? "Moderate." : epsilon <= 6 ? "Weak." : "Hardly any protection.";
  if (trust === "local") {
    const truth = factor / (1 + factor);
    return (
      `${strength} Think of a device that reports whether its user clicked: it tells the truth with probability ${percent(truth)}, ` +
      `and the opposite otherwise. Whoever sees the report can multiply the odds of a guess by ${times} at the most.`
    );
  }
  return (
    `${strength} Whatever anybody sees of the choices and results, they can multiply the odds of a guess about one reward ` +
    `by ${times} at the most. The server itself sees rewards.`
  );
}
