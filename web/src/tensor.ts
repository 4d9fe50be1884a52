// SPDX-License-Identifier: MIT
// Symbolic tensors: values in a function that is being traced.
import type { DType } from './generated/types.js';

export type { DType };

/**
 * Value in the function being traced. It has a shape and an element type, but no elements until the
 * compiled program runs. Ops are functions.
 */
export class Tensor<Shape extends readonly number[] = readonly number[]> {
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

/** Operand of a pointwise op: a tensor or a number, which takes the type of the other operand. */
export type Operand = TensorLike | number;
