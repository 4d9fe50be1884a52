// SPDX-License-Identifier: MIT
// Symbolic tensors: values in the function being traced.
import type { DType } from './generated/types.js';

export type { DType };

/**
 * Value in the function being traced. It has a shape and an element type, but no elements until the
 * compiled program runs. Ops are functions.
 *
 * `T` is the element type known to TypeScript. It determines the type of results in host memory,
 * and is not checked when a tensor is passed to an op. To TypeScript, results of ops are f32 unless
 * the op always returns another type. cast() sets the type.
 */
export class Tensor<Shape extends readonly number[] = readonly number[], T extends DType = 'f32'> {
  /** @internal */
  constructor(readonly id: number, shape: readonly number[], readonly dtype: DType) {
    this.shape = shape as Shape;
    this.trace = currentTrace.serial;
  }

  /** Sizes of the axes, outermost first. */
  readonly shape: Shape;

  /** @internal */
  readonly trace: number;

  /** Number of axes. */
  get rank(): number { return this.shape.length; }
}

/** @internal Serial number of the function being traced; never reused. */
export const currentTrace = { serial: 0 };

/** Parameter or buffer of a model, as an operand. */
export interface TensorSource {
  /** Returns the value in the function being traced. */
  tensor(): Tensor;
}

/** A tensor, or a parameter or buffer of the model. */
export type TensorLike = Tensor | TensorSource;

/** Element type of a tensor, as known to TypeScript. */
export type DTypeOf<X> = X extends Tensor<any, infer T> ? T : 'f32';

/** Operand of a pointwise op: a tensor or a number, which takes the type of the other operand. */
export type Operand = TensorLike | number;
