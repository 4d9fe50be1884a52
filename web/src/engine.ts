// SPDX-License-Identifier: MIT
// Engines, which run programs in this thread or in a worker. Functions are always recorded in this
// thread, so that the worker runs no user code.
import { AbortedError, NeedsFullModule, UserError, makeError } from './errors.js';
import { abortHeld, heldWhileHidden } from './hidden.js';
import type { DeviceOptions } from './generated/types.js';
import { Instance, Status, assets, compileModule, workerUrl, type Compiled } from './instance.js';
import type { Location } from './location.js';
import { checkSupport } from './support.js';
import { threadsFailed, threadsFor } from './threads.js';
import { decode, encode } from './wire.js';

/** @internal */
export interface Answer { status: Status; bytes: Uint8Array }

/** @internal */
export interface Engine {
  /** Sends a request. `helpers` is the number of threads that it starts. */
  request(message: Uint8Array, helpers?: number): Promise<Answer>;
  abort(id: number): void;
  close(): void;
  /**
   * Registers a listener for events. Requests refer to it by the number returned. forget() removes
   * it.
   */
  listen(f: (event: any) => void): number;
  forget(number: number): void;
}

// Listeners for events. Their exceptions do not reach the caller of the request.
class Listeners {
  private readonly all = new Map<number, (event: any) => void>();
  private next = 1;
  add(f: (event: any) => void): number {
    this.all.set(this.next, f);
    return this.next++;
  }
  remove(number: number): void { this.all.delete(number); }
  call(number: number, event: Uint8Array): void {
    const f = this.all.get(number);
    if (f) queueMicrotask(() => f(decode(event)));
  }
}

/**
 * @internal Runs programs in this thread. Requests are queued, because only one may be suspended.
 */
export class LocalEngine implements Engine {
  private queue: Promise<unknown> = Promise.resolve();
  private readonly listeners = new Listeners();
  constructor(private readonly instance: Instance) {
    instance.listener = (number, event) => this.listeners.call(number, event);
  }
  listen(f: (event: any) => void): number { return this.listeners.add(f); }
  forget(number: number): void { this.listeners.remove(number); }
  request(message: Uint8Array, helpers = 0): Promise<Answer> {
    const answer = this.queue.then(async () => {
      if (helpers) await this.instance.reserve(helpers);
      return this.instance.request(message);
    });
    this.queue = answer.catch(() => undefined);
    return answer;
  }
  abort(id: number): void {
    abortHeld(this, id);
    this.instance.abort(id);
  }
  close(): void { this.instance.close(); }
}

interface Port {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  listen(f: (message: any) => void): void;
  fail(f: (error: unknown) => void): void;
  close(): void;
}

// Bundlers recognize a worker by the form of the first `new Worker`.
function pageWorker(): Worker {
  if (!assets.worker && workerUrl(import.meta.url) === import.meta.url)
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  const url = String(assets.worker ?? new URL('./worker.js', import.meta.url));
  return new Worker(workerUrl(url), { type: 'module' });
}

// Starts a worker of a page or of node.
function startWorker(): Port {
  const node = (globalThis as any).process?.getBuiltinModule?.('node:worker_threads');
  if (node && typeof Worker === 'undefined') {
    const worker = new node.Worker(
      new URL(assets.worker ?? new URL('./worker.js', import.meta.url)));
    // Node may exit if no request is pending.
    let pending = 0;
    worker.unref();
    return {
      postMessage: (message, transfer) => {
        if ((message as any).id !== undefined && pending++ === 0) worker.ref();
        worker.postMessage(message, transfer);
      },
      listen: (f) => worker.on('message', (message: any) => {
        if (message.id !== undefined && --pending === 0) worker.unref();
        f(message);
      }),
      fail: (f) => worker.on('error', f),
      close: () => void worker.terminate(),
    };
  }
  const worker = pageWorker();
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer ?? []),
    listen: (f) => { worker.onmessage = (event) => f(event.data); },
    fail: (f) => { worker.onerror = (event) => f(new Error(event.message || 'the worker failed')); },
    close: () => worker.terminate(),
  };
}

/** @internal Runs programs in a worker. */
export class WorkerEngine implements Engine {
  private readonly port: Port;
  private readonly waiting = new Map<number, {
    resolve(answer: Answer): void; reject(error: unknown): void;
  }>();
  private next = 1;
  private readonly listeners = new Listeners();

