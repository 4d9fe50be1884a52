// SPDX-License-Identifier: MIT
// Threads of the CPU in pages that are cross-origin isolated, and in one that is not.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { built, launch, serve } from './page.mjs';

const page = `<!DOCTYPE html><link rel="icon" href="data:,">
<script type="module">
import * as tg from '/npm/dist/tensorgrad.js';
class Net extends tg.Module {
  hidden = new tg.Linear(128, 256);
  out = new tg.Linear(256, 1);
  forward(x) { return this.out.forward(tg.tanh(this.hidden.forward(x))); }
}
const x = Float32Array.from({ length: 256 * 128 }, (_, i) => Math.sin(i));
const y = Float32Array.from({ length: 256 }, (_, i) => Math.cos(i));
globalThis.tg = tg;
globalThis.train = async (options) => {
  const trainer = await tg.compile({
    model: new Net(), loss: (net, { x, y }) => tg.mse(net.forward(x), y),
    inputs: { x: [256, 128], y: [256, 1] }, optimizer: tg.optim.adam({ lr: 1e-4 }), ...options });
  const losses = [];
  for (let i = 0; i < 10; ++i) losses.push((await trainer.step({ x, y })).loss);
  const bytes = (await trainer.save()).length;
  return { losses, device: trainer.device, bytes };
};
globalThis.ready = true;
</script>`;
const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
let isolated, plain, browser;

before(async () => {
  const roots = { '/': folder, '/npm/': built };
  isolated = await serve(roots, { isolated: true });
  plain = await serve(roots);
  writeFileSync(join(folder, 'index.html'), page);
  browser = await launch({ webgpu: false, log: () => {} });
});
after(async () => {
  await browser?.close();
  await isolated?.close();
  await plain?.close();
  rmSync(folder, { recursive: true });
});

async function open(site) {
  const opened = await browser.open(site.url);
  await opened.waitForFunction(() => globalThis.ready);
  return opened;
}
const modules = (site, first) => site.requests.slice(first)
  .map((each) => each.path.replace(/.*\//, '')).filter((each) => /wasm|threads/.test(each));

test('an isolated page trains on threads, to the bits of one', async () => {
  const opened = await open(isolated), first = isolated.requests.length;
  const two = await opened.call(() => globalThis.train({ device: { kind: 'cpu', threads: 2 } }));
  assert.match(two.device, /^cpu.*, 2 threads, /);
  const loaded = modules(isolated, first);
  assert.deepEqual(loaded.filter((each) => each.endsWith('.wasm')), ['threads.wasm']);
  assert.ok(loaded.includes('threads.js'), `${loaded}`);
  const one = await opened.call(() => globalThis.train({ device: { kind: 'cpu', threads: 1 } }));
  assert.match(one.device, /^cpu.*, 1 thread, /);
  assert.doesNotMatch(one.device, /because/);
  assert.deepEqual(two.losses, one.losses);
  assert.ok(two.losses[9] < two.losses[0], `${two.losses}`);
  await opened.close();
});

test('a page that takes the CPU has a thread for each core', async () => {
  const opened = await open(isolated);
  const { support, device, cores } = await opened.call(async () => ({
    support: await globalThis.tg.checkSupport(), device: (await globalThis.train({})).device,
    cores: navigator.hardwareConcurrency }));
  const threads = Math.min(cores, 8);
  assert.equal(support.device, 'cpu');
  assert.equal(support.threads, threads);
  assert.match(device, new RegExp(`^cpu.*, ${threads} thread`));
  await opened.close();
});

test('the thread of a page does not block', async () => {
  const opened = await open(isolated);
  const { device } = await opened.call(() => globalThis.train({ engine: 'thread' }));
  assert.match(device, /, 1 thread, .*; one thread, because the thread of a page must not block/);
  await opened.close();
});

test('language models run on threads', async () => {
  const opened = await open(isolated), first = isolated.requests.length;
  const texts = await opened.call(async () => {
    const { Generator, LanguageModel, Tokenizer, compile, optim } = globalThis.tg;
    const tokenizer = await Tokenizer.characters(['a', 'b', 'c', 'd']), all = [];
    for (const threads of [1, 2]) {
      const trainer = await compile({
        model: new LanguageModel({ vocabSize: 4, dModel: 16, nLayer: 1, layers: ['mamba2'],
          mamba2: { dState: 4, headDim: 4 } }),
        loss: (net, { x }) => net.loss(x, x), inputs: { x: { shape: [1, 8], dtype: 'i32' } },
        optimizer: optim.adam({ lr: 0.01 }), device: { kind: 'cpu', threads } });
      await trainer.step({ x: [0, 1, 2, 3, 0, 1, 2, 3] });
      const generator = await Generator.attach(trainer, { tokenizer });
      all.push((await generator.generate('ab', { maxTokens: 8 })).text);
    }
    return all;
  });
  assert.equal(texts[0], texts[1]);
  assert.ok(modules(isolated, first).includes('full_threads.wasm'));
  await opened.close();
});

test('a page that is not isolated says so', async () => {
  const opened = await open(plain), first = plain.requests.length;
  const { device } = await opened.call(() => globalThis.train({ device: { kind: 'cpu', threads: 2 } }));
  assert.match(device, /, 1 thread, .*; one thread, because the page is not cross-origin isolated/);
  assert.deepEqual(modules(plain, first), ['tensorgrad.wasm']);
  const { threads, oneThread } = await opened.call(() => globalThis.tg.checkSupport());
  assert.equal(threads, 1);
  assert.match(oneThread, /Cross-Origin-Embedder-Policy: require-corp/);
  await opened.close();
});
