// SPDX-License-Identifier: MIT
// The package in a page: a plain <script type="module"> with a worker, and on WebGPU.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { built, launch, serve } from './page.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
const page = `<!DOCTYPE html><link rel="icon" href="data:,">
<script type="module">
import * as tg from '/npm/dist/tensorgrad.js';
class Net extends tg.Module {
  hidden = new tg.Linear(2, 16);
  out = new tg.Linear(16, 1);
  forward(x) { return this.out.forward(tg.tanh(this.hidden.forward(x))); }
}
globalThis.tg = tg;
globalThis.train = async ({ steps, ...options }) => {
  const trainer = await tg.compile({
    model: new Net(), loss: (net, { x, y }) => tg.mse(net.forward(x), y),
    inputs: { x: [4, 2], y: [4, 1] }, optimizer: tg.optim.adam({ lr: 0.05 }), ...options });
  const losses = [];
  for (let i = 0; i < steps; ++i)
    losses.push((await trainer.step({ x: [0, 0, 0, 1, 1, 0, 1, 1], y: [0, 1, 1, 0] })).loss);
  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [null, 2] } });
  const y = [...await predict.call({ x: [1, 0, 1, 1] })];
  const bytes = await trainer.save();
  await trainer.load(bytes);
  return { losses, y, device: trainer.device, kind: trainer.deviceKind, bytes: bytes.length };
};
globalThis.ready = true;
</script>`;
let site, browser;

before(async () => {
  writeFileSync(join(folder, 'index.html'), page);
  site = await serve({ '/': folder, '/npm/': built });
  browser = await launch({ log: () => {} });
});
after(async () => {
  await browser?.close();
  await site?.close();
  rmSync(folder, { recursive: true });
});

async function open() {
  const opened = await browser.open(site.url);
  await opened.waitForFunction(() => globalThis.ready);
  return opened;
}

test('trains in a worker by default, on the CPU', async () => {
  const opened = await open();
  const { losses, y, device } = await opened.call(
    () => globalThis.train({ steps: 200, device: { kind: 'cpu' } }));
  assert.match(device, /^cpu/);
  assert.ok(losses[199] < 0.01, `${losses[199]}`);
  assert.ok(Math.abs(y[0] - 1) < 0.2 && Math.abs(y[1]) < 0.2, `${y}`);
  assert.equal(opened.workers().length, 1);
  const files = site.requests.map((each) => each.path);
  assert.equal(files.filter((each) => each.endsWith('.wasm')).length, 1, `${files}`);
  await opened.close();
});

