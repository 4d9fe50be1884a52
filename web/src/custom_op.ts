// SPDX-License-Identifier: MIT
// Ops with kernels in WGSL. web/bindings/callbacks.cpp has their counterpart.
import type { DType } from './generated/types.js';
import { Tensor, type TensorLike } from './tensor.js';
import { op } from './tracing.js';

/** Shape and element type of a tensor. */
export interface TensorType { shape: readonly number[]; dtype: DType }

/** What a custom op computes. */
export interface CustomOpDefinition {
  /** Name of the op in errors, profiles and graphs. */
  name: string;
  /** Returns the type of the result, f32 or i32, for inputs of the given types. */
  infer: (inputs: TensorType[]) => TensorType;
  /**
   * Returns WGSL functions for inputs of the given types. One of them is
   * `fn element(i: u32) -> f32` (or `i32`), which returns element i of the result. It reads element
   * j of the inputs with `in0(j)`, `in1(j)` and so on; beyond the end they return zero.
   */
  wgsl: (inputs: TensorType[]) => string;
  /**
   * Returns one gradient for each input, of the input's type; see customGradient(). Without it,
   * taking a gradient throws UserError.
   */
  backward?: (inputs: Tensor[], y: Tensor, dy: Tensor) => readonly TensorLike[];
}

/**
 * User-defined op, for functions that are impossible or slow with other ops. Each element of its
 * result must be a function of the inputs only. It runs on WebGPU only, since a page cannot add a
 * kernel for the CPU.
 * ```ts
 * const hypotenuse = new CustomOp({
 *   name: 'hypotenuse', infer: ([a]) => a!,
 *   wgsl: () => 'fn element(i: u32) -> f32 { return length(vec2(in0(i), in1(i))); }',
 *   backward: ([a, b], y, dy) => [div(mul(dy, a!), y), div(mul(dy, b!), y)] });
 * const c = hypotenuse.call([a, b]);
 * ```
 */
export class CustomOp {
  /** Defines an op. */
  constructor(readonly definition: CustomOpDefinition) {}

  /**
   * Returns the result for 1 to 7 inputs, which are f32, i32, u32 or bool. In mixed precision, f16
   * inputs are converted to f32.
   */
  call(inputs: readonly TensorLike[]): Tensor {
    const { name, infer, wgsl, backward } = this.definition;
    const given = inputs.map((each) => (each instanceof Tensor ? each : each.tensor()));
    const types = given.map(({ shape, dtype }): TensorType =>
      ({ shape: [...shape], dtype: dtype === 'f16' ? 'f32' : dtype }));
    const { shape, dtype } = infer(types);
    return op('$customOp', [name, given, shape, dtype, wgsl(types), backward &&
      ((all: Tensor[], [y]: [Tensor], [dy]: [Tensor]) => backward(all, y, dy))]);
  }
}
