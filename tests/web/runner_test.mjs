// SPDX-License-Identifier: MIT
// Exported models in a page: results match those of the CPU, errors are descriptive, and the page
// loads few bytes.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';

import {launch, serve} from './browser.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const build = process.env.TENSORGRAD_BUILD ?? path.join(here, '../../build/release');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tensorgrad-runner-'));
const models = ['mlp', 'cnn', 'attention', 'language_model', 'random', 'types'];
const limit = 60_000;  // maximum bytes that a page loads besides the weights
let site, browser;

before(async () => {
  execFileSync(path.join(build, 'tests/export_models'), [folder], {stdio: 'inherit'});
  fs.writeFileSync(path.join(folder, 'index.html'), '<!DOCTYPE html><title>models</title>');
  site = await serve(folder);
  browser = await launch({timeout: 300_000});
});
after(async () => {
  await browser?.close();
  await site?.close();
  fs.rmSync(folder, {recursive: true});
});

const read = name => JSON.parse(fs.readFileSync(path.join(folder, name)));

// Evaluates `body(runner, argument)` in a new page.
async function inPage(body, argument, where = browser) {
  const page = await where.open(site.url);
  try {
    return await page.call(async ([text, given]) => {
      const runner = await import('/mlp/runner.js');
      return await eval(text)(runner, given);
    }, [`(${body})`, argument]);
  } finally {
    await page.close();
  }
}

// Returns what `body` throws, as {code, message, ours}.
const failure = (body, argument, where) => inPage(`async (runner, given) => {
  try {
    await (${body})(runner, given);
  } catch (error) {
    const ours = error instanceof runner.TensorgradError;
    return {code: error.code, message: error.message, ours};
  }
  return 'did not throw';
}`, argument, where);

function expectError(error, code, message) {
  assert.equal(error.ours, true, JSON.stringify(error));
  assert.equal(error.code, code);
  assert.match(error.message, message);
}

const arrays = {
  f32: 'Float32Array', f16: 'Float32Array', i32: 'Int32Array', u32: 'Uint32Array',
  bool: 'Uint8Array',
};

function expectOutputs(got, want, what) {
  assert.deepEqual(Object.keys(got).sort(), Object.keys(want).sort());
  for (const [name, {dtype, data}] of Object.entries(want)) {
    assert.equal(got[name].type, arrays[dtype], `${what} ${name}`);
    assert.equal(got[name].data.length, data.length);
    data.forEach((value, i) => {
      const close = dtype === 'f32' ? 1e-5 * (1 + Math.abs(value)) : 0;
      const off = Math.abs(got[name].data[i] - value);
      assert.ok(off <= close, `${what} ${name}[${i}]: ${got[name].data[i]}, not ${value}`);
    });
  }
}

// Loads a model and runs its cases, concurrently or in order, and again after a reset.
async function makeRuns({load}, {name, runs, together}) {
  const types = {f32: Float32Array, i32: Int32Array, u32: Uint32Array, bool: Uint8Array};
  const began = performance.now();
  const model = await load(name);
  console.log(`${name} loaded in ${Math.round(performance.now() - began)} ms`);
  const run = ({inputs}) => model.run(Object.fromEntries(Object.entries(inputs).map(
    ([key, {dtype, data}]) => [key, types[dtype].from(data)])));
  const all = async () => {
    if (together) return await Promise.all(runs.map(run));
    const results = [];
    for (const each of runs) results.push(await run(each));
    return results;
  };
  const first = await all();
  model.reset();
  const second = await all();
  const plain = results => results.map(result => Object.fromEntries(Object.entries(result).map(
    ([key, array]) => [key, {type: array.constructor.name, data: [...array]}])));
  const {inputs, outputs, sizes} = model;
  model.destroy();
  return {first: plain(first), second: plain(second), inputs, outputs, sizes};
}

for (const name of models) {
  test(`${name} returns what the cpu returns`, async () => {
    const runs = read(`${name}/runs.json`);
    const from = site.requests.length;
    const result = await inPage(makeRuns, {name, runs, together: name !== 'language_model'});
    runs.forEach(({outputs}, i) => {
      expectOutputs(result.first[i], outputs, `run ${i}`);
      expectOutputs(result.second[i], outputs, `run ${i} after a reset`);
    });
    const files = new Set(site.requests.slice(from).map(request => request.path));
    files.delete(`/${name}/weights.bin`);
    let raw = 0, compressed = 0;
    for (const file of files) {
      const bytes = fs.readFileSync(path.join(folder, file === '/' ? 'index.html' : file));
      raw += bytes.length;
      compressed += zlib.gzipSync(bytes).length;
    }
    console.log(`${name}: ${raw} bytes besides the weights, ${compressed} as gzip`);
    // A language model for two text lengths has many kernels.
    assert.ok((name === 'language_model' ? compressed : raw) < limit);
  });
}

