// Differentially private responses on a user's device: curators, a budget, a store. `dpbandits/client` adds HTTP.
export {
  bernoulliCurator,
  BudgetError,
  Device,
  exponential,
  indexedDBStore,
  laplaceCurator,
  logistic,
  piecewiseCurator,
  randomisedResponse,
  rational,
  sigmoidCurator,
} from "./device.js";
export type { Curator, Entropy, Probability, Rational, Store } from "./device.js";
