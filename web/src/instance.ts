// SPDX-License-Identifier: MIT
// One instance of the WebAssembly module.
import { makeError } from './errors.js';
import makeModule from '#module';
import { Recording, type EntryNumbers } from './tracing.js';
import { Tensor } from './tensor.js';
import { decode, encode } from './wire.js';

/** @internal Results of the calls of web/bindings/exports.cpp. */
export const enum Status { Done, Failed, Threw, NeedsTape }

interface Exports {
  HEAPU8: Uint8Array;
  // Only with threads, any of which may grow the memory.
  wasmMemory?: WebAssembly.Memory;
  PThread?: {
    unusedWorkers: Worker[];
    allocateUnusedWorker(): Worker;
    loadWasmModuleToWorker(worker: Worker): Promise<unknown>;
    terminateAllThreads(): void;
  };
  _malloc(size: number): number;
  _free(at: number): void;
  _tgw_call(at: number, size: number): number;
  _tgw_record(at: number, size: number): number;
  _tgw_parameters(at: number, size: number): number;
  _tgw_request(at: number, size: number): number | Promise<number>;
  _tgw_reply(at: number, size: number): void;
  _tgw_abort(id: number): void;
  _tgw_result(): number;
  _tgw_result_size(): number;
  tensorgrad: {
    runTraced(): number;
    runCallback(f: number, at: number, size: number): number;
    emit(number: number, at: number, size: number): void;
  };
}

type Asset = string | URL;

/**
 * Locations of the modules and the worker, if they are not next to the library. Set them before the
 * first call.
 *
 * The full module adds language models, tokenizers and ONNX export. Models with such layers and
 * tokenizers load it automatically; `full: true` always loads it. The modules with threads replace
 * the others for programs on the CPU, where threads are available; `threads: false` never loads
 * them.
 */
export const assets: {
  wasm?: Asset; worker?: Asset; fullWasm?: Asset; fullScript?: Asset;
  threadsWasm?: Asset; threadsScript?: Asset; fullThreadsWasm?: Asset; fullThreadsScript?: Asset;
  full?: boolean; threads?: boolean;
} = {};

/** @internal A module and its script. The script of the core module is part of the library. */
export interface Compiled { module: WebAssembly.Module; script: string | undefined }

// Separate files, which bundlers find by this form.
const files: [wasm: () => Asset, script?: () => Asset][] = [
  [() => assets.wasm ?? new URL('./tensorgrad.wasm', import.meta.url)],
  [() => assets.fullWasm ?? new URL('./full.wasm', import.meta.url),
   () => assets.fullScript ?? new URL('./full.js', import.meta.url)],
  [() => assets.threadsWasm ?? new URL('./threads.wasm', import.meta.url),
   () => assets.threadsScript ?? new URL('./threads.js', import.meta.url)],
  [() => assets.fullThreadsWasm ?? new URL('./full_threads.wasm', import.meta.url),
   () => assets.fullThreadsScript ?? new URL('./full_threads.js', import.meta.url)],
];
const compiled: Promise<Compiled>[] = [];

/** @internal Compiles a module once; a worker receives the result. */
export function compileModule(full: boolean, threads: boolean): Promise<Compiled> {
  const which = Number(full) + 2 * Number(threads), [wasm, script] = files[which]!;
  return compiled[which] ??= (async () => ({
    module: await compileFile(String(wasm())), script: script && String(script()) }))()
    .catch((error) => {
      delete compiled[which];  // so that the next call tries again
      throw error;
    });
}

/**
 * @internal Returns the address for `new Worker()`. A page may only start workers of its own origin,
 * but they may import a module of another origin.
 */
export function workerUrl(url: string): string {
  return !/^https?:/.test(url) || new URL(url).origin === location.origin ? url
    : URL.createObjectURL(new Blob([`import ${JSON.stringify(url)}`], { type: 'text/javascript' }));
}

