// SPDX-License-Identifier: MIT

/** Result of a call of singleFlight(): its value, or `aborted` if a newer call replaced it. */
export type Flight<T> = { completed: true; value: T } | { completed: false; aborted: true };

/**
 * Returns a function that runs one call of `f` at a time. At most one call waits; a newer one
 * replaces it, and the replaced call resolves as aborted. Useful for a prediction that follows a
 * slider.
 */
export function singleFlight<A extends unknown[], T>(
  f: (...args: A) => Promise<T> | T): (...args: A) => Promise<Flight<T>> {
  let running = false;
  let waiting: { args: A; start(): void; drop(): void } | undefined;
  const call = async (args: A): Promise<Flight<T>> => {
    running = true;
    try {
      return { completed: true, value: await f(...args) };
    } finally {
      running = false;
      const next = waiting;
      waiting = undefined;
      next?.start();
    }
  };
  return (...args) => {
    if (!running) return call(args);
    waiting?.drop();
    return new Promise((resolve, reject) => {
      waiting = { args, start: () => { call(args).then(resolve, reject); },
        drop: () => resolve({ completed: false, aborted: true }) };
    });
  };
}
