// SPDX-License-Identifier: MIT
// `./dev bench web`: compares the npm package in build/npm with jax-js and TensorFlow.js, in one
// Chromium.
//
//   node bench/web/run.mjs [--only mlp-sin,cnn] [--devices webgpu,cpu] [--libraries tensorgrad,jax-js]
//     [--modes step,run] [--rounds 3] [--seconds 2] [--limit 240] [--out results.json]
//     [--update docs/benchmarks.md]
//
// Each library has a page for each workload and device. A round measures each page once, in order.
// Prints Markdown tables. Exits with 1 if losses of the first steps differ.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { launch, serve } from '../../tests/web/browser.mjs';
import { section, update } from './tables.mjs';
import { parameters, workloads } from './workloads.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const top = path.join(here, '../..');
const packages = path.join(top, 'build/bench-web/node_modules');
const site = path.join(top, 'build/bench-web/site');
const { build } = createRequire(path.join(packages, 'x.js'))('esbuild');

const { values: options } = parseArgs({ options: {
  only: { type: 'string', default: Object.keys(workloads).join() },
  devices: { type: 'string', default: 'webgpu,cpu' },
  libraries: { type: 'string', default: 'tensorgrad,jax-js,TensorFlow.js' },
  modes: { type: 'string', default: 'step,run' },
  rounds: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '2' },
  limit: { type: 'string', default: '240' },
  out: { type: 'string' },
  update: { type: 'string' },
} });
const list = (text) => text.split(',');
for (const name of list(options.only))
  if (!workloads[name])
    throw new Error(`unknown workload '${name}'; available: ${Object.keys(workloads).join(', ')}`);
const [rounds, seconds, limit] = ['rounds', 'seconds', 'limit'].map((each) => Number(options[each]));

// The module of each library, by device.
const modules = {
  tensorgrad: { webgpu: 'tensorgrad', cpu: 'tensorgrad' },
  'jax-js': { webgpu: 'jaxjs', cpu: 'jaxjs' },
  'TensorFlow.js': { webgpu: 'tfjs_webgpu', cpu: 'tfjs_wasm' },
};

// tensorgrad is served as packaged; the others are minified by esbuild.
async function makeSite() {
  fs.rmSync(site, { recursive: true, force: true });
  fs.mkdirSync(site, { recursive: true });
  for (const name of new Set(Object.values(modules).flatMap(Object.values))) {
    await build({
      entryPoints: [path.join(here, 'page.mjs')], outfile: path.join(site, `${name}.js`),
      alias: { '#library': path.join(here, `${name}.mjs`) }, nodePaths: [packages],
      external: ['tensorgrad'], bundle: true, format: 'esm', target: 'es2022', minify: true,
      legalComments: 'none', logLevel: 'error', platform: 'browser',
    });
    fs.writeFileSync(path.join(site, `${name}.html`), `<!DOCTYPE html>
<meta charset="utf-8"><title>${name}</title>
<script type="importmap">{"imports": {"tensorgrad": "/tensorgrad/dist/tensorgrad.js"}}</script>
<script type="module" src="${name}.js"></script>
`);
  }
  return serve({ '/': site, '/tensorgrad/': path.join(top, 'build/npm'),
    '/tfjs/': path.join(packages, '@tensorflow/tfjs-backend-wasm/dist') }, { isolated: true });
}

const versions = () => Object.fromEntries(['@jax-js/jax', '@tensorflow/tfjs-core'].map((name) =>
  [name, JSON.parse(fs.readFileSync(path.join(packages, name, 'package.json'))).version]));

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// Returns the sizes of all files that the page loaded, counting each once.
function downloaded(requests, root) {
  const sizes = { raw: 0, gzip: 0, brotli: 0 };
  for (const name of new Set(requests.filter(({ status }) => status === 200).map((each) => each.path))) {
    const content = fs.readFileSync(root(name));
    sizes.raw += content.length;
    sizes.gzip += gzipSync(content, { level: 9 }).length;
    sizes.brotli += brotliCompressSync(content,
      { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }).length;
  }
  return sizes;
}
const fileOf = (name) => name.startsWith('/tensorgrad/')
  ? path.join(top, 'build/npm', name.slice('/tensorgrad/'.length))
  : name.startsWith('/tfjs/')
    ? path.join(packages, '@tensorflow/tfjs-backend-wasm/dist', name.slice('/tfjs/'.length))
    : path.join(site, name);

