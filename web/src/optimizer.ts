// SPDX-License-Identifier: MIT
// Optimizers written in TypeScript. web/bindings/update_ops.cpp has their counterparts.
import { Optimizer, type Adjustable, type Schedule } from './make.js';
import type { ParamFilter } from './options.js';
import type { Tensor, TensorLike } from './tensor.js';
import { op } from './tracing.js';
import { wire } from './wire.js';

/** Name and shape of a trained parameter. */
export interface ParamInfo { name: string; shape: number[] }

/**
 * One update of the parameters, which the function of optim.custom() traces. All tensors are f32.
 * Flat tensors have shape [N] and concatenate the elements of all trained parameters. Parameters can
 * be padded with zeros there.
 */
export class Update {
  /** Flat parameters. */
  get param(): Tensor { return op('update.param', []); }
  /** Flat gradients. Clipping and accumulation are already applied. */
  get grad(): Tensor { return op('update.grad', []); }
  /** Learning rate: [], or flat if parameter groups have different rates. */
  get lr(): Tensor { return op('update.lr', []); }
  /** Number of this update [], from 1. Updates skipped by loss scaling do not count. */
  get step(): Tensor { return op('update.step', []); }
  /** Returns an optimizer state: a flat tensor that keeps its value between updates. */
  state(name: string, initial = 0): Tensor { return op('update.state', [name, initial]); }
  /** Sets the value of a state after this update. Throws UserError unless state() made it. */
  setState(name: string, value: TensorLike): void { op('update.setState', [name, value]); }
  /** Sets the parameters after this update. Compiling throws UserError if nothing calls it. */
  setParam(value: TensorLike): void { op('update.setParam', [value]); }
  /**
   * Returns the weight decay, or nothing if it is 0 for all parameters. It is a run-time scalar
   * "weight_decay" [] that starts as `initial`. If parameter groups have other values, it is flat.
   */
  weightDecay(initial: number): Tensor | undefined { return op('update.weightDecay', [initial]); }
  /** Returns a hyperparameter []. If it is adjustable, `trainer.set()` accepts [0, below). */
  hyperparameter(name: string, number: number | Adjustable, below = Infinity): Tensor {
    return op('update.hyperparameter', [name, number, below]);
  }
  /** Returns the trained parameters in the order of the flat tensors. */
  paramInfos(): ParamInfo[] { return op('update.paramInfos', []); }
  /** Returns the elements of a flat tensor that belong to parameter `index`, in its shape. */
  paramView(flat: TensorLike, index: number): Tensor { return op('update.paramView', [flat, index]); }
  /** Returns the flat tensor of one tensor per parameter; null stands for zeros. */
  flatten(params: readonly (TensorLike | null)[]): Tensor { return op('update.flatten', [params]); }
  /** Returns a flat boolean tensor that is true for the elements of parameters that `filter` selects. */
  mask(filter: ParamFilter): Tensor<readonly number[], 'bool'> {
    const names = typeof filter !== 'function' ? filter
      : this.paramInfos().filter(({ name, shape }) => filter(name, shape)).map(({ name }) => name);
    return op('update.mask', [names]);
  }
}

/** Options of optim.custom(). */
export interface CustomOptions {
  /** Learning rate. */
  lr: number | Schedule;
  /** Traces an update with ops. It is called once, while compiling. */
  update: (update: Update) => void;
  /** Parameters for which update.mask() is cheap. */
  params?: ParamFilter;
}

/** @internal An optimizer that is recorded for the model that it trains. */
export class CustomOptimizer extends Optimizer {
  declare readonly options: CustomOptions;
  constructor(options: CustomOptions, private readonly tape?: unknown) { super('custom', options); }
  override with(options: object): Optimizer {
    return new CustomOptimizer({ ...this.options, ...options }, this.tape);
  }
  recorded(tape: unknown): Optimizer { return new CustomOptimizer(this.options, tape); }
  override [wire]() {
    const { lr, params } = this.options;
    return { make: 'custom', lr, params, tape: this.tape } as any;
  }
}

/**
 * Returns an optimizer whose update is written with ops.
 * ```ts
 * optim.custom({ lr: 1e-3, update: (u) => u.setParam(sub(u.param, mul(u.lr, sign(u.grad)))) })
 * ```
 */
export function custom(options: CustomOptions): Optimizer { return new CustomOptimizer(options); }