test('a model describes its inputs outputs and sizes', async () => {
  const result = await inPage(async ({load}) => {
    const {name, inputs, outputs, sizes} = await load(new URL('/mlp/', location.href));
    return {name, inputs, outputs, sizes};
  });
  assert.deepEqual(result, {
    name: 'mlp',
    inputs: [{name: 'pixels', dtype: 'f32', shape: [null, 64]}],
    outputs: [
      {name: 'best', dtype: 'i32', shape: [null]}, {name: 'probs', dtype: 'f32', shape: [null, 10]},
      {name: 'sure', dtype: 'bool', shape: [null]},
    ],
    sizes: [1, 5],
  });
});

test('runs in a worker', async () => {
  const result = await inPage(async () => {
    const source = `onmessage = async () => {
      const {load} = await import('${location.origin}/mlp/runner.js');
      const model = await load('${location.origin}/mlp');
      postMessage((await model.run({pixels: new Float32Array(64)})).probs);
    };`;
    const url = URL.createObjectURL(new Blob([source], {type: 'text/javascript'}));
    const worker = new Worker(url, {type: 'module'});
    const answer = new Promise((resolve, reject) => {
      worker.onmessage = ({data}) => resolve([...data]);
      worker.onerror = reject;
    });
    worker.postMessage(0);
    return await answer;
  });
  assert.equal(result.length, 10);
  assert.ok(Math.abs(result.reduce((sum, each) => sum + each) - 1) < 1e-5);
});

test('the page of the documentation shows a digit', async () => {
  const text = fs.readFileSync(path.join(here, '../../docs/web_inference.md'), 'utf8');
  fs.writeFileSync(path.join(folder, 'digits.html'), /```html\n([^]*?)```/.exec(text)[1]);
  const documented = await serve({'/': folder, '/model/': path.join(folder, 'mlp')});
  const page = await browser.open(`${documented.url}/digits.html`);
  const answer = page.locator('#answer');
  await answer.filter({hasNotText: 'Loading'}).waitFor();
  assert.match(await answer.textContent(), /^digit \d with probability 0\.\d\d$/);
  await page.close();
  await documented.close();
});

test('tg exports a classifier that predicts what tg predicts', async () => {
  const tg = (...options) =>
    execFileSync(path.join(build, 'tg'), options, {cwd: folder, encoding: 'utf8'});
  const rows = Array.from({length: 40}, (_, i) =>
    [i % 2 * 3 + i / 40, 5 - i % 2 * 3 + i / 50, i % 2 ? 'large' : 'small']);
  const table = ['width,height,kind', ...rows].map(row => `${row}\n`).join('');
  fs.writeFileSync(path.join(folder, 'things.csv'), table);
  fs.writeFileSync(path.join(folder, 'new.csv'), 'width,height\n1.5,2\n4,0.5\n');
  tg('train', '--data', 'things.csv', '--out', 'run', '--device', 'cpu', '--epochs', '3',
    '--hidden', '8', '--batch', '8');
  const said = tg('export', '--run', 'run', '--web', '--out', 'things', '--batch', '2,1');
  assert.match(said, /wrote things: x f32\[2\|1,2\] .* -> log_probabilities f32\[2\|1,2\]/);
  const want = tg('predict', '--run', 'run', '--json', '--device', 'cpu', 'new.csv')
    .trim().split('\n').flatMap(line => JSON.parse(line).probabilities);
  const {doc, sizes, got} = await inPage(async ({load}) => {
    const model = await load('things');
    const {log_probabilities} = await model.run({x: Float32Array.of(1.5, 2, 4, 0.5)});
    return {doc: model.doc, sizes: model.sizes, got: [...log_probabilities]};
  });
  assert.equal(doc, 'Classes: large, small');
  assert.deepEqual(sizes, [2, 1]);
  assert.equal(got.length, want.length);
  const off = want.map((p, i) => Math.abs(Math.exp(got[i]) - p));
  assert.ok(Math.max(...off) < 1e-4, `${off}`);
});

test('models share the device of the page', async () => {
  const result = await inPage(async ({load}) => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const [a, b] = await Promise.all([load('mlp', {device}), load('cnn', {device})]);
    a.destroy();
    const {scores} = await b.run({image: new Float32Array(128)});
    return {own: b.device === device, scores: scores.length};
  });
  assert.deepEqual(result, {own: true, scores: 6});
});

test('takes files that the page has read', async () => {
  const length = await inPage(async ({load}) => {
    const manifest = await (await fetch('mlp/model.json')).json();
    const weights = await (await fetch('mlp/weights.bin')).arrayBuffer();
    const model = await load({manifest, weights});
    return (await model.run({pixels: new Float32Array(64)})).probs.length;
  });
  assert.equal(length, 10);
});

test('a seed changes random numbers', async () => {
  const noise = await inPage(async ({load}) => {
    const draw = async options => {
      const model = await load('random', options);
      return [...(await model.run({x: new Float32Array(4)})).noise];
    };
    return [await draw(), await draw({seed: 6}), await draw({seed: 7})];
  });
  assert.deepEqual(noise[0], noise[1]);
  assert.notDeepEqual(noise[0], noise[2]);
});

