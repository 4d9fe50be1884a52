// SPDX-License-Identifier: MIT
// Number of threads of the CPU backend in this page or in node.
import { assets } from './instance.js';

/** @internal Threads of a program, and why it is one although more were possible elsewhere. */
export interface Threads { count: number; why?: string }

// More threads rarely make a step faster, and each is a worker with a stack.
const MOST_BY_DEFAULT = 8;
let failure: string | undefined;

/** @internal Remembers that the modules with threads do not work here. */
export function threadsFailed(error: unknown): void {
  failure = `threads do not start: ${(error as Error)?.message ?? error}`;
}

/**
 * @internal Returns the threads of a program with the option `threads: asked`. `pageThread`: it runs
 * in the thread of the page, which must not block.
 */
export function threadsFor(asked: number = 0, pageThread: boolean = false): Threads {
  const scope = globalThis as any, node = scope.process?.getBuiltinModule;
  const valid = Number.isInteger(asked) && asked >= 0 && asked <= 256;  // others are refused in C++
  if (!valid || asked === 1 || assets.threads === false) return { count: 1 };
  if (!node && !scope.crossOriginIsolated) {
    return { count: 1, why: 'the page is not cross-origin isolated: it lacks the headers ' +
      'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp' };
  }
  if (pageThread) return { count: 1, why: "the thread of a page must not block: use engine: 'worker'" };
  if (failure) return { count: 1, why: failure };
  if (asked > 1) return { count: asked };
  const cores: number = node ? node('node:os').availableParallelism()
    : scope.navigator?.hardwareConcurrency ?? 1;
  return cores > 1 ? { count: Math.min(cores, MOST_BY_DEFAULT) }
    : { count: 1, why: 'the machine has one core' };
}
