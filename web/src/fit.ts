// SPDX-License-Identifier: MIT
// Training over the batches of a data loader, epoch by epoch.
import { UserError } from './errors.js';
import type { DataLoader, Sample } from './loader.js';
import type { Location } from './location.js';
import type { Objective } from './objective.js';

/** Progress within an epoch of `trainer.fit()`. */
export interface FitProgress {
  /** Epoch of this call, counted from 0. */
  epoch: number;
  /** Steps done in the epoch. */
  step: number;
  /** Number of steps of the epoch. */
  steps: number;
  /** Mean loss of the steps done in the epoch. */
  loss: number;
  /** Since the epoch began. */
  stepsPerSecond: number;
}

/** Result of an epoch of `trainer.fit()`. */
export interface FitEpoch {
  /** Epoch of this call, counted from 0. */
  epoch: number;
  /** Mean loss of its steps. */
  loss: number;
  /** Result of `validate`. */
  validation?: number;
  /** True if it is the best epoch so far. */
  best: boolean;
  /** Time of the steps, without the validation. */
  seconds: number;
}

/** Options of `trainer.fit()`. */
export interface FitOptions {
  /** Number of epochs; default: 1. */
  epochs?: number;
  /**
   * Called after each epoch. Returns the validation loss or another value to be minimized. Without
   * it, the mean loss of the epoch takes its place.
   */
  validate?: () => number | Promise<number>;
  /** Stops after this many epochs in a row that are not the best; 0, the default: never. */
  patience?: number;
  /** Receives a checkpoint after each epoch that is the best so far. */
  onBest?: (checkpoint: Uint8Array) => unknown;
  /** Called about every `progressSeconds`, and at the end of each epoch. */
  onProgress?: (progress: FitProgress) => unknown;
  /** Default: 0.5. Each report waits for the queued steps. */
  progressSeconds?: number;
  /** Called after each epoch, its validation and its checkpoint. Returns false to stop. */
  onEpoch?: (epoch: FitEpoch) => unknown;
}

/** Result of `trainer.fit()`. */
export interface FitResult {
  /** In order. */
  epochs: FitEpoch[];
  /** Index of the best epoch. */
  best: number;
  /** True if `patience` or `onEpoch` ended the training. */
  stopped: boolean;
}

const MAX_UNREAD = 2048;  // losses() returns the last 4096
const now = () => performance.now() / 1000;
const askLosses = (objective: Objective<any>, at: Location): Promise<Float32Array> =>
  objective.trainer.askObjective(objective.name, 'losses', at, {});

// Runs the steps of an epoch and returns their mean loss.
class Steps {
  private sum = 0;
  private unread = 0;
  private queues = true;

  constructor(private readonly objective: Objective<any>, private readonly at: Location) {}

  async add(batch: object): Promise<void> {
    if (this.queues) {
      try {
        await this.objective.askWith(batch, 'submit', {}, this.at);
        ++this.unread;
        return;
      } catch (error) {
        // Steps with `detectNan` or print() are not queued. Other errors are thrown again.
        if (this.unread > 0 || !(error instanceof UserError)) throw error;
        this.queues = false;
      }
    }
    this.sum += (await this.objective.askWith(batch, 'step', {}, this.at)).loss;
  }
  full(): boolean { return this.unread >= MAX_UNREAD; }
  // Waits for the steps, and returns the sum of their losses since begin().
  async losses(): Promise<number> {
    if (this.unread > 0)
      for (const loss of await askLosses(this.objective, this.at)) this.sum += loss;
    this.unread = 0;
    return this.sum;
  }
  begin(): void { this.sum = 0; }
}

/** @internal */
export async function fit(objective: Objective<any>, loader: DataLoader<Sample>, {
  epochs = 1, validate, patience = 0, onBest, onProgress, progressSeconds = 0.5, onEpoch,
}: FitOptions, at: Location): Promise<FitResult> {
  const check = (holds: boolean, expected: string, got: unknown) => {
    if (!holds) throw new UserError(`fit: expected ${expected}, got ${got}`);
  };
  check(Number.isInteger(epochs) && epochs >= 1, 'at least 1 epoch', epochs);
  check(Number.isInteger(patience) && patience >= 0, 'a patience of at least 0', patience);
  check(progressSeconds > 0, 'progressSeconds above 0', progressSeconds);
  await askLosses(objective, at);  // those of steps that were queued before
  const run = new Steps(objective, at), result: FitResult = { epochs: [], best: 0, stopped: false };
  let least = Infinity, notBest = 0;
  for (let epoch = 0; epoch < epochs && !result.stopped; ++epoch) {
    const begin = await loader.state(), steps = await loader.batchesPerEpoch() - begin.position;
    const start = now();
    let loss = NaN, reported = start;
    run.begin();
    const report = async (step: number) => {
      loss = await run.losses() / step;
      await onProgress?.({ epoch, step, steps, loss, stepsPerSecond: step / (now() - start) });
      reported = now();
    };
    for (let step = 1; step <= steps; ++step) {
      await run.add((await loader.next()).fields);
      if (step === steps || now() - reported >= progressSeconds) await report(step);
      else if (run.full()) await run.losses();
    }
    const done: FitEpoch = { epoch, loss, best: false, seconds: now() - start };
    if (validate) done.validation = await validate();
    const value = done.validation ?? loss;
    done.best = value < least;
    notBest = done.best ? 0 : notBest + 1;
    if (done.best) {
      least = value;
      result.best = epoch;
      if (onBest) await onBest(await objective.trainer.save());
    }
    result.epochs.push(done);
    const wanted = await onEpoch?.(done) !== false;
    result.stopped = (!wanted || (patience > 0 && notBest >= patience)) && epoch + 1 < epochs;
  }
  return result;
}
