// SPDX-License-Identifier: MIT
// What the tests share: the built package, and a model.
const folder = process.env.TENSORGRAD_NPM ?? new URL('../../build/npm/', import.meta.url).href;
export const library = new URL('dist/tensorgrad.js', folder).href;
export const tg = await import(library);

// threads.test.mjs tests the modules with threads.
tg.assets.threads = false;

const { Linear, Module, relu } = tg;

/** The model of examples/mlp_sin.cpp. */
export class Mlp extends Module {
  in = new Linear(1, 64);
  mid = new Linear(64, 64);
  out = new Linear(64, 1);
  forward(x) { return this.out.forward(relu(this.mid.forward(relu(this.in.forward(x))))); }
}

export { integers, numbers } from './cases.mjs';

/** The number of the line that calls this. */
export const line = () => Number(/:(\d+):\d+\)?$/.exec(new Error().stack.split('\n')[2])[1]);
