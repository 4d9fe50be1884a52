// SPDX-License-Identifier: MIT
// Batches of samples that a user's function returns. C++ manages order and position
// (web/bindings/loader_requests.cpp); samples are read in this thread.
import { ask, session, type Engine, type EngineKind } from './engine.js';
import { ShapeError, UserError } from './errors.js';
import type { LoaderOptions, LoaderState } from './generated/types.js';
import { type Location, userLocation } from './location.js';

type Numbers = Float32Array | Int32Array | Uint32Array | readonly number[];
/** Fields of a sample by name: their elements, or one number. */
export type Sample = { readonly [field: string]: Numbers | number };
type Joined<X> = X extends Float32Array ? Float32Array : X extends Int32Array ? Int32Array
  : X extends Uint32Array ? Uint32Array : number[];

/** Batch of samples returned by `loader.next()`. */
export interface Batch<S extends Sample = Sample> {
  /** Elements of all samples by field, as step() takes them. */
  fields: { [K in keyof S]: Joined<S[K]> };
  /** Counted from 0. */
  epoch: number;
  /** Index of the batch in its epoch, counted from 0. */
  position: number;
  /** Number of samples. */
  samples: number;
}

interface Ahead<S extends Sample> { at: LoaderState; next: LoaderState; batch: Promise<Batch<S>> }

const same = (a: LoaderState, b: LoaderState) =>
  a.epoch === b.epoch && a.position === b.position && a.seed === b.seed;

function join(name: string, values: readonly (Numbers | number)[], indices: Int32Array): any {
  const size = (each: Numbers | number) => (typeof each === 'number' ? 1 : each.length);
  const first = values[0]!, count = size(first);
  values.forEach((each, i) => {
    if (each === undefined)
      throw new UserError(`DataLoader: sample ${indices[i]} has no field '${name}'`);
    if (size(each) !== count) {
      throw new ShapeError(`DataLoader: sample ${indices[i]}: field '${name}': expected ${count} ` +
        `elements, got ${size(each)}`);
    }
  });
  if (typeof first === 'number' || Array.isArray(first)) return values.flat();
  const all = new (first.constructor as any)(count * values.length);
  values.forEach((each, i) => all.set(each, i * count));
  return all;
}

/**
 * Endless sequence of batches, epoch by epoch. `get(index, epoch)` returns a sample, or a promise of
 * one; the samples of a batch are requested at once. The order depends only on the seed, and equals
 * that of C++. `prefetch` batches are requested ahead.
 * ```ts
 * const loader = new DataLoader(files.length, (i) => readSample(files[i]), { batch: 64 });
 * await trainer.step((await loader.next()).fields);
 * ```
 */
export class DataLoader<S extends Sample = Sample> {
  private readonly ahead: Ahead<S>[] = [];
  private opened: Promise<{ engine: Engine; id: number }> | undefined;
  private owned = false;  // by a trainer
  private queue: Promise<unknown> = Promise.resolve();

  /** Declares a loader over the samples [0, size). Options are checked by the first call. */
  constructor(
    readonly size: number,
    private readonly get: (index: number, epoch: number) => S | Promise<S>,
    private readonly options: LoaderOptions & { engine?: EngineKind } = {}) {}

