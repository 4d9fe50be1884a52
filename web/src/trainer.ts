// SPDX-License-Identifier: MIT
// Training: compile() and the trainers that it returns.
import {
  ask, described, deviceOf, fullSession, inSession, openSession, type EngineKind, type Session,
} from './engine.js';
import { UserError } from './errors.js';
import {
  askWithTapes, firstSize, makeFunction, named, needsFull, recordFunction, type CompiledFunction, type HostTensor,
  type Recording, type TensorData, type Traced,
} from './function.js';
import type {
  CompileOptions, CompileReport, DeviceOptions, FunctionOptions, ImportOptions, Recovery, ResetOptions,
  SaveOptions, TrainerOptions, UploadOptions, WeightSource,
} from './generated/types.js';
import { forgetHidden, pauseWhenHidden, type WhenHidden } from './hidden.js';
import type { DataLoader } from './loader.js';
import { type Location, userLocation } from './location.js';
import type { Optimizer } from './make.js';
import { entriesOf, type ByParameter, type ModelEntries, type Module } from './module.js';
import { Objective } from './objective.js';
import { CustomOptimizer, Update } from './optimizer.js';
import {
  elements, filtered, inputSpecs, plainOptions, type Elements, type InputDeclarations, type InputSpec,
  type ParamFilter, type TracedBatches, type TracedInputs,
} from './options.js';
import type { TensorLike } from './tensor.js';

/** Options of compile(). */
export interface TrainingSpec<M extends Module, I extends InputDeclarations,
                              D extends InputDeclarations>
  extends Omit<CompileOptions, 'inputs' | 'dataset' | 'optimizer'> {
  model: M;
  /** Returns the scalar to minimize. It is called once, or once for each dynamic size. */
  loss: (model: M, inputs: TracedInputs<I> & TracedBatches<D>) => TensorLike;
  /** Inputs passed to each step. */
  inputs?: I;
  /** Inputs kept on the device, of which each step draws a batch; see `trainer.uploadData()`. */
  dataset?: D;
  optimizer: Optimizer;
  /** Where it runs; by default a worker in a page, else this thread. */
  engine?: EngineKind;
  /**
   * Behavior of step(), tryStep(), stepFor(), run() and submit() while the page is hidden.
   * 'continue', the default: they run as usual. 'pause': they wait until the page is visible again.
   * Other calls, such as save(), do not wait for them.
   */
  whenHidden?: WhenHidden;
}

/** One of several losses over the parameters of a model, with its training options. */
export interface ObjectiveSpec<M extends Module, I, D extends InputDeclarations>
  extends Omit<CompileOptions, 'inputs' | 'dataset' | 'optimizer' | keyof TrainerOptions> {
  /** Returns the scalar to minimize. It is called once, or once for each dynamic size. */
  loss: (model: M, inputs: TracedInputs<I extends InputDeclarations ? I : {}> & TracedBatches<D>) =>
    TensorLike;
  /** Inputs passed to each step. */
  inputs?: I;
  /** Parameters to train; default: all. */
  params?: ParamFilter;
  optimizer: Optimizer;
}

/** Options of compile() for several losses. */
export interface MultiTrainingSpec<M extends Module, O, D extends InputDeclarations>
  extends TrainerOptions {
  model: M;
  /** The losses by name. Names consist of letters, digits, `_` and `-`. */
  objectives: { [K in keyof O]: ObjectiveSpec<M, O[K], D> };
  /** Inputs kept on the device, of which the objectives with a `batch` draw their batches. */
  dataset?: D;
  /** Where it runs; by default a worker in a page, else this thread. */
  engine?: EngineKind;
  /** Behavior of the objectives while the page is hidden, as in TrainingSpec. */
  whenHidden?: WhenHidden;
}

interface TrainerInfo {
  id: number; device: string; parameters: string[]; captures: { [objective: string]: string[] };
}

// A loss as passed to compile().
interface Loss {
  name: string;  // empty if it is the only one
  loss: (model: any, inputs: any) => unknown;
  options: CompileOptions;
  params?: ParamFilter | undefined;
  specs: readonly InputSpec[];
  data: readonly InputSpec[];
}

// Returns the tape of a loss for a dynamic size.
function lossTape(own: Session, model: Module, its: ModelEntries, loss: Loss, options: object,
                  at: Location, size: number): unknown {
  const { specs, data } = loss;
  return recordFunction(
    own, 'loss', its, options, [...specs, ...data], at,
    (all) => ({ loss: (named(loss.loss(model, all)) as { output: unknown }).output }), size,
    specs.length);
}

