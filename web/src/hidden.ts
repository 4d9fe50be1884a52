// SPDX-License-Identifier: MIT
// Trainers that pause while their page is hidden: calls that train wait until it is visible.
import { AbortedError } from './errors.js';

/** Behavior of a trainer while its page is hidden; see TrainingSpec. */
export type WhenHidden = 'continue' | 'pause';

const training = /\.(step|stepFor|run|submit)$/;
// Waiting calls by trainer.
const waiting = new WeakMap<object, Map<number, Set<(error: Error) => void>>>();

const hidden = () => typeof document !== 'undefined' && document.visibilityState === 'hidden';

/** @internal Makes the training calls of a trainer wait while the page is hidden. */
export function pauseWhenHidden(engine: object, id: number): void {
  if (!waiting.has(engine)) waiting.set(engine, new Map());
  waiting.get(engine)!.set(id, new Set());
}

/** @internal Forgets a trainer. */
export function forgetHidden(engine: object, id: number): void { waiting.get(engine)?.delete(id); }

/** @internal Returns the promise that a call must wait for, if any. */
export function heldWhileHidden(engine: object, call: string, id: number): Promise<void> | undefined {
  const held = training.test(call) ? waiting.get(engine)?.get(id) : undefined;
  if (!held || !hidden()) return undefined;
  return new Promise<void>((resolve, reject) => {
    const end = (error?: Error) => {
      document.removeEventListener('visibilitychange', look);
      held.delete(end);
      if (error) reject(error);
      else resolve();
    };
    const look = () => { if (!hidden()) end(); };
    held.add(end);
    document.addEventListener('visibilitychange', look);
  });
}

/** @internal Aborts the waiting calls of a trainer. */
export function abortHeld(engine: object, id: number): void {
  for (const end of [...waiting.get(engine)?.get(id) ?? []])
    end(new AbortedError('the call was aborted while the page was hidden'));
}
