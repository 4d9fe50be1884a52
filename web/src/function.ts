// SPDX-License-Identifier: MIT
// Compiled functions: programs that run a model without training it.
import { NeedsTape, ask, described, deviceOf, inSession, place, type Engine, type EngineKind, type Session } from './engine.js';
import { UserError } from './errors.js';
import { fullLayers } from './generated/layers.js';
import type {
  CompileReport, DType, DeviceDescription, DeviceOptions, FunctionOptions, GraphStage, GraphView,
  ImportOptions, OnnxOptions, Profile, ProfileOptions, UploadOptions, WebOptions, WeightSource,
} from './generated/types.js';
import { type Location, userLocation } from './location.js';
import { entriesOf, type ByParameter, type ModelEntries, type Module } from './module.js';
import {
  feed, inputSpecs, plainOptions, type Feed, type InputDeclarations, type InputSpec,
  type TracedInputs,
} from './options.js';
import { isError } from './realm.js';
import { Tensor, type DTypeOf, type TensorLike } from './tensor.js';
import { threadsFor } from './threads.js';

/** Typed array of the elements of a type. f16 is converted to f32; booleans are 0 or 1. */
export type DataOf<T extends DType> =
  T extends 'f32' | 'f16' ? Float32Array : T extends 'i32' ? Int32Array : Uint32Array;

/** Tensor in the memory of this thread, f32 by default. Elements are row-major. */
export interface HostTensor<T extends DType = 'f32'> {
  dtype: DType;
  shape: number[];
  data: DataOf<T>;
}

/** Elements of a parameter or state, with the shape that the model has, or with a shape. */
export type TensorData =
  | Float32Array | Int32Array | Uint32Array
  | { shape?: readonly number[]; data: Float32Array | Int32Array | Uint32Array };

/** Result of a traced function: one tensor, called "output", or several by name. */
export type Traced = TensorLike | { readonly [name: string]: TensorLike };

/** Outputs by name. */
export type Outputs<R extends Traced> =
  R extends TensorLike ? { output: HostTensor<DTypeOf<R>> }
    : { -readonly [K in keyof R]: HostTensor<DTypeOf<R[K]>> };

/** Captures by name. */
export type Captures<C extends string> = { [K in C]: HostTensor };

/** Result of `tryRun()`. */
export type RunOutcome<R extends Traced, C extends string = never> =
  | { status: 'completed'; outputs: Outputs<R> & Captures<C> }
  | { status: 'aborted' }
  | { status: 'failed'; error: Error };

/** Cost of each launch of a program. */
export interface ProfileResult {
  profile: Profile;
  /** A table for a terminal. */
  table: string;
  /** A page with a timeline and a roofline plot. */
  html: string;
  /** Chrome trace events (JSON), for https://ui.perfetto.dev. */
  traceEvents: string;
}

/** Options of compileFunction(). */
export interface FunctionSpec<M extends Module, I extends InputDeclarations, R extends Traced>
  extends Omit<FunctionOptions, 'inputs'> {
  model: M;
  /** The function to compile. It is called once, or once for each dynamic size. */
  forward: (model: M, inputs: TracedInputs<I>) => R;
  inputs: I;
  /** Where the function runs; by default a worker in a page, else this thread. */
  engine?: EngineKind;
}

/**
 * @internal Records a function. `size` stands for dynamic sizes; the first `inputs` specs are
 * those of inputs, the others of a dataset.
 */
export function recordFunction(
  { tracer }: Session, kind: 'loss' | 'function', model: ModelEntries, options: object,
  specs: readonly InputSpec[], at: Location, f: (inputs: any) => unknown, size = 0,
  inputs = specs.length): unknown {
  const sized = specs.map((each) => ({
    ...each, shape: each.shape.map((n) => (n === -1 ? size : n)) }));
  const own = { ...options, device: undefined, inputs: sized.slice(0, inputs) };
  return tracer.record(
    model.numbers, { kind, model: model.entries, options: own, file: at[0], line: at[1] },
    specs.map((each) => each.name), f);
}

/** @internal The dynamic size that is compiled first; 0 if no input has one. */
export function firstSize(specs: readonly InputSpec[], options: { dynamicSize?: number }): number {
  return specs.some((each) => each.shape.includes(-1)) ? options.dynamicSize ?? 1 : 0;
}

/** @internal Returns true if a model has layers that only the full module has. */
export function needsFull({ layers }: ModelEntries): boolean {
  return [...layers].some((each) => fullLayers.has(each));
}

/** @internal Returns outputs by name. */
export function named(result: any): object {
  const one = result instanceof Tensor || typeof result?.tensor === 'function';
  const all: Record<string, any> = one ? { output: result } : { ...result };
  for (const [name, each] of Object.entries(all)) {
    if (!(each instanceof Tensor) && typeof each?.tensor !== 'function')
      throw new UserError(`the function returned no tensor for '${name}'`);
    all[name] = each instanceof Tensor ? each : each.tensor();
  }
  return all;
}