// Returns the options of a loss for a request.
function optionsOf(own: Session, its: ModelEntries, loss: Loss): any {
  return { ...plainOptions(loss.options, () => own.tracer.parameters(its.entries)),
           inputs: loss.specs, dataset: loss.data };
}

// Records a loss, and its optimizer if it is written in TypeScript.
function recordLoss(own: Session, model: Module, its: ModelEntries, loss: Loss, at: Location) {
  const { name, specs } = loss;
  const params = loss.params && filtered(loss.params, own.tracer.parameters(its.entries));
  const options = optionsOf(own, its, loss);
  const size = firstSize(specs, loss.options);
  const traced = { tapes: [[size, lossTape(own, model, its, loss, options, at, size)]] };
  if (options.optimizer instanceof CustomOptimizer) {
    const { update } = options.optimizer.options;
    const request = {
      kind: 'optimizer', model: its.entries, options, params, function: traced,
      file: at[0], line: at[1] };
    options.optimizer = options.optimizer.recorded(own.tracer.record(new Map(), request, [], () => {
      update(new Update());
      return [];
    }));
  }
  return { name, params, options, function: traced };
}

// Returns the part of a request that describes the losses: one, or several with common options.
function lossesOf(own: Session, model: Module, its: ModelEntries, losses: readonly Loss[],
                  shared: TrainerOptions | undefined, at: Location): object {
  const all = losses.map((each) => recordLoss(own, model, its, each, at));
  if (!shared) return { options: all[0]!.options, function: all[0]!.function };
  return { objectives: all, options: plainOptions(shared, () => own.tracer.parameters(its.entries)) };
}

