// SPDX-License-Identifier: MIT
// Checks whether this browser can train, and on which device, without loading the WebAssembly
// module. Must agree with src/backend/webgpu/browser.js.

import type { DeviceOptions } from './generated/types.js';
import { threadsFor } from './threads.js';

/** Reason for the device that checkSupport() returns. */
export type SupportReason =
  | 'ok' | 'too-old' | 'insecure' | 'no-webgpu' | 'no-jspi' | 'no-adapter' | 'software-adapter'
  | 'device-lost';

/** Result of checkSupport(). */
export interface Support {
  /** The device that `device: { kind: 'auto' }` takes; null if the library cannot run at all. */
  device: 'webgpu' | 'cpu' | null;
  /** 'ok' if it is the requested device, otherwise why it is not a GPU. */
  reason: SupportReason;
  /** One or two sentences for users of the page. */
  message: string;
  /** Name of the GPU, if there is one. */
  adapter?: string;
  /** Threads that a trainer uses, if the device is the CPU. */
  threads?: number;
  /** Why it is one thread, unless that was requested. */
  oneThread?: string;
}

const CPU = 'models train on the CPU';
const messages: Record<SupportReason, string> = {
  'ok': 'Models train on the GPU.',
  'too-old': 'This browser is too old to train models. Please update it: it needs WebAssembly with ' +
    'SIMD and exceptions.',
  'insecure': `WebGPU needs a page from https or localhost, so ${CPU}.`,
  'no-webgpu': `This browser has no WebGPU, so ${CPU}.`,
  'no-jspi': 'This browser has WebGPU, but WebAssembly cannot wait for it (JSPI), so ' +
    `${CPU}. A newer version may help.`,
  'no-adapter': `No GPU is available through WebGPU, so ${CPU}.`,
  'software-adapter': `WebGPU only offers a GPU in software, which is slower than the CPU, so ${CPU}.`,
  'device-lost': `The GPU was lost, so ${CPU}. Reloading the page or restarting the browser may help.`,
};

// WebAssembly modules with one function: with a SIMD instruction, and with try and catch_all.
const simd = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0,
  253, 15, 253, 98, 11];
const exceptions = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64,
  25, 11, 11];

/**
 * Returns the device that a trainer would use here, with the reason and a message for users of the
 * page. Opens the GPU briefly, but does not load the WebAssembly module. The options are those of
 * `device`: `kind: 'cpu'` skips the GPU, `allowSoftware` accepts a software GPU, and `threads`
 * is the number of threads on the CPU. Never throws.
 */
export async function checkSupport(
  { kind = 'auto', allowSoftware = false, threads = 0 }:
  Pick<DeviceOptions, 'kind' | 'allowSoftware' | 'threads'> = {}): Promise<Support> {
  const onCpu = () => {
    const { count, why } = threadsFor(threads);
    return { threads: count, ...(why && { oneThread: why }) };
  };
  const answer = (reason: SupportReason, adapter?: string): Support => {
    const device = reason === 'ok' ? 'webgpu' : reason === 'too-old' ? null : 'cpu';
    return { device, reason, message: messages[reason], ...(adapter !== undefined && { adapter }),
             ...(device === 'cpu' && onCpu()) };
  };
  const scope = globalThis as any;
  if (typeof WebAssembly === 'undefined' || ![simd, exceptions].every(
    (each) => WebAssembly.validate(new Uint8Array(each)))) return answer('too-old');
  if (kind === 'cpu')
    return { device: 'cpu', reason: 'ok', message: 'Models train on the CPU.', ...onCpu() };
  const gpu = scope.navigator?.gpu;
  if (!gpu) return answer(scope.isSecureContext === false ? 'insecure' : 'no-webgpu');
  if (!('Suspending' in WebAssembly)) return answer('no-jspi');
  let adapter: any;
  try {
    adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  } catch {}
  if (!adapter) return answer('no-adapter');
  const { description, vendor, architecture, isFallbackAdapter } = adapter.info ?? {};
  const name = description || [vendor, architecture].filter(Boolean).join(' ') || 'unknown GPU';
  if (!allowSoftware && (isFallbackAdapter || /swiftshader|llvmpipe/i.test(architecture)))
    return answer('software-adapter', name);
  try {
    const device = await adapter.requestDevice();
    // If the device is lost, `lost` resolves at once; otherwise the empty queue is done first.
    const lost = await Promise.race([
      device.lost.then(() => true), device.queue.onSubmittedWorkDone().then(() => false)]);
    device.destroy();
    return answer(lost ? 'device-lost' : 'ok', name);
  } catch {
    return answer('device-lost', name);
  }
}
