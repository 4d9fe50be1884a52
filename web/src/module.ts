// SPDX-License-Identifier: MIT
// Models: modules whose fields are parameters, buffers, layers and modules.
import { UserError } from './errors.js';
import { type Location, userLocation } from './location.js';
import type { Init } from './make.js';
import { arrayType, isMapOrSet, isPlainObject } from './realm.js';
import { type EntryNumbers, op, recording } from './tracing.js';
import type { DType, Tensor, TensorLike, TensorSource } from './tensor.js';

/**
 * Trainable f32 tensor of a module. The object holds only the shape and the rule for the initial
 * values; the elements are on the device. In ops it stands for its value.
 */
export class Parameter implements TensorSource {
  /** @internal */
  readonly at: Location = userLocation(2);

  /** Declares a parameter, of zeros by default. */
  constructor(readonly shape: readonly number[], readonly init?: Init) {}

  /** Returns the value in the function being traced. */
  tensor(): Tensor {
    return recording('a parameter').source('$parameter', this, '', userLocation(2));
  }
}

/** Initial values of a buffer: one for all elements, or one for each. */
export type BufferValues = number | Float32Array | Int32Array | Uint32Array;
const dtypeOfValues = (values: BufferValues): DType => {
  const type = arrayType(values);
  return type === 'Int32Array' ? 'i32' : type === 'Uint32Array' ? 'u32' : 'f32';
};

/**
 * Tensor of a module that is not trained and keeps its value from step to step, such as a running
 * mean.
 */
export class Buffer implements TensorSource {
  /** @internal */
  readonly at: Location = userLocation(2);

  /** Declares a buffer whose elements start as `initial`, a number or the value of each. */
  constructor(readonly shape: readonly number[], readonly initial: BufferValues = 0,
              readonly dtype: DType = dtypeOfValues(initial)) {}

  /** Returns the value in the function being traced. */
  tensor(): Tensor {
    return recording('a buffer').source('$buffer', this, '', userLocation(2));
  }
  /** Sets the value for later reads and for the next step. */
  set(value: TensorLike): void {
    const trace = recording('a buffer');
    trace.forget(this);
    trace.call('$setBuffer', [trace.entry(this, 'buffer'), value], userLocation(2));
  }
}

/** Parameter of a layer, for example to use the weight of an embedding in the output layer. */
export class LayerParameter implements TensorSource {
  /** @internal */
  constructor(private readonly layer: Layer, readonly name: string) {}
  /** Returns the value in the function being traced. */
  tensor(): Tensor {
    return recording(this.name).source('$layerParameter', this.layer, this.name, userLocation(2));
  }
}

/**
 * Base class of models and of parts of models. Fields that are parameters, buffers, layers, modules
 * or arrays of these belong to the model; a parameter's name is the path of fields to it.
 * ```ts
 * class Mlp extends Module {
 *   hidden = new Linear(1, 64);
 *   out = new Linear(64, 1);
 *   forward(x: Tensor) { return this.out.forward(relu(this.hidden.forward(x))); }
 * }
 * ```
 */
export abstract class Module {
  /** Declares a parameter, of zeros by default. */
  protected param(shape: readonly number[], init?: Init): Parameter {
    return new Parameter(shape, init);
  }
  /** Declares a buffer. */
  protected buffer(shape: readonly number[], initial: BufferValues = 0,
                   dtype: DType = dtypeOfValues(initial)): Buffer {
    return new Buffer(shape, initial, dtype);
  }
}

/** Base class of the layers of the library. C++ makes their parameters and computes them. */
export abstract class Layer extends Module {
  /** @internal */
  readonly at: Location = userLocation(3);
  /** @internal */
  constructor(readonly type: string, readonly args: readonly unknown[]) { super(); }

  /** Returns a parameter by its path in the layer, for example "out_proj.weight". */
  parameter(path: string): LayerParameter { return new LayerParameter(this, path); }

  /** @internal */
  protected call(method: string, args: readonly unknown[]): any {
    const entry = recording(this.type).entry(this, this.type);
    return op(`${this.type}.${method}`, [entry, ...args], 3);
  }
}

