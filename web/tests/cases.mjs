// SPDX-License-Identifier: MIT
// Numbers and calls of cases.py, for node and for pages.

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
export const integers = (count, seed, below) =>
  Int32Array.from(numbers(count, seed), (each) => Math.fround(Math.fround(each + 1) / 2 * below));

/** Values of an input of a case, the i-th. */
export function valuesOf({ shape, dtype }, i) {
  const count = shape.reduce((a, b) => a * b, 1);
  return dtype === 'f32' ? numbers(count, i + 1)
    : dtype === 'i32' ? integers(count, i + 1, 2) : Uint32Array.from(integers(count, i + 1, 2));
}

function flat(tg, result, all = []) {
  if (result instanceof tg.Tensor) all.push(result);
  else for (const each of Object.values(result)) flat(tg, each, all);
  return all;
}

/** Calls the op of a case on tensors by the names of its inputs, and returns its results. */
export function call(tg, { op, arguments: args }, tensors) {
  const value = (each) => {
    if (each === null || typeof each !== 'object') return each;
    if (Array.isArray(each)) return each.map(value);
    if ('input' in each) return tensors[each.input];
    if ('call' in each) return tg[each.call](...each.arguments.map(value));
    return Object.fromEntries(
      Object.entries(each.options).map(([name, option]) => [name, value(option)]));
  };
  return flat(tg, tg[op](...args.map(value)));
}