const note = (text) => process.stderr.write(`bench: ${text}\n`);
const withoutPage = (error) => error.message.split('\n')[0].replace(/^page\.\w+: (Error: )?/, '')
  .replace(/^.*\.html\S*: /, '').replace(/^Timeout .*/, `no first step within ${limit} s`).slice(0, 200);

/** Opens a page with one library. Returns the results of its first steps, or why it failed. */
async function openPage(server, browser, library, workload, device, engine = 'worker') {
  const before = server.requests.length;
  const query = new URLSearchParams({ workload, device, engine });
  const page = await browser.open(`${server.url}/${modules[library][device]}.html?${query}`);
  try {
    await page.waitForFunction(() => globalThis.start, undefined, { polling: 50 });
    const result = await page.call(() => globalThis.start);
    const { device: description, ...rest } = result;
    return { page, description, ...rest, bytes: downloaded(server.requests.slice(before), fileOf) };
  } catch (error) {
    await page.close();
    return { why: withoutPage(error) };
  }
}

// Relative difference of losses that counts as rounding.
const tolerance = 2e-3;

/** Returns the result lines of one workload on one device. */
async function measured(server, workload, device) {
  const lines = [], open = [];
  for (const library of list(options.libraries)) {
    // Starts a browser for each, so that no start finds a warm cache.
    const browser = await launch({ timeout: 1000 * limit, log: () => {} });
    const { page, why, ...first } = await openPage(server, browser, library, workload, device);
    const line = { workload, device, library, ...first, times: {} };
    lines.push(line);
    version.browser = `Chromium ${browser.browser.version()}`;
    if (why) {
      line.why = why;
      note(`${workload}, ${device}, ${library}: ${why}`);
      await browser.close();
      continue;
    }
    if (device === 'webgpu') {
      // The page cannot count the calls of a worker.
      const { page: counted } = library === 'tensorgrad'
        ? await openPage(server, browser, library, workload, device, 'thread') : { page };
      line.calls = await counted?.call(() => globalThis.count());
      if (counted !== page) await counted?.close();
    }
    open.push({ page, line, browser });
    note(`${workload}, ${device}, ${library}: first step ${first.first.toFixed(0)} ms, losses ${
      first.losses.map((each) => each.toFixed(5)).join(' ')}`);
  }
  for (const mode of list(options.modes)) {
    for (let round = 0; round < rounds; ++round) {
      for (const { page, line } of open) {
        if (line.times[mode] === null) continue;
        try {
          const times = await page.call((asked) => globalThis.measure(asked),
            { mode, seconds, steps: 10 });
          (line.times[mode] ??= []).push(median(times));
        } catch (error) {
          line.times[mode] = null;
          note(`${workload}, ${device}, ${line.library}, ${mode}: ${withoutPage(error)}`);
        }
      }
    }
  }
  for (const { browser } of open) await browser.close();
  for (const line of lines)
    for (const [mode, times] of Object.entries(line.times)) if (times) line[`${mode}_ms`] = median(times);
  const [reference, ...others] = lines.filter((line) => line.losses);
  for (const { library, losses } of others)
    for (const [i, loss] of losses.entries())
      if (!(Math.abs(loss - reference.losses[i]) <= tolerance * (1 + Math.abs(loss)))) {
        note(`${workload}, ${device}: loss ${i} of ${library} is ${loss}, of ${reference.library} ${
          reference.losses[i]}`);
        process.exitCode = 1;
      }
  return lines;
}

const server = await makeSite();
const lines = [], version = { browser: '' };
for (const device of list(options.devices))
  for (const workload of list(options.only)) lines.push(...await measured(server, workload, device));
await server.close();

const result = {
  date: new Date().toISOString().slice(0, 10), cpu: os.cpus()[0].model, cores: os.cpus().length, ...version,
  versions: versions(), rounds, seconds,
  parameters: Object.fromEntries(list(options.only).map((name) => [name,
    Object.values(parameters(workloads[name])).reduce((sum, { data }) => sum + data.length, 0)])),
  lines,
};
if (options.out) fs.writeFileSync(options.out, JSON.stringify(result, null, 1) + '\n');
const text = section(result);
console.log(text);
if (options.update) update(options.update, 'web', text);