  constructor() {
    this.port = startWorker();
    this.port.listen(({ id, answer, error, number, event }) => {
      if (event) return this.listeners.call(number, event);
      const call = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) call?.reject(new Error(`tensorgrad: the worker failed: ${error}`));
      else call?.resolve(answer);
    });
    this.port.fail((error) => this.rejectAll(error));
  }
  /** Starts the engine. Must precede all requests. */
  start(compiled: Compiled): void {
    this.port.postMessage({ compiled });
  }
  listen(f: (event: any) => void): number { return this.listeners.add(f); }
  forget(number: number): void { this.listeners.remove(number); }
  request(message: Uint8Array, helpers?: number): Promise<Answer> {
    const id = this.next++;
    const copy = message.slice();
    this.port.postMessage({ id, message: copy, helpers }, [copy.buffer]);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }
  abort(id: number): void {
    abortHeld(this, id);
    this.port.postMessage({ abort: id });
  }
  close(): void {
    this.port.close();
    this.rejectAll(new AbortedError('the engine was closed'));
  }
  private rejectAll(error: unknown): void {
    for (const call of this.waiting.values()) call.reject(error);
    this.waiting.clear();
  }
}

/** Answers the messages of a page in a worker. Only for dist/worker.js. */
export function serve(): void {
  const node = (globalThis as any).process?.getBuiltinModule?.('node:worker_threads');
  const port = node?.parentPort ?? globalThis;
  let engine: Promise<LocalEngine>;
  const receive = async ({ compiled, id, message, helpers, abort }: any) => {
    if (compiled) {
      engine = Instance.create(compiled).then((instance) => {
        const local = new LocalEngine(instance);
        instance.listener = (number, event) => port.postMessage({ number, event }, [event.buffer]);
        return local;
      });
    } else if (abort !== undefined) {
      (await engine).abort(abort);
    } else {
      try {
        const answer = await (await engine).request(message, helpers);
        port.postMessage({ id, answer }, [answer.bytes.buffer]);
      } catch (error) {
        port.postMessage({ id, error: String((error as Error)?.stack ?? error) });
      }
    }
  };
  if (node?.parentPort) port.on('message', receive);
  else port.onmessage = (event: MessageEvent) => void receive(event.data);
}

/** Where programs run. */
export type EngineKind = 'worker' | 'thread';

/** @internal A tracer in this thread, and the engine that runs what it records. */
export interface Session {
  tracer: Instance; engine: Engine; kind: EngineKind; full: boolean; threads: boolean;
}

/** @internal A session for a program, and its device. */
export interface Place {
  own: Session;
  device: DeviceOptions | undefined;
  /** Threads that opening the device starts. */
  helpers: number;
  /** Why the CPU has one thread; '' if it has more or is not used. */
  why: string;
}

const sessions = new Map<string, Promise<Session>>();

function open(kind: EngineKind, needsFull: boolean, threads: boolean): Promise<Session> {
  const name = (isFull: boolean) => `${kind} ${isFull} ${threads}`;
  const full = needsFull || assets.full === true || sessions.has(name(true)), key = name(full);
  let known = sessions.get(key);
  if (!known) {
    known = (async () => {
      // The worker loads the library while this thread loads the module.
      const worker = kind === 'worker' ? new WorkerEngine() : undefined;
      try {
        const compiled = await compileModule(full, threads);
        worker?.start(compiled);
        const tracer = await Instance.create(compiled);
        return { tracer, kind, full, threads, engine: worker ?? new LocalEngine(tracer) };
      } catch (error) {
        worker?.close();
        throw error;
      }
    })();
    known.catch(() => sessions.delete(key));
    sessions.set(key, known);
  }
  return known;
}

const onCpu = new Map<boolean, Promise<boolean>>();

// Whether programs with these options run on the CPU.
async function takesCpu({ kind = 'auto', allowSoftware = false }: DeviceOptions): Promise<boolean> {
  if (kind !== 'auto') return kind === 'cpu';
  const known = onCpu.get(allowSoftware) ??
    checkSupport({ allowSoftware }).then(({ device }) => device === 'cpu');
  onCpu.set(allowSoftware, known);
  return known;
}