test('loads the full module for what needs it', async () => {
  const opened = await open();
  const first = site.requests.length;
  const loaded = () => site.requests.slice(first).map((each) => each.path.replace(/.*\//, ''))
    .filter((each) => /full|wasm/.test(each)).sort();
  await opened.call(() => globalThis.train({ steps: 1, device: { kind: 'cpu' } }));
  assert.deepEqual(loaded(), ['tensorgrad.wasm']);
  const ids = await opened.call(async () =>
    [...await (await globalThis.tg.Tokenizer.bytes()).encode('hi')]);
  assert.deepEqual(ids, [104, 105]);
  // The script: in the page and in its worker.
  assert.deepEqual(loaded(), ['full.js', 'full.js', 'full.wasm', 'tensorgrad.wasm']);
  const losses = await opened.call(async () => {
    const { LanguageModel, compile, optim } = globalThis.tg;
    const trainer = await compile({
      model: new LanguageModel({ vocabSize: 4, dModel: 8, nLayer: 1, layers: ['mamba2'],
        mamba2: { dState: 4, headDim: 4 } }),
      loss: (net, { x }) => net.loss(x, x), inputs: { x: { shape: [1, 4], dtype: 'i32' } },
      optimizer: optim.adam({ lr: 0.01 }), device: { kind: 'cpu' } });
    const all = [];
    for (let i = 0; i < 3; ++i) all.push((await trainer.step({ x: [0, 1, 2, 3] })).loss);
    return all;
  });
  assert.ok(losses[2] < losses[0], `${losses}`);
  await opened.close();
});

for (const engine of ['worker', 'thread']) {
  test(`trains on WebGPU in a ${engine}`, async () => {
    const opened = await open();
    const options = { steps: 20, engine };
    const gpu = await opened.call(
      (o) => globalThis.train({ ...o, device: { kind: 'webgpu', allowSoftware: true } }), options);
    const cpu = await opened.call((o) => globalThis.train({ ...o, device: { kind: 'cpu' } }), options);
    assert.match(gpu.device, /webgpu/);
    for (const [i, loss] of cpu.losses.entries())
      assert.ok(Math.abs(gpu.losses[i] - loss) < 1e-4, `${i}: ${gpu.losses[i]} ${loss}`);
    assert.ok(Math.abs(gpu.y[0] - cpu.y[0]) < 1e-3);
    await opened.close();
  });
}

test('custom ops run on WebGPU, with their gradients', async () => {
  const opened = await open();
  const results = await opened.call(async (device) => {
    const { CustomOp, compile, div, mse, mul, optim, sqrt, square, add, Module } = globalThis.tg;
    class Net extends Module { w = this.param([2, 3], globalThis.tg.init.ones()); }
    const op = new CustomOp({
      name: 'hypotenuse', infer: ([a]) => a,
      wgsl: () => 'fn element(i: u32) -> f32 { return length(vec2(in0(i), in1(i))); }',
      backward: ([a, b], y, dy) => [div(mul(dy, a), y), div(mul(dy, b), y)] });
    const written = (a, b) => sqrt(add(square(a), square(b)));
    const all = [];
    for (const f of [(a, b) => op.call([a, b]), written]) {
      const trainer = await compile({
        model: new Net(), loss: (net, { x, y }) => mse(f(net.w, x), y),
        inputs: { x: [2, 3], y: [2, 3] }, optimizer: optim.sgd({ lr: 0.1 }), device });
      const losses = [];
      for (let i = 0; i < 5; ++i)
        losses.push((await trainer.step({ x: [1, 2, 3, 4, 5, 6], y: [2, 2, 2, 3, 4, 5] })).loss);
      all.push(losses);
    }
    return all;
  }, { kind: 'webgpu', allowSoftware: true });
  assert.ok(results[0][4] < results[0][0]);
  results[0].forEach((each, i) => assert.ok(Math.abs(each - results[1][i]) < 1e-5, `${results}`));
  await opened.close();
});

test('says which device a trainer takes', async () => {
  const opened = await open();
  const software = await opened.call(() => globalThis.tg.checkSupport());
  assert.equal(software.reason, 'software-adapter');
  assert.match(software.adapter, /swiftshader/i);
  assert.equal((await opened.call(() => globalThis.train({ steps: 1 }))).kind, software.device);
  const device = { kind: 'auto', allowSoftware: true };
  const allowed = await opened.call((o) => globalThis.tg.checkSupport(o), device);
  assert.equal(allowed.reason, 'ok');
  const { kind } = await opened.call((o) => globalThis.train({ steps: 1, device: o }), device);
  assert.equal(kind, allowed.device);
  await opened.close();
});

test('says that there is no adapter', async () => {
  const plain = await launch({ webgpu: false, log: () => {} });
  const opened = await plain.open(site.url);
  await opened.waitForFunction(() => globalThis.ready);
  const message = await opened.call(() => globalThis.train({ steps: 1, device: { kind: 'webgpu' } })
    .then(() => 'it trained', (error) => `${error.name}: ${error.message}`));
  assert.match(message, /^DeviceError: /);
  const { device, kind } = await opened.call(() => globalThis.train({ steps: 1 }));
  assert.match(device, /^cpu/);
  const support = await opened.call(() => globalThis.tg.checkSupport());
  assert.equal(support.device, kind);
  assert.equal(support.reason, 'no-adapter');
  await plain.close();
});

test('errors name the line of the page', async () => {
  const opened = await open();
  const error = await opened.call(() => globalThis.train({
    steps: 1, loss: (net, { x }) => globalThis.tg.matmul(x, x),
  }).catch(({ name, message, line }) => ({ name, message, line })));
  assert.equal(error.name, 'ShapeError');
  assert.match(error.message, /matmul: inner sizes differ/);
  assert.ok(error.line > 0);
  await opened.close();
});