/** @internal Records a function for a dynamic size. `generation` identifies the model. */
export interface Recording { record: (size: number) => unknown; generation: number }

/** @internal Sends a request. Records the function for the dynamic sizes that it needs. */
export async function askWithTapes(
  engine: Engine, kind: 'function' | 'trainer', call: string, at: Location,
  args: { readonly id: number; readonly objective?: string | undefined },
  recording: () => Recording): Promise<any> {
  for (;;) {
    try {
      return await ask(engine, `${kind}.${call}`, at, args);
    } catch (error) {
      if (!(error instanceof NeedsTape)) throw error;
      const { record, generation } = recording();
      const { id, objective } = args;
      await ask(engine, `${kind}.addTapes`, at, {
        id, objective, generation, tapes: [[error.size, record(error.size)]] });
    }
  }
}

/**
 * A compiled function of a model, returned by compileFunction() and `trainer.attach()`. It is
 * recorded again for each new dynamic size.
 */
export class CompiledFunction<I extends InputDeclarations = InputDeclarations,
                              R extends Traced = Traced, M extends Module = any> {
  /** @internal Called when the function is freed. */
  onFree: () => void = () => undefined;

  /** @internal */
  constructor(private readonly engine: Engine, private readonly id: number,
              private readonly specs: readonly InputSpec[], private readonly source: FunctionSource,
              private recording: Recording, private readonly why = '') {}

  /**
   * @internal Records the function for another model of its trainer. After `begin`, new tapes use
   * that model; after `undo`, the previous one.
   */
  follow(model: Module, entries: ModelEntries, generation: number) {
    const { at, options, first, recordFor } = this.source;
    const before = this.recording, own = { record: recordFor(model, entries), generation };
    const where = `in the function attached at ${at[0]}:${at[1]}`;
    try {
      return {
        request: { id: this.id, file: at[0], line: at[1], options,
          function: { tapes: [[first, own.record(first)]] } },
        begin: () => { this.recording = own; },
        undo: () => { if (this.recording === own) this.recording = before; },
      };
    } catch (error) {
      if (isError(error)) error.message += `\n  ${where}`;
      throw error;
    }
  }

  private ask(call: string, args: object = {}): Promise<any> {
    return askWithTapes(this.engine, 'function', call, userLocation(3), { id: this.id, ...args }, () => {
      const { record, generation } = this.recording;
      return { generation, record: (size) => {
        try {
          return record(size);
        } catch (failure) {
          // An export skips sizes that the function does not accept.
          if (!call.startsWith('export') || !(failure instanceof UserError)) throw failure;
          return failure.message;
        }
      } };
    });
  }

  /** Runs the function and returns its outputs and the requested captures. */
  run<const C extends string = never>(
    inputs: Feed<I>, options: { captures?: readonly C[] } = {}): Promise<Outputs<R> & Captures<C>> {
    return this.ask('run', { inputs: feed(inputs, this.specs), ...options });
  }
  /** Like run(), but returns errors as part of the result instead of throwing them. */
  async tryRun<const C extends string = never>(
    inputs: Feed<I>, options: { captures?: readonly C[] } = {}): Promise<RunOutcome<R, C>> {
    try {
      const outputs = await this.ask('run', { inputs: feed(inputs, this.specs), ...options });
      return { status: 'completed', outputs };
    } catch (error) {
      if ((error as Error).name === 'AbortedError') return { status: 'aborted' };
      return { status: 'failed', error: error as Error };
    }
  }
  /** Runs a function with one output and returns its elements. */
  async call(inputs: Feed<I>): Promise<Outputs<R>[keyof Outputs<R>] extends { data: infer A } ? A : never> {
    const outputs = await this.ask('run', { inputs: feed(inputs, this.specs) });
    const all: HostTensor[] = Object.values(outputs);
    if (all.length !== 1) throw new UserError(`call: expected one output, got ${all.length}`);
    return all[0]!.data as any;
  }
  /** Returns the names of all captures in the function. */
  captures(): Promise<string[]> { return this.ask('captures'); }
  /**
   * Sets parameters and buffers by name. All parameters are required unless `partial` is set. The
   * type knows the names that public fields of the model have.
   */
  uploadParams(values: ByParameter<M, TensorData>, options: UploadOptions = {}): Promise<void> {
    return this.ask('uploadParams', { values, options });
  }
  /** Returns copies of the parameters by name. */
  downloadParams(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadParams'); }
  /** Returns copies of the model's buffers that the function uses, by name. */
  downloadBuffers(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadBuffers'); }
  /** Loads the parameters and states of `trainer.save()` or `trainer.saveWeights()`. */
  loadParams(bytes: Uint8Array, weights: WeightSource = 'trained'): Promise<void> {
    return this.ask('loadParams', { bytes, weights });
  }
  /**
   * Loads parameters and buffers from the bytes of a safetensors file: of another library, such as
   * PyTorch, or a checkpoint.
   */
  importWeights(bytes: Uint8Array, options: ImportOptions = {}): Promise<void> {
    return this.ask('importWeights', { bytes, options });
  }
  /** Returns the bytes of an ONNX file (opset 18) with the current values of the parameters. */
  exportOnnx(options: OnnxOptions = {}): Promise<Uint8Array> {
    return this.ask('exportOnnx', { options });
  }
  /**
   * Returns the files of a page that only predicts, by name: kernels ("model.json"), weights
   * ("weights.bin") and a module that runs them ("runner.js", "runner.d.ts"). Compiles the function
   * for WebGPU's default limits.
   */
  exportWeb(options: WebOptions = {}): Promise<{ [file: string]: Uint8Array }> {
    return this.ask('exportWeb', { options });
  }
  /** Runs the function `steps` times and returns the median cost of each launch. */
  profile(inputs: Feed<I>, options: ProfileOptions = {}): Promise<ProfileResult> {
    return this.ask('profile', { inputs: feed(inputs, this.specs), options });
  }
  /** Returns a text with the launch table and the memory plan. */
  explain(): Promise<string> { return this.ask('explain'); }
  /** Returns statistics of the compiled program. */
  report(): Promise<CompileReport> { return this.ask('report'); }
  /** Returns the graph of the function. */
  graph(stage: GraphStage = 'traced', dynamicSize?: number): Promise<GraphView> {
    return this.ask('graph', { stage, dynamicSize });
  }
  /** Returns the device's kind and name, its threads if it is the CPU, and why it was chosen. */
  async device(): Promise<string> { return described(await this.ask('device'), this.why); }
  /** Returns the option `device` of programs that run on the same device. */
  sameDevice(): DeviceOptions { return deviceOf(this.engine, this.id); }
  /** Returns the dynamic sizes with a compiled program. */
  compiledSizes(): Promise<number[]> { return this.ask('compiledSizes'); }
  /** Aborts queued runs and compilation. They throw AbortedError. */
  abort(): void { this.engine.abort(this.id); }
  /** Frees the program and its buffers. */
  free(): Promise<void> {
    this.onFree();
    return this.ask('free');
  }
}

// How to record a function for any model of its trainer. `first` is the dynamic size compiled
// first.
interface FunctionSource {
  at: Location;
  options: object;
  first: number;
  recordFor: (model: Module, entries: ModelEntries) => (size: number) => unknown;
}

/** @internal Records a function and requests its compilation. */
export async function makeFunction(
  own: Session, model: Module, entries: ModelEntries, call: string,
  args: { id?: number; generation?: number }, options: FunctionOptions, inputs: InputDeclarations,
  f: (model: any, inputs: any) => unknown, at: Location, helpers = 0, why = ''):
Promise<CompiledFunction<any, any>> {
  const specs = inputSpecs(inputs);
  const plain = {
    ...plainOptions(options, () => own.tracer.parameters(entries.entries)), inputs: specs };
  const first = firstSize(specs, options);
  const recordFor = (of: Module, its: ModelEntries) => (size: number) => recordFunction(
    own, 'function', its, plain, specs, at, (all) => named(f(of, all)), size);
  const record = recordFor(model, entries);
  const id = await ask(own.engine, call, at, {
    ...args, model: entries.entries, options: plain,
    function: { tapes: [[first, record(first)]] } }, helpers);
  return new CompiledFunction(own.engine, id, specs, { at, options: plain, first, recordFor },
                              { record, generation: args.generation ?? 0 }, why);
}

/**
 * Compiles a function of a model without training. Parameters start with their initial values; set
 * them with `loadParams()`, `importWeights()` or `uploadParams()`.
 * ```ts
 * const predict = await compileFunction({
 *   model: new Mlp(), forward: (net, { x }) => net.forward(x), inputs: { x: [null, 784] } });
 * const { output } = await predict.run({ x: pixels });
 * ```
 */
export async function compileFunction<M extends Module, const I extends InputDeclarations,
                                      R extends Traced>(
  spec: FunctionSpec<M, I, R>): Promise<CompiledFunction<I, R, M>> {
  const at = userLocation(2);
  const { model, forward, inputs, engine, ...options } = spec;
  const entries = entriesOf(model);
  return inSession(engine, needsFull(entries), options.device, ({ own, device, helpers, why }) =>
    makeFunction(own, model, entries, 'compileFunction', {},
                 { ...options, ...(device && { device }) } as FunctionOptions, inputs, forward, at,
                 helpers, why));
}

/** Returns the devices of this machine, and the reason if no WebGPU adapter is available. */
export async function devices(options: DeviceOptions & { engine?: EngineKind } = {}):
Promise<{ devices: DeviceDescription[]; note: string }> {
  const at = userLocation(2);
  const { engine, ...rest } = options;
  const { own } = await place(engine, false, { kind: 'webgpu' });  // with its adapters
  const { devices, note } = await ask(own.engine, 'devices', at, { options: rest });
  const { count } = threadsFor(rest.threads);  // of the module with threads
  const named = (each: DeviceDescription) => (each.kind === 'cpu' && count > 1
    ? { ...each, name: each.name.replace(', 1 thread,', `, ${count} threads,`) } : each);
  return { devices: devices.map(named), note };
}
