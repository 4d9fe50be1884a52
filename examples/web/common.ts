// SPDX-License-Identifier: MIT
// Common parts of the ports: seeded random numbers, and the defaults of tensorgrad 0.4.6.
import { init, type Init, type ParamGroup } from 'tensorgrad';

/** Options of a sample. */
export interface Options {
  /** Number of steps; each sample has its own default. */
  steps?: number;
  /** Seed of initial values and data. Default: 1 */
  seed?: number;
  /** Device of compile(). Default: the best one */
  device?: string;
  /** Receives a line of text from time to time. */
  log?: (line: string) => void;
}

/** Result of a sample. */
export interface Result {
  /** Number of parameters of the model. */
  parameters: number;
  /** Loss of each step. */
  losses: number[];
}

/** Returns a function of uniform random numbers in [0, 1): the same sequence for each seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {  // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Initial values of 0.4.6: weights are normal with deviation 0.02, biases are 0. */
export function initial(name: string, shape: readonly number[]): Init | undefined {
  if (name.endsWith('bias')) return init.zeros();
  return shape.length > 1 ? init.normal(0, 0.02) : undefined;  // those of norms are 1
}

/** Weight decay of 0.4.6: biases and the weights of norms do not decay. */
export const groups: ParamGroup[] = [
  { params: (_, shape) => shape.length < 2, name: 'without decay', weightDecay: 0 }];

/** Number of elements of all parameters. */
export async function count(
  trainer: { downloadParams(): Promise<{ [name: string]: { data: ArrayLike<number> } }> },
): Promise<number> {
  const all = Object.values(await trainer.downloadParams());
  return all.reduce((sum, { data }) => sum + data.length, 0);
}

/** Returns the index of the largest of values[first], ..., values[first + n - 1], minus `first`. */
export function argmax(values: ArrayLike<number>, first = 0, n = values.length - first): number {
  let at = 0;
  for (let i = 1; i < n; ++i) if (values[first + i]! > values[first + at]!) at = i;
  return at;
}

/** Draws an index with probabilities proportional to e^logit. */
export function draw(logits: ArrayLike<number>, first: number, n: number, next: () => number): number {
  const weights = Array.from({ length: n }, (_, i) => Math.exp(logits[first + i]!));
  let left = next() * weights.reduce((a, b) => a + b, 0);
  return Math.max(0, weights.findIndex((each) => (left -= each) < 0));
}

/** Images of digits. */
export interface Digits {
  images: Uint8Array;  // [count, 28, 28], 0 to 255
  labels: ArrayLike<number>;
}