const inPage = () => typeof document !== 'undefined' && typeof Worker !== 'undefined';

/**
 * @internal Returns the session for programs with a device, by default the one that they take by
 * default; the kind of engine is a worker in a page, else this thread. Uses the core module if it
 * suffices, unless the full one is already loaded, and the module with threads for the CPU.
 */
export async function place(kind?: EngineKind, needsFull = false, device?: DeviceOptions):
Promise<Place> {
  const wanted = kind ?? (inPage() ? 'worker' : 'thread');
  const one = async (why = '') =>
    ({ own: await open(wanted, needsFull, false), device, helpers: 0, why });
  const { count, why } = threadsFor(device?.threads, inPage() && wanted === 'thread');
  if (count === 1) return one(why);
  if (!await takesCpu(device ?? {})) return one();
  try {
    return { own: await open(wanted, needsFull, true), helpers: count - 1, why: '',
             device: { ...device, kind: 'cpu', threads: count } };
  } catch (error) {
    threadsFailed(error);
    return place(kind, needsFull, device);
  }
}

/** @internal Returns the session for what needs no device. */
export async function session(kind?: EngineKind, needsFull = false): Promise<Session> {
  return (await place(kind, needsFull)).own;
}

/** @internal Returns a session that is open, if any, else that of programs with the default device. */
export async function openSession(kind: EngineKind = inPage() ? 'worker' : 'thread'): Promise<Session> {
  for (const each of [...sessions.values()]) {
    const own = await each.catch(() => undefined);
    if (own?.kind === kind) return own;
  }
  return session(kind);
}

/** @internal Returns the session with the full module that is otherwise like this one. */
export function fullSession({ kind, threads }: Session): Promise<Session> {
  return open(kind, true, threads);
}

/** @internal Returns the description of a device, with the reason if the CPU has one thread. */
export function described(device: string, why: string): string {
  return why && device.startsWith('cpu') ? `${device}; one thread, because ${why}` : device;
}

// The engine of each value of sameDevice().
const openedIn = new WeakMap<object, Engine>();

/** @internal Returns the option `device` of programs that run on the device of this one. */
export function deviceOf(engine: Engine, program: number): DeviceOptions {
  const opened = { program };
  openedIn.set(opened, engine);
  return { opened };
}

/**
 * @internal Calls `work` with a session: that of the program whose device is requested, if any.
 * Calls it again with the full module if the core module lacks something that it uses.
 */
export async function inSession<T>(kind: EngineKind | undefined, needsFull: boolean,
                                   device: DeviceOptions | undefined,
                                   work: (at: Place) => Promise<T>): Promise<T> {
  const engine = device?.opened && openedIn.get(device.opened);
  for (const each of engine ? [...sessions.values()] : []) {
    const own = await each;
    if (own.engine !== engine) continue;
    if (kind && kind !== own.kind)
      throw new UserError(`device: opened: the program belongs to another engine, '${own.kind}'`);
    return work({ own, device, helpers: 0, why: '' });
  }
  const at = await place(kind, needsFull, device);
  try {
    return await work(at);
  } catch (error) {
    if (at.own.full || !(error instanceof NeedsFullModule)) throw error;
    return work(await place(kind, true, device));
  }
}

/** Stops the workers. Running calls are aborted, and objects must not be used again. */
export async function close(): Promise<void> {
  const open = [...sessions.values()];
  sessions.clear();
  for (const each of open) (await each).engine.close();
}

/** @internal Thrown if a function must be recorded for another dynamic size. */
export class NeedsTape { constructor(readonly size: number) {} }

/** @internal Sends a request and returns its result. */
export async function ask(engine: Engine, call: string, [file, line]: Location,
                          args: { readonly id?: number; readonly [name: string]: any },
                          helpers?: number): Promise<any> {
  const message = encode({ call, file, line, ...args });  // now: the caller may reuse its arrays
  const held = heldWhileHidden(engine, call, args.id ?? 0);
  if (held) await held;
  const { status, bytes } = await engine.request(message, helpers);
  const result = decode(bytes);
  if (status === Status.Failed) throw makeError(result);
  if (status === Status.NeedsTape) throw new NeedsTape(result);
  return result;
}
