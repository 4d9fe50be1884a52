// SPDX-License-Identifier: MIT
// JavaScript computes what C++ does, to the bit: golden.cpp has the same models and calls.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { call, valuesOf } from './cases.mjs';
import { Mlp, integers, library, numbers, tg } from './support.mjs';

const program = process.env.TENSORGRAD_GOLDEN ??
  new URL('../../build/web/web/web_golden.js', import.meta.url).pathname;
const standIn = new URL('jspi.mjs', import.meta.url).href;
const golden = JSON.parse(
  execFileSync(process.execPath, ['--import', standIn, program], { maxBuffer: 1 << 26 }));
const cases = JSON.parse(readFileSync(program.replace('web_golden.js', 'cases.json')));

const { compile, compileFunction, optim, schedule } = tg;
const words = (data) => [...new Uint32Array(Float32Array.from(data).buffer)];
// Source lines and times differ, and the module does not see the name of the CPU.
const table = (text) =>
  text.replace(/^compile .*\n( {4}.*\n)*/gm, '').replace(/ *at \S+:\d+(, \S+:\d+)*/g, '').replace(/^device .*/gm, 'device')
    .replace(/\n\n+/g, '\n');

async function matches(name, trainer, feeds) {
  const losses = [];
  for (const feed of feeds) losses.push((await trainer.step(feed)).loss);
  assert.deepEqual(words(losses), golden[name].losses, `${losses}`);
  assert.equal(table(await trainer.explain()), table(golden[name].explain));
}
const upTo = (n, f) => Array.from({ length: n }, (_, i) => f(i));

test('the sine model', async () => {
  await matches('sine', await compile({
    model: new Mlp(), loss: (net, { x, y }) => tg.mse(net.forward(x), y),
    inputs: { x: [32, 1], y: [32, 1] }, seed: 3, device: { kind: 'cpu' },
    optimizer: optim.adam({ lr: schedule.cosine(5e-3, 1e-4, 20) }) }),
  upTo(10, (i) => ({ x: numbers(32, i, 3), y: numbers(32, i + 100) })));
});

test('a convolutional model', async () => {
  class Cnn extends tg.Module {
    conv = new tg.Conv2d(1, 4, 3, { padding: 1 });
    norm = new tg.BatchNorm(4);
    drop = new tg.Dropout(0.25);
    out = new tg.Linear(4 * 16, 5);
    forward(x) {
      const h = tg.maxPool2d(tg.relu(this.norm.forward(this.conv.forward(x))), 2);
      return this.out.forward(tg.flatten(this.drop.forward(h), 1));
    }
  }
  await matches('cnn', await compile({
    model: new Cnn(),
    loss: (net, { x, y }) => tg.crossEntropy(net.forward(x), y, { labelSmoothing: 0.1 }),
    inputs: { x: [6, 1, 8, 8], y: { shape: [6], dtype: 'i32' } }, clipGradNorm: 1,
    device: { kind: 'cpu' }, optimizer: optim.sgd({ lr: 0.1, momentum: 0.9, nesterov: true }) }),
  upTo(10, (i) => ({ x: numbers(6 * 64, i), y: integers(6, i + 100, 5) })));
});

test('a language model', async () => {
  const model = new tg.LanguageModel({
    vocabSize: 11, dModel: 16, nLayer: 4, layers: ['mamba1', 'attention', 'mamba3', 'mlp'],
    mamba3: { dState: 8, headDim: 8 } });
  const tokens = { shape: [2, 12], dtype: 'i32' };
  await matches('language', await compile({
    model, loss: (net, { x, y }) => net.loss(x, y), inputs: { x: tokens, y: tokens },
    device: { kind: 'cpu' }, optimizer: optim.adamw({ lr: 0.01 }) }),
  upTo(5, (i) => ({ x: integers(24, i, 11), y: integers(24, i + 7, 11) })));
});

class Pair extends tg.Module {
  a = new tg.Linear(4, 4);
  b = new tg.Linear(4, 4);
  forward(x) { return this.b.forward(this.a.forward(x)); }
}
const signAverage = () => optim.custom({
  lr: schedule.linear(0.02, 0.01, 8), update(u) {
    const beta = u.hyperparameter('beta', tg.adjustable(0.9), 1);
    const m = tg.add(tg.mul(beta, u.state('average')), tg.mul(tg.sub(1, beta), u.grad));
    u.setState('average', m);
    const parts = u.paramInfos().map((_, i) => tg.sign(u.paramView(m, i)));
    const far = tg.where(u.mask((name) => name.endsWith('.bias')), tg.mul(u.lr, 2), u.lr);
    u.setParam(tg.sub(tg.mul(u.param, 0.99),
                      tg.div(tg.mul(far, u.flatten(parts)), u.step)));
  } });

