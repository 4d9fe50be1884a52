// SPDX-License-Identifier: MIT
// Threads of the CPU in node: the same results, on as many threads as requested, and why there is one.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import test, { after, before } from 'node:test';
import { integers, library, numbers, tg } from './support.mjs';

const { Linear, Module, compile, mse, optim, tanh } = tg;
before(() => { tg.assets.threads = true; });
after(() => tg.close());

class Wide extends Module {
  a = new Linear(256, 512);
  b = new Linear(512, 256);
  forward(x) { return this.b.forward(tanh(this.a.forward(x))); }
}
const made = (device, options = {}) => compile({
  model: new Wide(), loss: (net, { x, y }) => mse(net.forward(x), y),
  inputs: { x: [256, 256], y: [256, 256] }, optimizer: optim.adam({ lr: 1e-3 }), device, ...options });
const batch = (seed) => ({ x: numbers(256 * 256, seed, 1), y: numbers(256 * 256, seed + 1, 1) });
const cpu = (threads) => ({ kind: 'cpu', threads });

async function trained(trainer) {
  const losses = [];
  for (let i = 0; i < 5; ++i) losses.push((await trainer.step(batch(i))).loss);
  return { losses, bytes: await trainer.save() };
}

test('several threads train to the bits of one, in this thread and in a worker', async () => {
  const one = await made(cpu(1));
  assert.match(one.device, /, 1 thread, /);
  const expected = await trained(one);
  assert.ok(expected.losses[4] < expected.losses[0]);
  for (const engine of ['thread', 'worker']) {
    for (const threads of [2, 3]) {
      const trainer = await made(cpu(threads), { engine });
      assert.match(trainer.device, new RegExp(`, ${threads} threads, `));
      assert.deepEqual(await trained(trainer), expected);
      await trainer.free();
    }
  }
});

// CPU time of each thread of this process in ticks.
const ticks = () => new Map(readdirSync('/proc/self/task').map((id) => {
  const fields = readFileSync(`/proc/self/task/${id}/stat`, 'latin1').replace(/^.*\) /, '').split(' ');
  return [id, Number(fields[11]) + Number(fields[12])];
}));

test('the threads share the work', { skip: !existsSync('/proc/self/task') }, async () => {
  const trainer = await made(cpu(3), { engine: 'worker' });
  const run = async (seconds) => {
    const end = performance.now() + 1000 * seconds;
    for (let i = 0; performance.now() < end; ++i) await trainer.step(batch(i));
  };
  await run(1);  // V8 optimizes on threads of its own
  const start = ticks();
  await run(2);
  const spent = [...ticks()].map(([id, now]) => now - (start.get(id) ?? 0));
  const all = spent.reduce((sum, each) => sum + each, 0);
  assert.ok(spent.filter((each) => each > 0.15 * all).length >= 2, `${spent}`);
  await trainer.free();
});

test('a program has threads by default, one per core', async () => {
  const cores = Math.min(availableParallelism(), 8);
  const expected = cores > 1 ? new RegExp(`, ${cores} threads, `) : /, 1 thread, .*has one core/;
  assert.match((await made(undefined)).device, expected);
  const { threads } = await tg.checkSupport({ kind: 'cpu' });
  assert.equal(threads, cores);
  for (const [options, count] of [[{}, cores], [{ threads: 3 }, 3], [{ threads: 1 }, 1]]) {
    const [{ name }] = (await tg.devices(options)).devices.filter(({ kind }) => kind === 'cpu');
    const trainer = await made({ kind: 'cpu', ...options });
    assert.match(name, new RegExp(`, ${count} threads?, `));
    assert.ok(trainer.device.includes(name), `${trainer.device}: ${name}`);
    await trainer.free();
  }
});

test('threads of freed programs are used again', async () => {
  for (let i = 0; i < 5; ++i) {
    const both = await Promise.all([made(cpu(2)), made(cpu(2))]);
    for (const trainer of both) {
      assert.match(trainer.device, /, 2 threads, /);
      await trainer.step(batch(i));
      await trainer.free();
    }
  }
});

test('functions and attached functions run on threads', async () => {
  const inputs = { x: [null, 256] }, forward = (net, { x }) => net.forward(x);
  const results = [];
  for (const threads of [1, 2]) {
    const trainer = await made(cpu(threads));
    await trainer.step(batch(0));
    const attached = await trainer.attach({ forward, inputs });
    const f = await tg.compileFunction({ model: new Wide(), forward, inputs, device: cpu(threads) });
    const own = await tg.compileFunction({
      model: new Wide(), forward, inputs, device: trainer.sameDevice() });
    for (const each of [f, own])
      assert.match(await each.device(), new RegExp(`, ${threads} threads?, `));
    const all = [];
    for (const each of [attached, f, own])
      for (const rows of [3, 64]) all.push(await each.call({ x: numbers(rows * 256, rows) }));
    results.push(all);
  }
  assert.deepEqual(results[0], results[1]);
});