/** Data, parameters and checkpoints of a trainer. Calls run in the order they are made. */
export class TrainerBase<M extends Module = Module,
                         D extends InputDeclarations = InputDeclarations> {
  private readonly attached = new Set<CompiledFunction<any, any>>();
  /** @internal Numbers of attached generators. Each returns its request for another model. */
  readonly generators = new Map<number, (entries: ModelEntries) => object>();
  /** @internal Number of times that the model was replaced. */
  generation = 0;
  private readonly recorded = new Set<string>();  // losses for dynamic sizes

  /** @internal */
  constructor(
    /** @internal */ readonly own: Session, /** @internal */ public info: TrainerInfo,
    /** @internal */ public entries: ModelEntries,
    /** The model that is trained. Training does not change it; see downloadParams(). */
    public model: M,
    /** @internal */ protected readonly losses_: readonly Loss[],
    /** @internal */ protected readonly shared: TrainerOptions | undefined,
    private readonly at: Location, private readonly listener?: number,
    private readonly why = '') {}

  /** The device's kind and name, its threads if it is the CPU, and why it was chosen. */
  get device(): string { return described(this.info.device, this.why); }
  /** The kind of device in use; see checkSupport(). */
  get deviceKind(): 'webgpu' | 'cpu' | 'null' { return /^\w+/.exec(this.info.device)![0] as any; }
  /** Names of all parameters, in the order of the model. */
  get parameterNames(): readonly string[] { return this.info.parameters; }

  /** @internal Sends a call for a loss, which is recorded for other dynamic sizes if necessary. */
  askObjective(name: string, call: string, at: Location, args: object): Promise<any> {
    return askWithTapes(
      this.own.engine, 'trainer', call, at,
      { id: this.info.id, objective: name || undefined, ...args }, () => this.recording(name));
  }

  /** @internal Records a loss for a dynamic size, unless it is already recorded. */
  async recordFor(name: string, size: number | undefined, at: Location): Promise<void> {
    const loss = this.losses_.find((each) => each.name === name)!;
    const key = `${size} ${name}`;
    if (!size || size === firstSize(loss.specs, loss.options) || this.recorded.has(key)) return;
    const { generation, record } = this.recording(name);
    const tapes = [[size, record(size)]];
    this.recorded.add(key);
    await this.askObjective(name, 'addTapes', at, { generation, tapes });
  }

  private recording(name: string): Recording {
    const { own, model, entries, generation, at } = this;
    const loss = this.losses_.find((each) => each.name === name)!;
    return { generation, record: (size) => lossTape(
      own, model, entries, loss, optionsOf(own, entries, loss), at, size) };
  }

  /** Returns the option `device` of programs that run on the same device. */
  sameDevice(): DeviceOptions { return deviceOf(this.own.engine, this.info.id); }

  /** @internal */
  ask(call: string, args: object = {}): Promise<any> {
    return ask(this.own.engine, `trainer.${call}`, userLocation(3), { id: this.info.id, ...args });
  }

  /** Uploads the samples of a dataset entry. */
  uploadData<K extends keyof D & string>(
    name: K, values: D[K] extends { dtype: infer T } ? Elements<T & InputSpec['dtype']>
      : Elements<'f32'>): Promise<void> {
    const data = this.losses_.flatMap((each) => each.data);
    return this.ask('uploadData', { name, data: elements(name, values, data) });
  }
  /** Returns copies of all parameters by name. */
  downloadParams(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadParams'); }
  /** Returns copies of the model's buffers that a loss uses, such as "norm.running_mean". */
  downloadBuffers(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadBuffers'); }
  /**
   * Sets parameters and buffers by name. All parameters are required unless `partial` is set;
   * buffers are always optional. The type knows the names that public fields of the model have.
   */
  uploadParams(values: ByParameter<M, TensorData>,
               options: UploadOptions = {}): Promise<void> {
    return this.ask('uploadParams', { values, options });
  }
  /** Returns the averages of the parameters (`emaDecay`). */
  downloadEma(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadEma'); }
  /**
   * Returns the optimizer states by name, for example "exp_avg/in.weight". With several losses,
   * names begin with that of the objective: "actor.exp_avg/in.weight".
   */
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
  /**
   * Registers a data loader. save() and load() then include its position under this name, and
   * reset() of the optimizer rewinds it.
   */
  async addLoader(name: string, loader: DataLoader<any>): Promise<void> {
    const id = await loader.add(this.own.engine, name);
    return this.ask('addLoader', { name, loader: id });
  }
  /**
   * Returns a checkpoint: a safetensors file with everything that the next step depends on.
   * `readMetadata()` returns the metadata in the options.
   */
  save(options: SaveOptions = {}): Promise<Uint8Array> { return this.ask('save', { options }); }
  /** Loads a checkpoint of the same model and options. Training resumes bit for bit. */
  load(bytes: Uint8Array): Promise<void> { return this.ask('load', { bytes }); }
  /**
   * Returns a safetensors file with the parameters, or with their averages, and the buffers under
   * their own names. PyTorch's `load_state_dict()` takes it.
   */
  saveWeights(weights: WeightSource = 'trained'): Promise<Uint8Array> {
    return this.ask('saveWeights', { weights });
  }
  /**
   * Loads the parameters and buffers of save() or saveWeights(). Step, optimizer and options stay
   * as they are.
   */
  loadParams(bytes: Uint8Array, weights: WeightSource = 'trained'): Promise<void> {
    return this.ask('loadParams', { bytes, weights });
  }
  /**
   * Loads parameters and buffers from the bytes of a safetensors file: of another library, or a
   * checkpoint, from which it can take a part or rename it.
   */
  importWeights(bytes: Uint8Array, options: ImportOptions = {}): Promise<void> {
    return this.ask('importWeights', { bytes, options });
  }
  /** Returns a text with the launch table and the memory plan of every objective. */
  explain(): Promise<string> { return this.ask('explain'); }
  /** Returns statistics of all objectives together. */
  report(): Promise<CompileReport> { return this.ask('report'); }
  /** Returns the recoveries after a lost device; see `recovery` in the options of compile(). */
  recoveries(): Promise<Recovery[]> { return this.ask('recoveries'); }
  /**
   * Compiles the programs once more, and returns their parts as text by file name: the graph after
   * each pass ("00_trace.ir" ...), "99_plan.txt", the WGSL of each launch ("kernels/003_gelu.wgsl"),
   * "memory.svg", "graph.html" and others. These are the files of TENSORGRAD_DUMP.
   */
  async dump(): Promise<{ [file: string]: string }> {
    const { own, model, entries, at } = this, full = await fullSession(own);
    // Needs the full module, which does not know devices of programs in the core module.
    const alike = <O extends TrainerOptions | undefined>(options: O): O => options?.device?.opened
      ? { ...options, device: { kind: this.deviceKind, allowSoftware: true } } : options;
    return await ask(full.engine, 'dump', at, {
      model: entries.entries, ...lossesOf(
        full, model, entries, this.losses_.map((each) => ({ ...each, options: alike(each.options) })),
        alike(this.shared), at) });
  }
  /** Aborts running calls of step(), run() and submit(). They throw AbortedError. */
  abort(): void { this.own.engine.abort(this.info.id); }

  /**
   * Compiles another function of the model that shares the trainer's parameters and states. It
   * always sees the current parameters, and follows replaceModel() until it is freed.
   */
  async attach<const J extends InputDeclarations, R extends Traced>(
    spec: Omit<FunctionOptions, 'inputs'> & {
      forward: (model: M, inputs: TracedInputs<J>) => R; inputs: J;
    }): Promise<CompiledFunction<J, R, M>> {
    const at = userLocation(2);
    const { forward, inputs, ...options } = spec;
    const { id } = this.info, { generation } = this;
    const f = await makeFunction(
      this.own, this.model, this.entries, 'attach', { id, generation }, options as FunctionOptions,
      inputs, forward, at);
    if (generation !== this.generation) {  // the model was replaced meanwhile
      await f.free();
      return this.attach(spec);
    }
    f.onFree = () => this.attached.delete(f);
    this.attached.add(f);
    return f;
  }

  /**
   * @internal Replaces the model. `changed` has losses with other options, and the common options.
   */
  async replace(model: M, keep: boolean, at: Location,
                changed?: { losses: readonly Loss[]; shared: TrainerOptions | undefined }):
  Promise<void> {
    const { losses, shared } = changed ?? { losses: this.losses_, shared: this.shared };
    const entries = entriesOf(model);
    if (needsFull(entries) && !this.own.full) {
      throw new UserError('replaceModel: the new model has layers that the core module does not ' +
        'have: set assets.full = true before the first call of the library');
    }
    const request = lossesOf(this.own, model, entries, losses, shared, at);
    const generators = [...this.generators].map(([id, requestFor]) => ({ id, ...requestFor(entries) }));
    const generation = ++this.generation;
    this.recorded.clear();
    // From now on, calls that need a tape for another size record the new model.
    const following = [...this.attached].map((f) => f.follow(model, entries, generation));
    try {
      for (const each of following) each.begin();
      this.info = await ask(this.own.engine, 'trainer.replaceModel', at, {
        id: this.info.id, model: entries.entries, keep, anew: changed !== undefined, generation,
        attached: following.map((each) => each.request), generators, ...request });
    } catch (error) {
      for (const each of following) each.undo();
      throw error;
    }
    for (const each of following) each.begin();
    this.model = model;
    this.entries = entries;
    this.recorded.clear();  // tapes recorded meanwhile belong to the previous model
    if (changed) Object.assign(this, { losses_: changed.losses, shared: changed.shared });
  }

  /** Frees the program and its buffers. Attached functions remain valid. */
  async free(): Promise<void> {
    await this.ask('free');
    forgetHidden(this.own.engine, this.info.id);
    if (this.listener) this.own.engine.forget(this.listener);
  }
}

/** Options of `trainer.replaceModel()`. */
export interface ReplaceOptions {
  /** Parameters of equal name and shape keep their values. */
  keep?: boolean;
  /** New seed of initial values, random numbers and the order of the data. */
  seed?: number;
}

/** A model compiled for training, returned by compile(). Calls run in the order they are made. */
export class Trainer<M extends Module = Module, I extends InputDeclarations = InputDeclarations,
                     D extends InputDeclarations = InputDeclarations> extends TrainerBase<M, D> {
  /** @internal */
  readonly name = '';
  /** @internal */
  get trainer(): this { return this; }
  /** @internal */
  get specs(): readonly InputSpec[] { return this.losses_[0]!.specs; }

  /**
   * Replaces the model and recompiles the same loss. Training restarts at step 0. With `keep`,
   * parameters of equal name and shape keep their values, as do buffers. Attached functions and
   * generators use the new model. If replaceModel() throws, for example because an attached function
   * does not accept the new model, nothing is changed.
   *
   * With `seed` or `optimizer`, schedule and run-time scalars are those of the options, and buffers
   * return to their initial values.
   */
  replaceModel(model: M, { keep = false, ...changes }: ReplaceOptions & { optimizer?: Optimizer } = {}):
  Promise<void> {
    const [loss] = this.losses_;
    const changed = Object.keys(changes).length > 0 && {
      losses: [{ ...loss!, options: { ...loss!.options, ...changes } }], shared: undefined };
    return this.replace(model, keep, userLocation(2), changed || undefined);
  }
}
export interface Trainer<M extends Module, I extends InputDeclarations,
                         D extends InputDeclarations> extends Objective<I> {}
for (const [name, each] of Object.entries(Object.getOwnPropertyDescriptors(Objective.prototype)))
  if (!Object.hasOwn(Trainer.prototype, name)) Object.defineProperty(Trainer.prototype, name, each);

/**
 * A model compiled for training with several losses (objectives), returned by compile(). The caller
 * decides which objective makes the next step: `trainer.objectives.critic.step({ x })`.
 */
export class MultiTrainer<M extends Module = Module, O = { [name: string]: InputDeclarations },
                          D extends InputDeclarations = InputDeclarations>
  extends TrainerBase<M, D> {
  /** The objectives by name. Each has its own program, optimizer, counters and order of the data. */
  readonly objectives: {
    readonly [K in keyof O]: Objective<O[K] extends InputDeclarations ? O[K] : {}>;
  } = Object.fromEntries(this.losses_.map(({ name, specs }) =>
      [name, new Objective(this, name, specs)])) as any;

  /**
   * Replaces the model, as `Trainer.replaceModel()`. With `seed`, schedules and run-time scalars
   * are those of the options, and buffers return to their initial values.
   */
  replaceModel(model: M, { keep = false, seed }: ReplaceOptions = {}): Promise<void> {
    const changed = seed === undefined ? undefined
      : { losses: this.losses_, shared: { ...this.shared, seed } };
    return this.replace(model, keep, userLocation(2), changed);
  }
}

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
export function compile<M extends Module, const I extends InputDeclarations = {},
                        const D extends InputDeclarations = {}>(
  spec: TrainingSpec<M, I, D>): Promise<Trainer<M, I, D>>;
/**
 * Compiles several losses over one model, for example the two sides of a GAN. Objectives may train
 * the same parameters; those that no objective trains keep their initial values.
 * ```ts
 * const gan = await compile({ model: new Gan(), objectives: {
 *   critic: { loss: criticLoss, inputs: { x, z }, params: 'critic.*', optimizer: optim.adam() },
 *   generator: { loss, inputs: { z }, params: 'generator.*', optimizer: optim.adam() } } });
 * const { loss } = await gan.objectives.critic.step({ x, z });
 * ```
 */
export function compile<M extends Module, const O, const D extends InputDeclarations = {}>(
  spec: MultiTrainingSpec<M, O, D>): Promise<MultiTrainer<M, O, D>>;
export async function compile(spec: any): Promise<any> {
  const at = userLocation(2);
  const { model, loss, inputs, dataset, engine, objectives, whenHidden = 'continue', ...rest } = spec;
  if (whenHidden !== 'continue' && whenHidden !== 'pause')
    throw new UserError(`compile: whenHidden: expected 'continue' or 'pause', got '${whenHidden}'`);
  const entries = entriesOf(model);
  const heard = rest.recovery?.onRecovery;
  return inSession(engine, needsFull(entries), rest.device, async ({ own, device, helpers, why }) => {
    const listener = heard && own.engine.listen(heard);
    const options = { ...rest, ...(device && { device }),
                      ...(listener && { recovery: { ...rest.recovery, onRecovery: listener } }) };
    const data = inputSpecs(dataset);
    const losses: Loss[] = objectives === undefined
      ? [{ name: '', loss, options, specs: inputSpecs(inputs), data }]
      : Object.entries<any>(objectives).map(([name, { loss: each, inputs: its, params, ...of }]) => ({
        name, loss: each, params, options: of, specs: inputSpecs(its),
        data: of.batch === undefined ? [] : data }));
    const shared = objectives === undefined ? undefined : options;
    let info: TrainerInfo;
    try {
      info = await ask(own.engine, 'compile', at, {
        model: entries.entries, ...lossesOf(own, model, entries, losses, shared, at) },
        helpers);
    } catch (error) {
      if (listener) own.engine.forget(listener);
      throw error;
    }
    if (whenHidden === 'pause') pauseWhenHidden(own.engine, info.id);
    const all = [own, info, entries, model, losses, shared, at, listener, why] as const;
    return shared ? new MultiTrainer(...all) : new Trainer(...all);
  });
}

/**
 * Returns the metadata of a safetensors file, such as a checkpoint: what was passed to
 * `trainer.save()`, and entries of the library, which start with `tensorgrad.`. Verifies only the
 * header and the size of the file. `name` stands for the file in errors.
 */
export async function readMetadata(
  bytes: Uint8Array, { name, engine }: { name?: string; engine?: EngineKind } = {}):
Promise<{ [key: string]: string }> {
  const at = userLocation(2), own = (await openSession(engine)).engine;
  return ask(own, 'readMetadata', at, { bytes, name });
}
