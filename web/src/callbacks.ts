// SPDX-License-Identifier: MIT
// Ops that take functions. web/bindings/callbacks.cpp has their counterparts.
import { op } from './tracing.js';
import type { Tensor, TensorLike } from './tensor.js';

/**
 * Returns `f(...inputs)`, but does not keep its intermediate values for the backward pass, which
 * recomputes them.
 */
export function checkpoint(f: (...inputs: Tensor[]) => TensorLike,
                           inputs: readonly TensorLike[]): Tensor {
  return op('checkpoint', [(all: Tensor[]) => f(...all), inputs]);
}

/**
 * Returns `forward(...inputs)` with the gradient that `backward` defines. `backward(inputs, y, dy)`
 * returns one gradient for each input.
 */
export function customGradient(
  inputs: readonly TensorLike[], forward: (...inputs: Tensor[]) => TensorLike,
  backward: (inputs: Tensor[], y: Tensor, dy: Tensor) => readonly TensorLike[]): Tensor {
  return op('customGradient', [
    inputs, (all: Tensor[]) => forward(...all),
    (all: Tensor[], [y]: [Tensor], [dy]: [Tensor]) => backward(all, y, dy)]);
}

/**
 * Returns the scan y[0] = x[0], y[t] = combine(y[t-1], x[t]) along an axis, of one tensor or of
 * several together. With `reverse`, starts from the end of the axis. `combine` is associative and
 * receives segments of equal size.
 */
export function associativeScan(
  combine: (earlier: Tensor, later: Tensor) => TensorLike, x: TensorLike, axis?: number,
  reverse?: boolean): Tensor;
export function associativeScan(
  combine: (earlier: Tensor[], later: Tensor[]) => readonly TensorLike[], xs: readonly TensorLike[],
  axis?: number, reverse?: boolean): Tensor[];
export function associativeScan(combine: Function, x: unknown, axis?: number,
                                reverse?: boolean): any {
  const many = Array.isArray(x);
  const call = (earlier: Tensor[], later: Tensor[]) =>
    many ? combine(earlier, later) : combine(earlier[0], later[0]);
  return op('associativeScan', [call, x, axis, reverse]);
}

// Calls `f` in a C++ scope and returns its result.
function scoped<T>(name: string, on: boolean, f: () => T): T {
  let result: T;
  op(name, [on, () => { result = f(); return []; }], 3);
  return result!;
}

/** Calls `f` with the training flag set, for example to run a part of a model without dropout. */
export function trainingMode<T>(training: boolean, f: () => T): T {
  return scoped('$trainingMode', training, f);
}

/** Calls `f` with mixed precision switched on or off. */
export function autocast<T>(enabled: boolean, f: () => T): T {
  return scoped('$autocast', enabled, f);
}