test('without webgpu says so', async () => {
  const load = async ({load}, options) => await load('mlp', options);
  expectError(await failure(`async ({load}) => load('mlp', {gpu: null})`), 'no-webgpu',
    /this browser has no WebGPU/);
  const plain = await launch({webgpu: false, log: () => {}});
  const error = await failure(load, {}, plain);
  await plain.close();
  expectError(error, 'no-adapter', /WebGPU finds no GPU/);
});

test('a feature that the gpu lacks is named', async () => {
  expectError(await failure(async ({load}) => await load('half')), 'unsupported',
    /the model needs shader-f16, which this GPU lacks/);
});

test('a limit that the gpu lacks is named', async () => {
  expectError(await failure(async ({load}) => {
    const manifest = await (await fetch('mlp/model.json')).json();
    manifest.limits.maxComputeWorkgroupStorageSize = 1 << 24;
    await load({manifest, weights: new ArrayBuffer(0)});
  }), 'unsupported', /needs maxComputeWorkgroupStorageSize = 16777216, this GPU has \d+/);
});

test('files that are missing damaged or of another version are named', async () => {
  expectError(await failure(async ({load}) => await load('nowhere')), 'load',
    /cannot load .*\/nowhere\/model.json: 404/);
  expectError(await failure(async ({load}) => await load('index.html')), 'load',
    /index.html\/model.json/);
  fs.mkdirSync(path.join(folder, 'broken'));
  const broken = (manifest, weights) => {
    fs.writeFileSync(path.join(folder, 'broken/model.json'), manifest);
    fs.rmSync(path.join(folder, 'broken/weights.bin'), {force: true});
    if (weights) fs.writeFileSync(path.join(folder, 'broken/weights.bin'), weights);
    return failure(async ({load}) => await load('broken'));
  };
  const text = fs.readFileSync(path.join(folder, 'mlp/model.json'), 'utf8');
  const weights = fs.readFileSync(path.join(folder, 'mlp/weights.bin'));
  expectError(await broken(text.slice(0, -1)), 'format', /broken\/model.json is not JSON/);
  expectError(await broken('{}'), 'format', /not of the format tensorgrad-web/);
  expectError(await broken(text.replace('"version":1', '"version":2')), 'version',
    /has format version 2, this runner reads version 1/);
  expectError(await broken(text), 'load', /weights.bin\?\d+: 404/);
  expectError(await broken(text, weights.subarray(0, 400)), 'format',
    /weights.bin has 400 bytes, expected \d+/);
  expectError(await broken(text.replace('fn main(', 'fn main(('), weights), 'kernel',
    /the kernel \w+ was rejected: .*line \d+ of its WGSL/);
});

test('wrong inputs are named', async () => {
  const mlp = (name, value) => failure(async ({load}, [key, given]) => {
    const model = await load('mlp');
    const elements = given && new globalThis[given[0]](given[1]);
    await model.run(key && {[key]: elements});
  }, [name, value]);
  expectError(await mlp('image', ['Float32Array', 64]), 'input',
    /unknown input 'image'; available: pixels/);
  expectError(await mlp(), 'input', /input 'pixels' is missing/);
  expectError(await mlp('pixels', ['Int32Array', 64]), 'input',
    /input 'pixels': expected a Float32Array, got Int32Array/);
  expectError(await mlp('pixels', ['Array', 64]), 'input', /expected a Float32Array, got Array/);
  expectError(await mlp('pixels', ['Float32Array', 65]), 'input',
    /input 'pixels': expected 64 elements \[1,64\] or 320 elements \[5,64\], got 65/);
  const text = tokens => failure(async ({load}, given) => {
    const model = await load('attention');
    await model.run({text: Int32Array.from(given)});
  }, tokens);
  expectError(await text([0, 1, 9, 3, 4, 5, 0, 1, 2, 3, 4, 5]), 'input',
    /input 'text': element 2 is 9, which embedding uses as an index in \[0, 9\)/);
  expectError(await text([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, -1]), 'input', /element 11 is -1/);
});

test('a lost device is an error of every run', async () => {
  const errors = await inPage(async ({load}) => {
    const model = await load('mlp');
    const run = () => model.run({pixels: new Float32Array(64)}).then(() => 'ran', error => error);
    const [first, flying] = [run(), run()];
    await first;
    model.device.destroy();
    const results = [await run(), await run()];
    await flying;
    const again = await load('mlp');
    const {probs} = await again.run({pixels: new Float32Array(64)});
    return [...results.map(({code, message}) => ({code, message, ours: true})), probs.length];
  });
  expectError(errors[0], 'device-lost', /the GPU was lost: .*; load the model again/);
  expectError(errors[1], 'device-lost', /the GPU was lost/);
  assert.equal(errors[2], 10);
});

test('a destroyed model refuses to run', async () => {
  expectError(await failure(async ({load}) => {
    const model = await load('mlp');
    model.destroy();
    await model.run({pixels: new Float32Array(64)});
  }), 'destroyed', /the model was destroyed/);
});
