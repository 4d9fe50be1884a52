// SPDX-License-Identifier: MIT
// Ops of the function being traced. It runs once, and its calls are recorded in WebAssembly.
import { UserError } from './errors.js';
import type { Instance } from './instance.js';
import { type Location, userLocation } from './location.js';
import { isPlainObject } from './realm.js';
import { Tensor, currentTrace } from './tensor.js';
import { encode } from './wire.js';

/** @internal Numbers of the parameters, buffers and layers of a model. */
export type EntryNumbers = ReadonlyMap<object, number>;

let traces = 0;
let current: Recording | undefined;

/** @internal A function being recorded. */
export class Recording {
  private readonly functions: Function[] = [];
  private readonly sources = new Map<unknown, Map<string, Tensor>>();

  constructor(private readonly instance: Instance, private readonly entries: EntryNumbers) {}

  /** Runs a function whose ops are recorded here. */
  run<T>(f: () => T): T {
    const before = current, serial = currentTrace.serial;
    current = this;
    currentTrace.serial = ++traces;
    try {
      return f();
    } finally {
      current = before;
      currentTrace.serial = serial;
    }
  }

  call(name: string, args: readonly unknown[], [file, line]: Location): any {
    const ready = args.map((each) => resolve(name, each));
    const number = (f: Function) => this.functions.push(f) - 1;
    return this.instance.call(encode([name, file, line, ...ready], number));
  }

  callback(number: number, args: unknown[]): unknown {
    return this.functions[number]!(...args);
  }

  /** Returns the tensor of a parameter or buffer: the same one for each use, unless it is set. */
  source(op: string, owner: object, name: string, at: Location): Tensor {
    let known = this.sources.get(owner);
    if (!known) this.sources.set(owner, (known = new Map()));
    let tensor = known.get(name);
    if (!tensor) {
      const args = name ? [this.entry(owner, `layer of '${name}'`), name]
        : [this.entry(owner, op.slice(1))];
      known.set(name, (tensor = this.call(op, args, at) as Tensor));
    }
    return tensor;
  }

  forget(owner: object): void { this.sources.delete(owner); }

  entry(owner: object, what: string): number {
    const number = this.entries.get(owner);
    if (number === undefined) {
      throw new UserError(
        `the model does not have the ${what}: make it a field of the model, or of a module in it`);
    }
    return number;
  }
}

// Checks that tensors belong to the function being traced. Parameters become tensors before the
// call is encoded.
function resolve(name: string, value: any): unknown {
  if (value instanceof Tensor) {
    if (value.trace !== currentTrace.serial)
      throw new UserError(`${name}: the tensor belongs to another traced function`);
    return value;
  }
  if (Array.isArray(value)) return value.map((each) => resolve(name, each));
  if (isPlainObject(value))
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(name, v)]));
  if (value !== null && typeof value === 'object' && 'tensor' in value) return value.tensor();
  return value;
}

/** @internal Returns the function being traced. */
export function recording(what: string): Recording {
  if (!current) {
    throw new UserError(`${what}: ops can only be called in a function that is being traced: the ` +
      'loss of compile(), or the function of attach() or compileFunction()');
  }
  return current;
}

/** @internal Calls an op. `depth` is the number of calls between the user's line and this one. */
export function op(name: string, args: readonly unknown[], depth = 2): any {
  return recording(name).call(name, args, userLocation(depth + 1));
}
