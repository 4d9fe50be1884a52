// SPDX-License-Identifier: MIT
// The line of the user's program that called the library, from the stack of an error. Node applies
// source maps if it runs with --enable-source-maps.

/** A line of the user's program. */
export type Location = readonly [file: string, line: number];

// Yields the lines of a stack, innermost first.
function* frames({ stack = '' }: Error): Generator<Location> {
  for (const line of stack.split('\n')) {
    const match = /([^\s(@]+):(\d+):\d+\)?$/.exec(line.trim());
    if (match) yield [match[1]!.replace(/[?#].*/, '').replace(/^file:\/\//, ''), +match[2]!];
  }
}

// The library's file. A source map may name it otherwise than import.meta.url does.
const own = frames(new Error()).next().value?.[0];

/**
 * Returns the innermost line that is not the library's. If a bundler put the program into the same
 * file as the library, and no source map is applied, it is the line `depth` calls above.
 */
export function userLocation(depth: number): Location {
  const inside: Location[] = [];
  for (const frame of frames(new Error())) {
    if (frame[0] !== own) return frame;
    inside.push(frame);
  }
  return inside[depth] ?? ['', 0];
}