/** Modules applied in order. Parameters are named by position, for example "0.weight". */
export class Sequential<M extends { forward(x: TensorLike): Tensor } & Module> extends Module {
  private readonly layers: readonly M[];
  /** Creates a sequence of modules. */
  constructor(...layers: M[]) { super(); this.layers = layers; }
  /** @internal */
  static fieldsOf(of: Sequential<any>): readonly Module[] { return of.layers; }
  /** Returns the output of the last module. */
  forward(x: TensorLike): Tensor {
    let y = x;
    for (const each of this.layers) y = each.forward(y);
    return y as Tensor;
  }
}

// Names of what a field holds. Those below layers, sequences and arrays begin with its name.
type NamesOf<T, K extends string, Depth extends unknown[]> =
  0 extends 1 & T ? K | `${K}.${string}`
  : T extends Parameter | Buffer ? K
  : T extends LayerParameter ? never
  : T extends Layer | Sequential<any> | readonly (Module | Parameter | Buffer | readonly unknown[])[]
    ? `${K}.${string}`
  : T extends Module ? `${K}.${ParameterNames<T, [...Depth, T]>}` : never;

/**
 * Names of the parameters and buffers of a model, as far as the types of its public fields contain
 * them: "scale", or "hidden.\${string}" if `hidden` is a layer. `string` if nothing is known, and for
 * modules in modules from the fifth level on.
 */
export type ParameterNames<M, Depth extends unknown[] = []> =
  0 extends 1 & M ? string
  : M extends Layer | Sequential<any> ? string
  : Depth['length'] extends 4 ? string
  : { [K in keyof M & string]-?: NamesOf<M[K], K, Depth> }[keyof M & string];

/** Values by the names of a model's parameters and buffers. */
export type ByParameter<M, T> =
  [ParameterNames<M>] extends [never] ? { readonly [name: string]: T }
  : string extends ParameterNames<M> ? { readonly [name: string]: T }
  : { readonly [K in ParameterNames<M>]?: T };

/** @internal A model as C++ reads it, and the numbers of its entries. */
export interface ModelEntries {
  readonly entries: object[];
  readonly numbers: EntryNumbers;
  /** Types of its layers. */
  readonly layers: ReadonlySet<string>;
}

/** @internal Lists the parts of a model in the order of its fields. */
export function entriesOf(model: object): ModelEntries {
  const entries: object[] = [], numbers = new Map<object, number>(), open: object[] = [];
  const add = (path: string, part: Parameter | Buffer | Layer) => {
    const [file, line] = part.at;
    const known = numbers.get(part);
    if (known !== undefined) {
      entries.push({ path, same: known });
      return;
    }
    numbers.set(part, entries.length);
    const { args, type } = part as Layer;
    entries.push(
      part instanceof Parameter
        ? { path, file, line, parameter: { shape: part.shape, init: part.init } }
        : part instanceof Buffer
          ? { path, file, line, buffer: { shape: part.shape, initial: part.initial, dtype: part.dtype } }
          : { path, file, line, layer: type, arguments: args });
  };
  const visit = (value: unknown, path: string) => {
    if (value === null || typeof value !== 'object') return;
    if (value instanceof Parameter || value instanceof Buffer || value instanceof Layer)
      return add(path, value);
    if (value instanceof LayerParameter) return;
    const container = value instanceof Module || Array.isArray(value);
    if (!container && !holdsParts(value)) return;
    if (!container) {
      throw new UserError(`the model: field '${path}' is a ${value.constructor?.name ?? 'object'} that ` +
        'holds parameters; expected a Module or an array');
    }
    if (open.includes(value)) throw new UserError(`the model: module '${path}' contains itself`);
    open.push(value);
    const fields = value instanceof Sequential ? Sequential.fieldsOf(value) : value;
    for (const [name, each] of Object.entries(fields)) visit(each, path ? `${path}.${name}` : name);
    open.pop();
  };
  visit(model, '');
  const layers = new Set(entries.map((each) => (each as { layer?: string }).layer ?? ''));
  return { entries, numbers, layers };
}

function holdsParts(value: object): boolean {
  const items = isMapOrSet(value) ? [...value.values()]
    : isPlainObject(value) ? Object.values(value) : [];
  return items.some((each) => each instanceof Parameter || each instanceof Buffer ||
    each instanceof Module);
}