async function compileFile(url: string): Promise<WebAssembly.Module> {
  const node = (globalThis as any).process?.getBuiltinModule;
  if (node && !/^https?:/.test(url)) {
    const path = url.startsWith('file:') ? node('node:url').fileURLToPath(url) : url;
    return WebAssembly.compile(await node('node:fs/promises').readFile(path));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`tensorgrad: cannot load ${url}: ${response.status}`);
  if (response.headers.get('content-type') === 'application/wasm')
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

// Stubs for JSPI if it is missing. Nothing is suspended then, since WebGPU is missing too.
async function withoutJspi<T>(make: () => Promise<T>): Promise<T> {
  const jspi = WebAssembly as any;
  if ('Suspending' in jspi) return make();
  jspi.Suspending = function (f: Function) { return f; };
  jspi.promising = (f: Function) => async (...args: unknown[]) => f(...args);
  try {
    return await make();
  } finally {
    delete jspi.Suspending;
    delete jspi.promising;
  }
}

/** @internal */
export class Instance {
  private traced: (() => unknown) | undefined;
  private recording: Recording | undefined;
  private thrown: unknown;
  /** Receives events while a request is answered. */
  listener: (number: number, event: Uint8Array) => void = () => undefined;

  private constructor(private readonly exports: Exports) {
    exports.tensorgrad.runTraced = () => this.reply(() => this.traced!());
    exports.tensorgrad.runCallback = (number, at, size) => this.reply(() =>
      this.recording!.callback(number, decode(this.memory.slice(at, at + size))));
  }

  private get memory(): Uint8Array {
    const { HEAPU8, wasmMemory } = this.exports;
    return wasmMemory ? new Uint8Array(wasmMemory.buffer) : HEAPU8;
  }

  // Forwards events while a request is answered; see Engine.
  private listen(): void {
    this.exports.tensorgrad.emit = (number, at, size) =>
      this.listener(number, this.memory.slice(at >>> 0, (at >>> 0) + size));
  }

  static async create({ module, script }: Compiled): Promise<Instance> {
    const make: typeof makeModule =
      script ? (await import(/* @vite-ignore */ script)).default : makeModule;
    const exports: Exports = await withoutJspi(() => new Promise((resolve, reject) => make({
      tensorgrad: {},
      print: console.log,
      printErr: console.warn,
      // Threads are workers that load the script. Node's would not take this address.
      ...(script && typeof Worker !== 'undefined' && { mainScriptUrlOrBlob: workerUrl(script) }),
      instantiateWasm(imports: WebAssembly.Imports, done: Function) {
        WebAssembly.instantiate(module, imports)
          .then((instance) => done(instance, module)).catch(reject);
        return {};
      },
    }).then(resolve, reject)));
    const instance = new Instance(exports);
    instance.listen();
    return instance;
  }

  // Runs a JavaScript function for WebAssembly. Keeps an exception until the end of the call into
  // WebAssembly.
  private reply(f: () => unknown): number {
    try {
      const result = encode(f());
      this.lend(result, (at, size) => this.exports._tgw_reply(at, size));
      return 1;
    } catch (error) {
      this.thrown = error;
      return 0;
    }
  }

  private lend<T>(bytes: Uint8Array, f: (at: number, size: number) => T): T {
    const at = this.copy(bytes);
    try {
      return f(at, bytes.length);
    } finally {
      this.exports._free(at);
    }
  }

  private copy(bytes: Uint8Array): number {
    const at = this.exports._malloc(bytes.length) >>> 0;
    if (at === 0) throw new RangeError(`tensorgrad: out of memory for ${bytes.length} bytes`);
    this.memory.set(bytes, at);
    return at;
  }

  private result(): Uint8Array {
    const at = this.exports._tgw_result() >>> 0;
    return this.memory.slice(at, at + this.exports._tgw_result_size());
  }

  private finish(status: number): any {
    if (status === Status.Threw) {
      const thrown = this.thrown;
      this.thrown = undefined;
      throw thrown;
    }
    const result = decode(this.result());
    if (status === Status.Failed) throw makeError(result);
    return result;
  }

  /** Calls an op of the function being recorded. */
  call(message: Uint8Array): any {
    return this.finish(this.lend(message, (at, size) => this.exports._tgw_call(at, size)));
  }

  /** Runs a function and returns the tape of its ops. */
  record(numbers: EntryNumbers, request: object, inputs: readonly string[],
         f: (inputs: Record<string, Tensor>) => unknown): unknown {
    const outer = [this.traced, this.recording] as const;
    const recording = (this.recording = new Recording(this, numbers));
    this.traced = () => recording.run(() => {
      const at = ['', 0] as const;
      return f(Object.fromEntries(
        inputs.map((name) => [name, recording.call('$input', [name], at)])));
    });
    try {
      return this.finish(
        this.lend(encode(request), (at, size) => this.exports._tgw_record(at, size)));
    } finally {
      [this.traced, this.recording] = outer;
    }
  }

  /** Returns the names and shapes of a model's parameters. */
  parameters(entries: readonly object[]): [string, number[]][] {
    return this.finish(
      this.lend(encode(entries), (at, size) => this.exports._tgw_parameters(at, size)));
  }

  /** Answers a request, which may wait for a device. One at a time: see LocalEngine. */
  async request(message: Uint8Array): Promise<{ status: Status; bytes: Uint8Array }> {
    const at = this.copy(message);
    try {
      const status = await this.exports._tgw_request(at, message.length);
      return { status, bytes: this.result() };
    } finally {
      this.exports._free(at);
    }
  }

  /**
   * Starts workers until `count` are idle. A thread that C++ starts takes one of them. If some do not
   * start, C++ has fewer threads.
   */
  async reserve(count: number): Promise<void> {
    const pool = this.exports.PThread!;
    await Promise.all(Array.from({ length: count - pool.unusedWorkers.length }, async () => {
      const worker = pool.allocateUnusedWorker();
      try {
        const loaded = pool.loadWasmModuleToWorker(worker);
        await new Promise((resolve, reject) => {
          worker.onerror = (event) => reject(event.message ?? event);
          loaded.then(resolve);
        });
      } catch (error) {
        console.warn(`tensorgrad: cannot start a thread: ${error}`);
        pool.unusedWorkers.splice(pool.unusedWorkers.indexOf(worker), 1);
        worker.terminate();
      }
    }));
  }
  close(): void { this.exports.PThread?.terminateAllThreads(); }

  abort(id: number): void { this.exports._tgw_abort(id); }
}