test('invalid numbers of threads are refused', async () => {
  for (const threads of [-1, 257, 1.5])
    await assert.rejects(made(cpu(threads)), { name: 'UserError', message: /threads/ });
});

test('a loader follows its trainer to another engine', async () => {
  const samples = numbers(8 * 256, 1);
  const get = (i) => ({ x: samples.subarray(256 * i, 256 * i + 256), y: samples.subarray(0, 256) });
  const options = { batch: 2, seed: 5 }, loader = new tg.DataLoader(8, get, options);
  const alike = new tg.DataLoader(8, get, options);
  for (let i = 0; i < 3; ++i) {
    assert.deepEqual(await loader.next(), await alike.next());
    if (i > 0) continue;
    const trainer = await made(cpu(1), { inputs: { x: [2, 256], y: [2, 256] } });
    await trainer.addLoader('train', loader);
    const bytes = await trainer.save();
    await trainer.load(bytes);
    const other = await made(cpu(2), { inputs: { x: [2, 256], y: [2, 256] } });
    await assert.rejects(other.addLoader('train', loader),
                         { name: 'UserError', message: /'train' is in another engine/ });
  }
});

test('metadata are read in an engine that is open', async () => {
  await tg.close();
  const trainer = await made(cpu(1));  // of the module without threads, unlike the default
  const bytes = await trainer.save(), { instantiate } = WebAssembly;
  let engines = 0;
  WebAssembly.instantiate = (...all) => (++engines, instantiate(...all));
  try {
    assert.equal((await tg.readMetadata(bytes))['tensorgrad.step'], '0');
    assert.equal(engines, 0);
    await tg.close();
    assert.equal((await tg.readMetadata(bytes))['tensorgrad.step'], '0');
    assert.equal(engines, 1);
  } finally {
    WebAssembly.instantiate = instantiate;
  }
});

test('language models generate the same texts, with a tokenizer of another engine', async () => {
  const tokenizer = await tg.Tokenizer.characters([...'abcd']);
  const texts = [];
  for (const threads of [1, 2]) {
    const trainer = await compile({
      model: new tg.LanguageModel({ vocabSize: 4, dModel: 32, nLayer: 2, layers: ['mamba2', 'mamba2'],
        mamba2: { dState: 4, headDim: 8 } }),
      loss: (net, { x }) => net.loss(x, x), inputs: { x: { shape: [4, 32], dtype: 'i32' } },
      optimizer: optim.adam({ lr: 0.01 }), device: cpu(threads) });
    for (let i = 0; i < 3; ++i) await trainer.step({ x: integers(128, i, 4) });
    const generator = await tg.Generator.attach(trainer, { tokenizer });
    const { text } = await generator.generate('ab', { maxTokens: 16 });
    const bytes = await tg.saveLanguageModel(trainer, { tokenizer });
    const loaded = await tg.Generator.load(bytes, { device: cpu(threads) });
    assert.equal((await loaded.generate('ab', { maxTokens: 16 })).text, text);
    assert.equal((await loaded.tokenizer()).vocabSize, tokenizer.vocabSize);
    texts.push(text);
  }
  assert.ok(texts[0].length >= 16);
  assert.equal(texts[0], texts[1]);
  await tokenizer.free();
});

test('a program says why it has one thread', async () => {
  const other = await import(`${library}?missing`);
  other.assets.threadsWasm = new URL('missing.wasm', library);
  const trainer = await other.compile({
    model: new (class extends other.Module { w = this.param([1]); })(),
    loss: (net, { x }) => other.mean(other.mul(net.w, x)), inputs: { x: [1] },
    optimizer: other.optim.sgd({ lr: 1 }), device: cpu(2) });
  assert.match(trainer.device, /, 1 thread, .*; one thread, because threads do not start: .*missing/);
  const { step } = await trainer.step({ x: [1] });
  assert.equal(step, 1);
  assert.match((await other.checkSupport({ kind: 'cpu' })).oneThread, /^threads do not start/);

  tg.assets.threads = false;
  const off = await made(undefined);
  tg.assets.threads = true;
  assert.match(off.device, /, 1 thread, /);
  assert.doesNotMatch(off.device, /because/);
});
