// SPDX-License-Identifier: MIT
// What the tests share: the built package, and a model.
const folder = process.env.TENSORGRAD_NPM ?? new URL('../../build/npm/', import.meta.url).href;
export const library = new URL('dist/tensorgrad.js', folder).href;
export const tg = await import(library);

const { Linear, Module, relu } = tg;

/** The model of examples/mlp_sin.cpp. */
export class Mlp extends Module {
  in = new Linear(1, 64);
  mid = new Linear(64, 64);
  out = new Linear(64, 1);
  forward(x) { return this.out.forward(relu(this.mid.forward(relu(this.in.forward(x))))); }
}

/** Numbers in [-1, 1), the same in every run: those of web/tests/golden.cpp. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) / 8388608 - 1;
  };
}
export const numbers = (count, seed, scale = 1) => {
  const next = random(seed);
  return Float32Array.from({ length: count }, () => next() * scale);
};

/** The number of the line that calls this. */
export const line = () => Number(/:(\d+):\d+\)?$/.exec(new Error().stack.split('\n')[2])[1]);