  private open(): Promise<{ engine: Engine; id: number }> {
    return (this.opened ??= this.create(userLocation(3)));
  }
  private async create(at: Location, given?: Engine): Promise<{ engine: Engine; id: number }> {
    const { engine: kind, prefetch, ...options } = this.options;
    if (prefetch !== undefined && !(Number.isInteger(prefetch) && prefetch >= 0))
      throw new UserError(`DataLoader: prefetch: expected an integer from 0, got ${prefetch}`);
    const engine = given ?? (await session(kind)).engine;
    return { engine, id: await ask(engine, 'loader.create', at, { size: this.size, options }) };
  }
  /** @internal Returns its number in the engine of a trainer, into which it is moved. */
  add(engine: Engine, name: string): Promise<number> {
    const at = userLocation(3);
    const added = this.queue.then(async () => {
      const { engine: before, id } = await (this.opened ??= this.create(at, engine));
      if (before === engine) {
        this.owned = true;
        return id;
      }
      if (this.owned)
        throw new UserError(`addLoader: the loader '${name}' is in another engine than the trainer`);
      const state = await ask(before, 'loader.state', at, { id });
      const moved = await this.create(at, engine);
      await ask(engine, 'loader.loadState', at, { id: moved.id, state });
      await ask(before, 'loader.free', at, { id });
      this.opened = Promise.resolve(moved);
      this.owned = true;
      return moved.id;
    });
    this.queue = added.catch(() => undefined);
    return added;
  }
  private async ask(call: string, args: object = {}): Promise<any> {
    const at = userLocation(3);
    const { engine, id } = await this.open();
    return ask(engine, `loader.${call}`, at, { id, ...args });
  }

  /**
   * Returns the next batch. What `get` throws is thrown here; the position is unchanged then, so that
   * the next call retries the same batch.
   */
  next(): Promise<Batch<S>> {
    const batch = this.queue.then(() => this.take());
    this.queue = batch.catch(() => undefined);
    return batch;
  }
  private async take(): Promise<Batch<S>> {
    const now: LoaderState = await this.ask('state');
    if (this.ahead[0] && !same(this.ahead[0].at, now)) this.ahead.length = 0;
    while (this.ahead.length <= (this.options.prefetch ?? 2)) {
      const at = this.ahead.at(-1)?.next ?? now;
      const { indices, epoch, position, next } = await this.ask('batch', { at });
      const batch = this.read(indices, epoch, position);
      batch.catch(() => undefined);  // thrown by the call that needs the batch
      this.ahead.push({ at, next, batch });
    }
    const { batch, next } = this.ahead[0]!;
    try {
      const result = await batch;
      await this.ask('loadState', { state: next });
      this.ahead.shift();
      return result;
    } catch (error) {
      this.ahead.length = 0;
      throw error;
    }
  }
  private async read(indices: Int32Array, epoch: number, position: number): Promise<Batch<S>> {
    const samples = await Promise.all(Array.from(indices, async (i) => this.get(i, epoch)));
    const names = new Set(samples.flatMap(Object.keys));
    const fields = Object.fromEntries([...names].map((name) =>
      [name, join(name, samples.map((each) => each[name]!), indices)]));
    return { fields: fields as Batch<S>['fields'], epoch, position, samples: samples.length };
  }
  /** Returns the same batches for `for await`. Never ends by itself. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Batch<S>, never> {
    for (;;) yield await this.next();
  }
  /** Returns the number of batches in an epoch. */
  batchesPerEpoch(): Promise<number> { return this.ask('batchesPerEpoch'); }
  /** Returns the position of the next batch. `trainer.addLoader()` stores it in checkpoints. */
  state(): Promise<LoaderState> { return this.ask('state'); }
  /** Continues from a position and discards batches that were read ahead. */
  loadState(state: LoaderState): Promise<void> { return this.ask('loadState', { state }); }
  /** Frees the loader. */
  free(): Promise<void> { return this.ask('free'); }
}

/** Yields the values of a source, and requests `count` of them ahead. */
export async function* prefetch<T>(source: AsyncIterable<T> | Iterable<T | Promise<T>>,
                                   count = 2): AsyncGenerator<Awaited<T>> {
  const from: Iterator<any> | AsyncIterator<any> =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const ahead: Promise<IteratorResult<any>>[] = [];
  const pull = () => {
    const next = Promise.resolve(from.next());
    next.catch(() => undefined);  // thrown when the value is yielded
    ahead.push(next);
  };
  try {
    for (;;) {
      while (ahead.length <= count) pull();
      const { done, value } = await ahead.shift()!;
      if (done) return;
      yield await value;
    }
  } finally {
    await from.return?.();
  }
}