test('several losses, and an optimizer of their own', async () => {
  const trainer = await compile({
    model: new Pair(), seed: 5, device: { kind: 'cpu' }, dataset: { x: [12, 4] },
    objectives: {
      left: { loss: (net, { x, y }) => tg.mse(net.forward(x), y), params: 'a.*',
        inputs: { x: [3, 4], y: [3, 4] }, optimizer: signAverage() },
      right: { loss: (net, { x }) => tg.mean(tg.abs(net.forward(x))), batch: 4,
        params: (name) => name.startsWith('b.'), optimizer: optim.sgd({ lr: 0.1 }) },
    } });
  await trainer.uploadData('x', numbers(48, 9));
  const losses = [], { left, right } = trainer.objectives;
  for (let i = 0; i < 6; ++i) {
    losses.push((await left.step({ x: numbers(12, i), y: numbers(12, i + 50) })).loss);
    losses.push((await right.run(1))[0]);
  }
  assert.deepEqual(words(losses), golden.pair.losses, `${losses}`);
  assert.equal(table(await trainer.explain()), table(golden.pair.explain));
});

test('a data loader has the order of C++', async () => {
  const loader = new tg.DataLoader(10, async (i) => ({ i: Float32Array.of(i) }),
                                   { batch: 4, dropLast: false, seed: 7 });
  const all = [], places = [];
  for (let i = 0; i < 9; ++i) {
    const { fields, epoch, position, samples } = await loader.next();
    all.push(...fields.i);
    places.push([epoch, position, samples]);
  }
  assert.deepEqual(words(all), golden.order, `${all}`);
  assert.deepEqual(places.slice(2, 4), [[0, 2, 2], [1, 0, 4]]);
});

test('every op has a case', () => {
  const known = new Set(cases.map((each) => each.op));
  const byHand = ['isTraining', 'setState', 'checkpoint', 'customGradient', 'associativeScan',
    'trainingMode', 'autocast'];
  const notOps = ['adjustable', 'close', 'compile', 'compileFunction', 'devices', 'gpt2Config',
    'loadLanguageModel', 'saveLanguageModel', 'serve', 'singleFlight', 'checkSupport', 'prefetch',
    'readMetadata'];
  const missing = Object.keys(tg).filter((name) => /^[a-z]/.test(name) &&
    typeof tg[name] === 'function' && ![...known, ...byHand, ...notOps].includes(name));
  assert.deepEqual(missing, []);
  assert.deepEqual(Object.keys(golden.ops).sort(), cases.map((each) => each.label).sort());
});

// Element types of the results of an op as TypeScript declares them, if they are not f32.
const declared = readFileSync(new URL('types/generated/ops.d.ts', library), 'utf8');
function typed(op) {
  const [, result] = new RegExp(`function ${op}_?(?:<.*?>)?\\(.*?\\): (.*);`).exec(declared);
  if (result === 'ValuesAndIndices') return [undefined, 'i32'];
  const [, dtype] = /^Tensor<.*\], (.*)>$/.exec(result) ?? [];
  return dtype === 'T' ? { dtype } : [dtype && /'(\w+)'/.exec(dtype)[1]];
}

for (const each of cases) {
  const { label, op, inputs } = each;
  test(`op ${label}`, async () => {
    const f = await compileFunction({
      model: new class extends tg.Module {}(), device: { kind: 'cpu' }, training: true,
      inputs: Object.fromEntries(inputs.map((input) => [input.name, input])),
      forward: (_, tensors) => Object.fromEntries(
        call(tg, each, tensors).map((result, i) => [String.fromCharCode(97 + i), result])) });
    const outputs = await f.run(
      Object.fromEntries(inputs.map((input, i) => [input.name, valuesOf(input, i)])));
    const found = Object.values(outputs).map(({ dtype }) => dtype);
    if (inputs.every(({ dtype }) => dtype === 'f32') && !('dtype' in typed(op)))
      assert.deepEqual(found, found.map((_, i) => typed(op)[i] ?? 'f32'));
    const bits = Object.fromEntries(Object.entries(outputs).map(([name, { data }]) =>
      [name, [...new Uint32Array(data.buffer)]]));
    assert.deepEqual(bits, golden.ops[label]);
    await f.free();
  });
}
