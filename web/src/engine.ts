// SPDX-License-Identifier: MIT
// Engines, which run programs in this thread or in a worker. Functions are always recorded in this
// thread, so that the worker runs no user code.
import { AbortedError, NeedsFullModule, UserError, makeError } from './errors.js';
import { abortHeld, heldWhileHidden } from './hidden.js';
import type { DeviceOptions } from './generated/types.js';
import { Instance, Status, assets, compileModule, type Compiled } from './instance.js';
import type { Location } from './location.js';
import { decode, encode } from './wire.js';

/** @internal */
export interface Answer { status: Status; bytes: Uint8Array }

/** @internal */
export interface Engine {
  request(message: Uint8Array): Promise<Answer>;
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
  request(message: Uint8Array): Promise<Answer> {
    const answer = this.queue.then(() => this.instance.request(message));
    this.queue = answer.catch(() => undefined);
    return answer;
  }
  abort(id: number): void {
    abortHeld(this, id);
    this.instance.abort(id);
  }
  close(): void {}
}

interface Port {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  listen(f: (message: any) => void): void;
  fail(f: (error: unknown) => void): void;
  close(): void;
}

// Bundlers recognize a worker by the form of the first `new Worker`.
function pageWorker(): Worker {
  const own = assets.worker ?? import.meta.url;
  if (!/^https?:/.test(String(own)) || new URL(own).origin === location.origin) {
    return assets.worker ? new Worker(assets.worker, { type: 'module' })
      : new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  }
  // A page may only start workers of its own origin, but they may import a module of another
  // origin.
  const url = String(assets.worker ?? new URL('./worker.js', import.meta.url));
  return new Worker(URL.createObjectURL(
    new Blob([`import ${JSON.stringify(url)}`], { type: 'text/javascript' })), { type: 'module' });
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
    const fullScript = assets.fullScript && String(assets.fullScript);
    this.port.postMessage({ compiled, fullScript });
  }
  listen(f: (event: any) => void): number { return this.listeners.add(f); }
  forget(number: number): void { this.listeners.remove(number); }
  request(message: Uint8Array): Promise<Answer> {
    const id = this.next++;
    const copy = message.slice();
    this.port.postMessage({ id, message: copy }, [copy.buffer]);
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
  const receive = async ({ compiled, fullScript, id, message, abort }: any) => {
    if (compiled) {
      assets.fullScript = fullScript;
      engine = Instance.create(compiled).then((instance) => {
        const local = new LocalEngine(instance);
        instance.listener = (number, event) => port.postMessage({ number, event }, [event.buffer]);
        return local;
      });
    } else if (abort !== undefined) {
      (await engine).abort(abort);
    } else {
      try {
        const answer = await (await engine).request(message);
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
export interface Session { tracer: Instance; engine: Engine; kind: EngineKind; full: boolean }

const sessions = new Map<string, Promise<Session>>();

/**
 * @internal Returns the session of a kind; by default a worker in a page, else this thread. Uses
 * the core module if it suffices, unless the full one is already loaded.
 */
export function session(kind?: EngineKind, needsFull = false): Promise<Session> {
  const wanted = kind ?? (typeof document !== 'undefined' && typeof Worker !== 'undefined'
    ? 'worker' : 'thread');
  const full = needsFull || assets.full === true || sessions.has(`full ${wanted}`);
  const key = full ? `full ${wanted}` : wanted;
  let known = sessions.get(key);
  if (!known) {
    known = (async () => {
      // The worker loads the library while this thread loads the module.
      const worker = wanted === 'worker' ? new WorkerEngine() : undefined;
      try {
        const compiled = await compileModule(full);
        worker?.start(compiled);
        const tracer = await Instance.create(compiled);
        return { tracer, kind: wanted, full, engine: worker ?? new LocalEngine(tracer) };
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
                                   work: (own: Session) => Promise<T>): Promise<T> {
  const engine = device?.opened && openedIn.get(device.opened);
  for (const each of engine ? [...sessions.values()] : []) {
    const own = await each;
    if (own.engine !== engine) continue;
    if (kind && kind !== own.kind)
      throw new UserError(`device: opened: the program belongs to another engine, '${own.kind}'`);
    return work(own);
  }
  const own = await session(kind, needsFull);
  try {
    return await work(own);
  } catch (error) {
    if (own.full || !(error instanceof NeedsFullModule)) throw error;
    return work(await session(kind, true));
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
                          args: { readonly id?: number; readonly [name: string]: any }):
Promise<any> {
  const message = encode({ call, file, line, ...args });  // now: the caller may reuse its arrays
  const held = heldWhileHidden(engine, call, args.id ?? 0);
  if (held) await held;
  const { status, bytes } = await engine.request(message);
  const result = decode(bytes);
  if (status === Status.Failed) throw makeError(result);
  if (status === Status.NeedsTape) throw new NeedsTape(result);
  return result;
}
