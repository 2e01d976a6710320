// From a reward to what is sent, as the server's curator block says.
import { bernoulliCurator, laplaceCurator, piecewiseCurator, real, sigmoidCurator, type Entropy } from "./device.js";
import type { CuratorBlock } from "./types.js";

/** The function from rewards to responses that a server's block describes. `entropy` is for tests only. */
export function responder({ mechanism, epsilon, range, sigmoid }: CuratorBlock, entropy?: Entropy): (reward: unknown) => number | bigint {
  const make = { bernoulli: bernoulliCurator, laplace: laplaceCurator, piecewise: piecewiseCurator }[mechanism];
  if (!make) throw new RangeError(`mechanism must be bernoulli, laplace or piecewise, got '${mechanism}'`);
  const inner = make(epsilon!, entropy);
  const { respond } = sigmoid ? sigmoidCurator(inner) : inner;
  return (reward) => {
    let value = real(reward);
    if (range) {
      value = (value - range[0]) / (range[1] - range[0]);
      value = value > 0 ? Math.min(value, 1) : 0;
    }
    return respond(value);
  };
}

/** A reward as JSON has it, for a server that keeps the curator itself. */
export function plain(reward: unknown, range: CuratorBlock["range"]): number {
  const value = real(reward);
  return Number.isNaN(value) ? (range?.[0] ?? 0) : Math.max(-1e308, Math.min(value, 1e308));
}
