// SPDX-License-Identifier: MIT
// Training: compile() and the Trainer that it returns.
import { ask, session, type EngineKind, type Session } from './engine.js';
import { UserError } from './errors.js';
import {
  makeFunction, named, recordFunction, type CompiledFunction, type HostTensor, type ProfileResult,
  type TensorData, type Traced,
} from './function.js';
import type {
  CompileOptions, CompileReport, DeviceOptions, FunctionOptions, GraphStage, GraphView, ImportOptions,
  ProfileOptions, Recovery, ResetOptions, UploadOptions,
} from './generated/types.js';
import { pauseWhenHidden, type WhenHidden } from './hidden.js';
import { type Location, userLocation } from './location.js';
import type { Optimizer, Schedule } from './make.js';
import { entriesOf, type ModelEntries, type Module } from './module.js';
import {
  elements, feed, inputSpecs, plainOptions, type Elements, type Feed, type InputDeclarations,
  type InputSpec, type TracedBatches, type TracedInputs,
} from './options.js';
import type { TensorLike } from './tensor.js';

/** Result of a training step. */
export interface StepResult {
  loss: number;
  /** Number of steps so far, including this one. */
  step: number;
  /** The requested captures. */
  captures: { [name: string]: HostTensor };
}

/** Result of `trainer.tryStep()`. */
export type StepOutcome =
  | ({ status: 'completed' } & StepResult)
  | { status: 'aborted' }
  | { status: 'failed'; error: Error };

/** Options of compile(). */
export interface TrainingSpec<M extends Module, I extends InputDeclarations,
                              D extends InputDeclarations>
  extends Omit<CompileOptions, 'inputs' | 'dataset' | 'optimizer'> {
  model: M;
  /** Returns the scalar to minimize. It is called once. */
  loss: (model: M, inputs: TracedInputs<I> & TracedBatches<D>) => TensorLike;
  /** Inputs passed to each step. */
  inputs?: I;
  /** Inputs kept on the device, of which each step draws a batch; see `trainer.uploadData()`. */
  dataset?: D;
  optimizer: Optimizer;
  /** Where it runs: by default in a worker in a page, else in this thread. */
  engine?: EngineKind;
  /**
   * What happens to step(), tryStep(), run() and submit() while the page is hidden. 'continue', the
   * default: nothing. 'pause': those that are called meanwhile begin when the page is visible again.
   * Other calls, such as save(), do not wait for them.
   */
  whenHidden?: WhenHidden;
}

interface TrainerInfo { id: number; device: string; parameters: string[]; captures: string[] }

