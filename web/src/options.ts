// SPDX-License-Identifier: MIT
// Options of compile() and compileFunction(), and the types of their inputs.
import { UserError } from './errors.js';
import type { DType, ParamGroup, Recovery } from './generated/types.js';
import { Init, Optimizer } from './make.js';
import type { Tensor } from './tensor.js';

/** Declaration of an input by its shape (f32), or by its shape and type. */
export type InputDeclaration =
  | readonly (number | null)[]
  | { readonly shape: readonly (number | null)[]; readonly dtype?: DType };

/**
 * Declarations of the inputs of a function by name. In functions that are not trained, one size of
 * a shape can be `null`: each call determines it from the number of elements passed.
 */
export type InputDeclarations = { readonly [name: string]: InputDeclaration };

/** Input as C++ declares it. */
export interface InputSpec { name: string; shape: number[]; dtype: DType }

type DeclaredDType<D> = D extends { readonly dtype: infer T extends DType } ? T : 'f32';
type ShapeOf<D> = D extends readonly (number | null)[] ? D
  : D extends { readonly shape: infer S extends readonly (number | null)[] } ? S
    : readonly number[];
// Replaces unknown sizes by `number`.
type Known<S extends readonly (number | null)[]> =
  { readonly [K in keyof S]: S[K] extends number ? S[K] : number };

/** Elements of an input of a type. */
export type Elements<T extends DType> =
  T extends 'i32' ? Int32Array | readonly number[]
    : T extends 'u32' ? Uint32Array | readonly number[]
      : Float32Array | readonly number[];

/** Values of a call's inputs by name. */
export type Feed<I extends InputDeclarations> = { readonly [K in keyof I]: Elements<DeclaredDType<I[K]>> };

/** Tensors of a traced function's inputs by name. */
export type TracedInputs<I extends InputDeclarations> = {
  readonly [K in keyof I]: Tensor<Known<ShapeOf<I[K]>>, DeclaredDType<I[K]>>;
};

/** Batches of the dataset: the first size is that of the batch. */
export type TracedBatches<D extends InputDeclarations> = {
  readonly [K in keyof D]: Tensor<readonly number[], DeclaredDType<D[K]>>;
};

/** Selects parameters by a name pattern such as "*.bias", by names, or by a function. */
export type ParamFilter =
  | string | readonly string[] | ((name: string, shape: readonly number[]) => boolean);

/** Returns the initial values of a parameter, or nothing for those of its module. */
export type CompileOptionsInitial =
  (name: string, shape: readonly number[]) => Init | undefined | null;
export type FunctionOptionsInitial = CompileOptionsInitial;
export type TrainerOptionsInitial = CompileOptionsInitial;

/** Returns the ranges of rows of a parameter that are trained. */
export type ParamGroupRows =
  (name: string, shape: readonly number[]) => readonly (readonly [number, number])[];

/** Called after each recovery, before the call that noticed the loss returns its result. */
export type RecoveryOptionsOnRecovery = (recovery: Recovery) => void;

/** A program whose device another one uses; see `sameDevice()`. */
export interface DeviceOptionsOpened { readonly program: number }

/** @internal Names and shapes of the parameters of a model. */
export type ParameterShapes = readonly (readonly [name: string, shape: readonly number[]])[];

/** @internal Returns inputs as declared in C++. */
export function inputSpecs(declared: InputDeclarations | undefined): InputSpec[] {
  return Object.entries(declared ?? {}).map(([name, each]) => {
    const { shape, dtype } = (Array.isArray(each) ? { shape: each } : each) as
      { shape: (number | null)[]; dtype?: DType };
    if (!Array.isArray(shape))
      throw new UserError(`input '${name}': expected a shape or {shape, dtype}`);
    return { name, shape: shape.map((size) => size ?? -1), dtype: dtype ?? 'f32' };
  });
}

/** @internal Returns elements as a typed array of the declared type. */
export function elements(name: string, value: unknown, specs: readonly InputSpec[]): unknown {
  if (!Array.isArray(value)) return value;
  const dtype = specs.find((each) => each.name === name)?.dtype;
  return dtype === 'i32' ? Int32Array.from(value) : dtype === 'u32' ? Uint32Array.from(value)
    : Float32Array.from(value);
}

/** @internal Returns the values of a call. */
export function feed(values: object | undefined, specs: readonly InputSpec[]): object {
  return Object.fromEntries(
    Object.entries(values ?? {}).map(([name, each]) => [name, elements(name, each, specs)]));
}

/**
 * @internal Returns the dynamic size of these values; undefined if no input has one, or none fits.
 */
export function dynamicSize(fed: object, specs: readonly InputSpec[]): number | undefined {
  for (const { name, shape } of specs) {
    const given = (fed as Record<string, { length: number } | undefined>)[name];
    if (!given || !shape.includes(-1)) continue;
    const size = given.length / shape.reduce((n, each) => n * (each === -1 ? 1 : each), 1);
    return Number.isInteger(size) && size > 0 ? size : undefined;
  }
  return undefined;
}

/** @internal Returns a filter as a pattern or names. */
export function filtered(filter: ParamFilter, parameters: ParameterShapes): string | readonly string[] {
  if (typeof filter !== 'function') return filter;
  return parameters.filter(([name, shape]) => filter(name, shape)).map(([name]) => name);
}

function byName<T>(f: (name: string, shape: readonly number[]) => T, parameters: ParameterShapes) {
  return Object.fromEntries(
    parameters.map(([name, shape]) => [name, f(name, shape)]).filter(([, each]) => each != null));
}

/** @internal Returns options with data in place of functions, which C++ cannot call. */
export function plainOptions(options: object,
                             parameters: () => ParameterShapes): object {
  const plain: Record<string, any> = { ...options };
  const known = (() => {
    let all: ParameterShapes | undefined;
    return () => (all ??= parameters());
  })();
  if (typeof plain['initial'] === 'function') plain['initial'] = byName(plain['initial'], known());
  if (typeof plain['normalizeGrads'] === 'function')
    plain['normalizeGrads'] = filtered(plain['normalizeGrads'], known());
  if (plain['groups']) {
    plain['groups'] = plain['groups'].map((group: ParamGroup) => ({
      ...group,
      params: typeof group.params === 'function' ? filtered(group.params, known()) : group.params,
      // The name of a group is by default the text of its filter.
      name: group.name ?? (typeof group.params === 'string' ? group.params : 'chosen by a function'),
      rows: group.rows && byName(group.rows, known().filter(([name]) => selects(group, name))),
    }));
  }
  if (plain['optimizer'] instanceof Optimizer) {
    const { params } = plain['optimizer'].options as { params?: ParamFilter };
    if (typeof params === 'function')
      plain['optimizer'] = plain['optimizer'].with({ params: filtered(params, known()) });
  }
  return plain;

  function selects(group: ParamGroup, name: string): boolean {
    const names = filtered(group.params, known());
    return typeof names === 'string' || names.includes(name);
  }
}
