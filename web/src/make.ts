// SPDX-License-Identifier: MIT
// Values that C++ constructs by name: initial values, schedules and optimizers.
import { type Location, userLocation } from './location.js';
import { wire } from './wire.js';

class Made {
  private readonly at: Location = userLocation(4);
  /** @internal */
  constructor(readonly make: string, readonly args: readonly unknown[]) {}
  /** @internal */
  [wire]() {
    return { make: this.make, arguments: this.args, file: this.at[0], line: this.at[1] };
  }
}

/** Rule for the initial values of a parameter; see the functions of `init`. */
export class Init extends Made { declare private readonly kind: 'init'; }

/** Learning rate as a function of the step; see the functions of `schedule`. */
export class Schedule extends Made { declare private readonly kind: 'schedule'; }

/** Optimizer with its options; see the functions of `optim`. */
export class Optimizer {
  /** @internal */
  constructor(readonly make: string, readonly options: object) {}
  /** @internal Returns a copy with other options. */
  with(options: object): Optimizer {
    return new Optimizer(this.make, { ...this.options, ...options });
  }
  /** @internal */
  [wire]() { return { make: this.make, options: this.options }; }
}

/** Hyperparameter of an optimizer that `trainer.set()` can change; see adjustable(). */
export interface Adjustable { readonly adjustable: number }

/**
 * Returns a hyperparameter that `trainer.set()` can change without recompiling. It starts as
 * `value`, and has the name of the field, for example "beta1".
 */
export function adjustable(value: number): Adjustable { return { adjustable: value }; }