/** A model compiled for training, returned by compile(). Calls run in the order they are made. */
export class Trainer<M extends Module = Module, I extends InputDeclarations = InputDeclarations,
                     D extends InputDeclarations = InputDeclarations> {
  /** @internal */
  constructor(
    /** @internal */ readonly own: Session, /** @internal */ public info: TrainerInfo,
    /** @internal */ public entries: ModelEntries,
    /** The model that is trained. Training does not change it; see downloadParams(). */
    public model: M,
    private readonly specs: readonly InputSpec[], private readonly data: readonly InputSpec[],
    private readonly record: (model: M, entries: ModelEntries, at: Location) => unknown,
    private readonly compiled: { options: object; at: Location; listener?: number | undefined }) {}

  /** The device's kind and name and why it was chosen. */
  get device(): string { return this.info.device; }
  /** Names of all parameters, in the order of the model. */
  get parameterNames(): readonly string[] { return this.info.parameters; }
  /** Names of all captures in the loss function. */
  get captures(): readonly string[] { return this.info.captures; }

  /** Returns the option `device` of programs that run on the same device. */
  sameDevice(): DeviceOptions { return { opened: { program: this.info.id } }; }

  private ask(call: string, args: object = {}): Promise<any> {
    return ask(this.own.engine, `trainer.${call}`, userLocation(3), { id: this.info.id, ...args });
  }

  /** Runs one step, waits for it, and returns the loss and the requested captures. */
  step(...[inputs, options]: {} extends I ? [inputs?: Feed<I>, options?: StepOptions]
    : [inputs: Feed<I>, options?: StepOptions]): Promise<StepResult> {
    return this.ask('step', { inputs: feed(inputs, this.specs), ...options });
  }
  /** Like step(), but returns errors as part of the result instead of throwing them. */
  async tryStep(inputs?: Feed<I>, options: StepOptions = {}): Promise<StepOutcome> {
    try {
      const result = await this.ask('step', { inputs: feed(inputs, this.specs), ...options });
      return { status: 'completed', ...result };
    } catch (error) {
      if ((error as Error).name === 'AbortedError') return { status: 'aborted' };
      return { status: 'failed', error: error as Error };
    }
  }
  /** Runs `steps` steps on the dataset, and returns their losses. */
  run(steps: number): Promise<Float32Array> { return this.ask('run', { steps }); }
  /** Queues `steps` steps on the dataset without waiting for their results; see losses(). */
  submit(steps: number): Promise<void> { return this.ask('submit', { steps }); }
  /** Waits for all queued steps and returns their losses since the previous call. */
  losses(): Promise<Float32Array> { return this.ask('losses'); }
  /** Returns the numbers of steps, updates and epochs, and the learning rate of the next step. */
  counters(): Promise<{
    steps: number; updates: number; epoch: number; batchesPerEpoch: number; lr: number;
  }> { return this.ask('counters'); }
  /** Uploads the samples of a dataset entry. */
  uploadData<K extends keyof D & string>(
    name: K, values: D[K] extends { dtype: infer T } ? Elements<T & CompileDType> : Elements<'f32'>,
  ): Promise<void> {
    return this.ask('uploadData', { name, data: elements(name, values, this.data) });
  }
  /** Replaces the learning-rate schedule. The new one starts with the next update. */
  setLR(lr: number | Schedule): Promise<void> { return this.ask('setLR', { lr }); }
  /** Sets a run-time scalar, such as "clip_grad_norm" or one of scalar(), without recompiling. */
  set(name: string, value: number): Promise<void> { return this.ask('set', { name, value }); }
  /** Returns all run-time scalars with their values. */
  scalars(): Promise<{ [name: string]: number }> { return this.ask('scalars'); }
  /** Returns the norm of all gradients in the last step, before clipping. */
  gradNorm(): Promise<number> { return this.ask('gradNorm'); }
  /** Returns the factor on the loss of the next step, in mixed precision. */
  lossScale(): Promise<number> { return this.ask('lossScale'); }
  /** Returns the number of updates that loss scaling skipped. */
  skippedUpdates(): Promise<number> { return this.ask('skippedUpdates'); }
  /** Returns copies of all parameters by name. */
  downloadParams(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadParams'); }
  /** Sets parameters by name. All are required unless `partial` is set. */
  uploadParams(values: { readonly [name: string]: TensorData },
               options: UploadOptions = {}): Promise<void> {
    return this.ask('uploadParams', { values, options });
  }
  /** Returns the averages of the parameters (`emaDecay`). */
  downloadEma(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadEma'); }
  /** Returns the gradients of the last step by parameter. */
  downloadGrads(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadGrads'); }
  /** Returns the optimizer states by name, for example "exp_avg/in.weight". */
  downloadOptimizer(): Promise<{ [name: string]: HostTensor }> {
    return this.ask('downloadOptimizer');
  }
  /** Sets optimizer states, named as by downloadOptimizer(). */
  uploadOptimizer(values: { readonly [name: string]: TensorData },
                  options: UploadOptions = {}): Promise<void> {
    return this.ask('uploadOptimizer', { values, options });
  }
  /** Resets parameters, optimizer, or both to their initial state. */
  reset(options: ResetOptions = {}): Promise<void> { return this.ask('reset', { options }); }
  /** Returns a checkpoint: a safetensors file with everything that the next step depends on. */
  save(): Promise<Uint8Array> { return this.ask('save'); }
  /** Loads a checkpoint of the same model and options. Training resumes bit for bit. */
  load(bytes: Uint8Array): Promise<void> { return this.ask('load', { bytes }); }
  /** Loads parameters from the bytes of a safetensors file of another library. */
  importWeights(bytes: Uint8Array, options: ImportOptions = {}): Promise<void> {
    return this.ask('importWeights', { bytes, options });
  }
  /** Runs real training steps on the same inputs and returns the median cost of each launch. */
  profile(inputs?: Feed<I>, options: ProfileOptions = {}): Promise<ProfileResult> {
    return this.ask('profile', { inputs: feed(inputs, this.specs), options });
  }
  /** Returns a text with the launch table and the memory plan. */
  explain(): Promise<string> { return this.ask('explain'); }
  /** Returns statistics of the compiled program. */
  report(): Promise<CompileReport> { return this.ask('report'); }
  /**
   * Returns what the trainer did each time that it lost its device: see `recovery` in the options
   * of compile().
   */
  recoveries(): Promise<Recovery[]> { return this.ask('recoveries'); }
  /** Returns the graph of a training step. */
  graph(stage: GraphStage = 'traced'): Promise<GraphView> { return this.ask('graph', { stage }); }
  /**
   * Compiles the program once more, and returns its parts as text by file name: the graph after each
   * pass ("00_trace.ir" ...), "99_plan.txt", the WGSL of each launch ("kernels/003_gelu.wgsl"),
   * "memory.svg", "graph.html" and others. These are the files of TENSORGRAD_DUMP.
   */
  dump(): Promise<{ [file: string]: string }> {
    const { options, at } = this.compiled;
    return ask(this.own.engine, 'dump', at, {
      model: this.entries.entries, options,
      function: { tapes: [[0, this.record(this.model, this.entries, at)]] } });
  }
  /** Stops calls of step(), run() and submit() that are under way. They throw AbortedError. */
  abort(): void { this.own.engine.abort(this.info.id); }

  /**
   * Compiles another function of the model that shares the trainer's parameters and states. It
   * always sees the current parameters.
   */
  attach<const J extends InputDeclarations, R extends Traced>(
    spec: Omit<FunctionOptions, 'inputs'> & {
      forward: (model: M, inputs: TracedInputs<J>) => R; inputs: J;
    }): Promise<CompiledFunction<J, R>> {
    const at = userLocation(2);
    const { forward, inputs, ...options } = spec;
    const model = this.model;
    return makeFunction(this.own, this.entries, 'attach', { id: this.info.id },
                        options as FunctionOptions, inputs, (all) => forward(model, all), at);
  }

  /**
   * Replaces the model and recompiles the same loss. Training restarts at step 0. With `keep`,
   * parameters of equal name and shape keep their values. Attached functions stay with the old
   * model. Nothing is changed if it throws.
   */
  async replaceModel(model: M, { keep = false } = {}): Promise<void> {
    const at = userLocation(2);
    const entries = entriesOf(model);
    const tape = this.record(model, entries, at);
    this.info = await ask(this.own.engine, 'trainer.replaceModel', at, {
      id: this.info.id, model: entries.entries, keep, function: { tapes: [[0, tape]] } });
    this.model = model;
    this.entries = entries;
  }

  /** Frees the program and its buffers. Attached functions stay. */
  async free(): Promise<void> {
    await this.ask('free');
    if (this.compiled.listener) this.own.engine.forget(this.compiled.listener);
  }
}

/** Options of one step. */
export interface StepOptions {
  /** Names of capture() tensors to return. */
  captures?: readonly string[];
}
type CompileDType = InputSpec['dtype'];

/**
 * Traces a model with its loss and compiles forward pass, backward pass and optimizer for a device.
 * Parameters start with their initial values.
 * ```ts
 * const trainer = await compile({
 *   model: new Mlp(), loss: (net, { x, y }) => mse(net.forward(x), y),
 *   inputs: { x: [64, 8], y: [64, 1] }, optimizer: optim.adamw({ lr: 1e-3 }) });
 * const { loss } = await trainer.step({ x, y });
 * ```
 */
export async function compile<M extends Module, const I extends InputDeclarations = {},
                              const D extends InputDeclarations = {}>(
  spec: TrainingSpec<M, I, D>): Promise<Trainer<M, I, D>> {
  const at = userLocation(2);
  const { model, loss, inputs, dataset, engine, whenHidden = 'continue', ...options } = spec;
  if (whenHidden !== 'continue' && whenHidden !== 'pause')
    throw new UserError(`compile: whenHidden: expected 'continue' or 'pause', got '${whenHidden}'`);
  const own = await session(engine);
  const heard = options.recovery?.onRecovery;
  const listener = heard && own.engine.listen(heard);
  const entries = entriesOf(model);
  const specs = inputSpecs(inputs), data = inputSpecs(dataset);
  const plain = {
    ...plainOptions(options, () => own.tracer.parameters(entries.entries)),
    inputs: specs, dataset: data,
    ...(listener ? { recovery: { ...options.recovery, onRecovery: listener } } : {}) };
  const record = (of: M, its: ModelEntries, where: Location) => recordFunction(
    own, 'loss', its, plain, [...specs, ...data], where,
    (all) => ({ loss: (named(loss(of, all)) as { output: unknown }).output }));
  const info = await ask(own.engine, 'compile', at, {
    model: entries.entries, options: plain,
    function: { tapes: [[0, record(model, entries, at)]] } });
  if (whenHidden === 'pause') pauseWhenHidden(own.engine, info.id);
  return new Trainer<M, I, D>(own, info, entries, model, specs, data, record, { options: plain, at, listener });
}
