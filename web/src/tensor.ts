// SPDX-License-Identifier: MIT
// Symbolic tensors: values in a function that is being traced.
import type { DType } from './generated/types.js';

export type { DType };

/**
 * Value in the function being traced. It has a shape and an element type, but no elements until the
 * compiled program runs. Ops are functions.
 *
 * `T` is the element type as far as TypeScript knows it. It decides the type of results in host
 * memory, and is not checked when a tensor is passed to an op: results of ops are f32 for TypeScript
 * unless the op always returns another type. cast() tells it.
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

/** @internal The function that is being traced, by a number that is never used again. */
export const currentTrace = { serial: 0 };

/** Parameter or buffer of a model, as an operand. */
export interface TensorSource {
  /** Returns the value in the function being traced. */
  tensor(): Tensor;
}

/** A tensor, or a parameter or buffer of the model. */
export type TensorLike = Tensor | TensorSource;

/** Element type of a tensor as far as TypeScript knows it. */
export type DTypeOf<X> = X extends Tensor<any, infer T> ? T : 'f32';

/** Operand of a pointwise op: a tensor or a number, which takes the type of the other operand. */
export type Operand = TensorLike | number;
