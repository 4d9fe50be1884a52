// SPDX-License-Identifier: MIT
// The line of the user's program that called the library, from the stack of an error. Node applies
// source maps if it runs with --enable-source-maps.

/** A line of the user's program. */
export type Location = readonly [file: string, line: number];

const own = import.meta.url.replace(/[?#].*/, '');

/**
 * Returns the innermost line that is not the library's. If a bundler put the program into the same
 * file as the library, it is the line `depth` calls above.
 */
export function userLocation(depth: number): Location {
  const frames: Location[] = [];
  for (const line of (new Error().stack ?? '').split('\n')) {
    const match = /([^\s(@]+):(\d+):\d+\)?$/.exec(line.trim());
    if (!match) continue;
    const frame = [match[1]!.replace(/[?#].*/, '').replace(/^file:\/\//, ''), +match[2]!] as const;
    if (frame[0] !== own.replace(/^file:\/\//, '')) return frame;
    frames.push(frame);
  }
  return frames[depth] ?? ['', 0];
}
