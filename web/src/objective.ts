// SPDX-License-Identifier: MIT
// Training steps of one loss.
import { fit, type FitOptions, type FitResult } from './fit.js';
import type { Captures, HostTensor, ProfileResult } from './function.js';
import type { CompileReport, GraphStage, GraphView, ProfileOptions } from './generated/types.js';
import type { DataLoader, Sample } from './loader.js';
import { userLocation } from './location.js';
import type { Schedule } from './make.js';
import { dynamicSize, feed, type Feed, type InputDeclarations, type InputSpec } from './options.js';
import type { TrainerBase } from './trainer.js';

/** Result of a training step. */
export interface StepResult<C extends string = string> {
  loss: number;
  /** Number of steps so far, including this one. */
  step: number;
  /** The requested captures. */
  captures: Captures<C>;
}

/** Result of `trainer.tryStep()`. */
export type StepOutcome =
  | ({ status: 'completed' } & StepResult)
  | { status: 'aborted' }
  | { status: 'failed'; error: Error };

/** Options of one step. */
export interface StepOptions<C extends string = string> {
  /** Names of capture() tensors to return. */
  captures?: readonly C[];
}

/** One of the losses of a MultiTrainer: `trainer.objectives.NAME`. A Trainer has the same calls. */
export class Objective<I extends InputDeclarations = InputDeclarations> {
  /** @internal `name` is empty if it is the only loss. */
  constructor(
    /** @internal */
    readonly trainer: Pick<TrainerBase<any, any>, 'askObjective' | 'info' | 'recordFor' | 'save'>,
    readonly name: string, /** @internal */ readonly specs: readonly InputSpec[]) {}

  /** @internal */
  ask(call: string, args: object = {}): Promise<any> {
    return this.trainer.askObjective(this.name, call, userLocation(3), args);
  }

  /** @internal Sends a call with inputs. Records the loss for their size if necessary. */
  async askWith(inputs: object | undefined, call: string, args: object = {}, at = userLocation(3)):
  Promise<any> {
    const fed = feed(inputs, this.specs);
    // Both are sent now, because calls run in the order in which they are made.
    const [, result] = await Promise.all([
      this.trainer.recordFor(this.name, dynamicSize(fed, this.specs), at),
      this.trainer.askObjective(this.name, call, at, { inputs: fed, ...args })]);
    return result;
  }

  /** Names of all captures in the loss function. */
  get captures(): readonly string[] { return this.trainer.info.captures[this.name]!; }

  /** Runs one step, waits for it, and returns the loss and the requested captures. */
  step<const C extends string = string>(
    ...[inputs, options]: {} extends I ? [inputs?: Feed<I>, options?: StepOptions<C>]
      : [inputs: Feed<I>, options?: StepOptions<C>]): Promise<StepResult<C>> {
    return this.askWith(inputs, 'step', options);
  }
  /** Like step(), but returns errors as part of the result instead of throwing them. */
  async tryStep(inputs?: Feed<I>, options: StepOptions = {}): Promise<StepOutcome> {
    try {
      const result = await this.askWith(inputs, 'step', options);
      return { status: 'completed', ...result };
    } catch (error) {
      if ((error as Error).name === 'AbortedError') return { status: 'aborted' };
      return { status: 'failed', error: error as Error };
    }
  }
  /**
   * Runs part of a step: the launches that are expected to fit into `seconds`, judged by their
   * earlier times, but at least one. Returns the step's result once it is complete, else undefined.
   * A page that draws with the same GPU calls it once per frame.
   *
   * The first call starts the step on `inputs`, as step(); calls that continue it ignore theirs.
   * Other calls of the trainer finish the step first; the next stepFor() then returns its result.
   * There are no captures.
   */
  async stepFor(seconds: number, ...[inputs]: {} extends I ? [inputs?: Feed<I>] : [inputs: Feed<I>]):
  Promise<StepResult<never> | undefined> {
    return await this.askWith(inputs, 'stepFor', { seconds }) ?? undefined;
  }
  /**
   * Discards the step that stepFor() started, unless it has begun to change parameters or states.
   * Returns true if it was discarded, and false if there is none or it must be finished.
   */
  cancelStep(): Promise<boolean> { return this.ask('cancelStep'); }
  /** Runs `steps` steps on the dataset, and returns their losses. */
  run(steps: number): Promise<Float32Array> { return this.ask('run', { steps }); }
  /**
   * Queues steps without waiting for their results: that many steps on the dataset, or one step on
   * these inputs. losses() returns their losses.
   */
  async submit(batch: number | Feed<I>): Promise<void> {
    if (typeof batch === 'number') return await this.ask('submit', { steps: batch });
    await this.askWith(batch, 'submit');
  }
  /** Waits for all queued steps and returns their losses since the previous call. */
  losses(): Promise<Float32Array> { return this.ask('losses'); }
  /**
   * Trains on the batches of a loader, whose fields are the inputs, epoch by epoch. The first epoch
   * is the rest of the loader's current one. Other calls may run between its steps, except
   * losses(), which would take the losses of its steps.
   * ```ts
   * await trainer.fit(loader, { epochs: 20, validate: validationLoss, patience: 3,
   *   onBest: (checkpoint) => { best = checkpoint; },
   *   onProgress: ({ step, steps, loss }) => show(step / steps, loss) });
   * ```
   */
  fit<S extends Sample>(loader: DataLoader<S>, options: FitOptions = {}): Promise<FitResult> {
    return fit(this, loader as unknown as DataLoader, options, userLocation(2));
  }
  /** Returns the numbers of steps, updates and epochs, and the learning rate of the next step. */
  counters(): Promise<{
    steps: number; updates: number; epoch: number; batchesPerEpoch: number; lr: number;
  }> { return this.ask('counters'); }
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
  /** Returns the gradients of the last step by parameter. */
  downloadGrads(): Promise<{ [name: string]: HostTensor }> { return this.ask('downloadGrads'); }
  /** Runs real training steps on the same inputs and returns the median cost of each launch. */
  profile(inputs?: Feed<I>, options: ProfileOptions = {}): Promise<ProfileResult> {
    return this.askWith(inputs, 'profile', { options });
  }
  /** Returns a text with the launch table and the memory plan. */
  explain(): Promise<string> { return this.ask('explain'); }
  /** Returns statistics of the compiled program. */
  report(): Promise<CompileReport> { return this.ask('report'); }
  /** Returns the dynamic sizes with a compiled program. */
  compiledSizes(): Promise<number[]> { return this.ask('compiledSizes'); }
  /** Returns the graph of a training step. */
  graph(stage: GraphStage = 'traced'): Promise<GraphView> { return this.ask('graph', { stage }); }
}
