// SPDX-License-Identifier: MIT
// Maps a line of a built page to the line of TypeScript that it was generated from.

/** A line of a source file, with the whole file. */
export interface Place { file: string; line: number; lines: string[] }

interface SourceMap { sources: string[]; sourcesContent: string[]; mappings: string }

const maps = new Map<string, Promise<SourceMap | undefined>>();
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

// Returns the numbers of one segment: base 64, five bits per digit, the sign in the last bit.
function numbers(segment: string): number[] {
  const result: number[] = [];
  let value = 0, shift = 0;
  for (const letter of segment) {
    const digit = digits.indexOf(letter);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    result.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return result;
}

/** Returns the source of a location "URL:LINE", or nothing if it has no source map. */
export async function sourceOf(location: string): Promise<Place | undefined> {
  const [, url, wanted] = /^(.*?):(\d+)$/.exec(location) ?? [];
  if (!url || !wanted) return undefined;
  if (!maps.has(url)) {
    maps.set(url, fetch(`${url}.map`).then((answer) => (answer.ok ? answer.json() : undefined)).catch(() => undefined));
  }
  const map = await maps.get(url);
  if (!map) return undefined;
  let source = 0, line = 0;
  for (const [i, segments] of map.mappings.split(';').entries()) {
    let first: { source: number; line: number } | undefined;
    for (const segment of segments.split(',')) {
      const [, sources, lines] = numbers(segment);
      if (lines === undefined) continue;
      source += sources!;
      line += lines;
      first ??= { source, line };
    }
    if (i + 1 !== Number(wanted)) continue;
    return first && { file: map.sources[first.source]!.replace(/.*\//, ''), line: first.line + 1,
      lines: map.sourcesContent[first.source]!.split('\n') };
  }
  return undefined;
}
