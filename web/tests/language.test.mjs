// SPDX-License-Identifier: MIT
// What users write besides models: objectives, optimizers, loaders and custom ops. golden.test.mjs
// compares them with C++.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Mlp, numbers, tg } from './support.mjs';

const { add, compile, compileFunction, mse, mul, optim, sub } = tg;
const sine = (options = {}) => compile({
  model: new Mlp(), loss: (net, { x, y }) => mse(net.forward(x), y),
  inputs: { x: [8, 1], y: [8, 1] }, optimizer: optim.adam({ lr: 0.01 }), ...options });
const batch = (seed) => ({ x: numbers(8, seed, 3), y: numbers(8, seed + 1) });

test('objectives share parameters, and have counters of their own', async () => {
  const objective = (name, options) => ({
    loss: (net, { x }) => tg.mean(tg.capture(name, net.forward(x))), inputs: { x: [2, 1] },
    optimizer: optim.sgd({ lr: 0.1 }), ...options });
  const trainer = await compile({ model: new Mlp(), objectives: {
    up: objective('u', { params: 'out.*' }), down: objective('d') } });
  const { up, down } = trainer.objectives;
  assert.deepEqual([up.captures, down.captures], [['u'], ['d']]);
  const before = await trainer.downloadParams();
  const { captures: { u } } = await up.step({ x: [1, 2] }, { captures: ['u'] });
  assert.deepEqual(u.shape, [2, 1]);
  const after = await trainer.downloadParams();
  assert.deepEqual(after['in.weight'].data, before['in.weight'].data);
  assert.notDeepEqual(after['out.bias'].data, before['out.bias'].data);
  assert.equal((await up.counters()).steps, 1);
  assert.equal((await down.counters()).steps, 0);
  assert.deepEqual(Object.keys(await up.downloadGrads()).sort(), ['out.bias', 'out.weight']);
  await up.setLR(0.5);
  assert.deepEqual([(await up.counters()).lr, (await down.counters()).lr], [0.5, 0.1]);
  assert.notEqual(await up.explain(), await trainer.explain());

  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  const bytes = await trainer.save();
  await down.step({ x: [1, 2] });
  const moved = await predict.call({ x: [1] });
  await trainer.load(bytes);
  assert.notDeepEqual(await predict.call({ x: [1] }), moved);
  await trainer.replaceModel(new Mlp(), { keep: true });
  assert.deepEqual((await trainer.downloadParams())['out.bias'].data, after['out.bias'].data);
  assert.equal((await up.step({ x: [1, 2] })).step, 1);
  await trainer.replaceModel(new Mlp(), { seed: 4 });
  assert.notDeepEqual((await trainer.downloadParams())['mid.weight'].data,
                      after['mid.weight'].data);
  await assert.rejects(compile({ model: new Mlp(), objectives: { 'a b': objective('x') } }),
                       { name: 'UserError', message: /a b/ });
});

test('an optimizer is replaced with the model, and resumes from a checkpoint', async () => {
  const momentum = () => optim.custom({ lr: 0.05, update(u) {
    const v = add(mul(0.9, u.state('v')), u.grad);
    u.setState('v', v);
    u.setParam(sub(u.param, mul(u.lr, v)));
  } });
  const own = await sine({ optimizer: momentum() });
  const known = await sine({ optimizer: optim.sgd({ lr: 0.05, momentum: 0.9 }) });
  for (let i = 0; i < 5; ++i) {
    const [a, b] = [(await own.step(batch(i))).loss, (await known.step(batch(i))).loss];
    assert.ok(Math.abs(a - b) < 1e-6, `${a} ${b}`);
  }
  const bytes = await own.save(), next = (await own.step(batch(5))).loss;
  const again = await sine({ optimizer: momentum() });
  await again.load(bytes);
  assert.equal((await again.step(batch(5))).loss, next);
  assert.ok('v/in.weight' in await own.downloadOptimizer());
  class Small extends tg.Module {
    out = new tg.Linear(1, 1);
    forward(x) { return this.out.forward(x); }
  }
  await own.replaceModel(new Small());
  await own.step(batch(1));
  assert.deepEqual((await own.downloadOptimizer())['v/out.weight'].shape, [1, 1]);
});

test('errors of optimizers', async () => {
  await assert.rejects(
    sine({ optimizer: optim.custom({ lr: 1, update(u) { tg.matmul(u.lr, u.lr); } }) }),
    { name: 'ShapeError', message: /^optimizer: expected at least one axis/ });
  await assert.rejects(sine({ optimizer: optim.custom({ lr: 1, update() {} }) }),
                       { name: 'UserError', message: /set_param|setParam/ });
  await assert.rejects(
    sine({ optimizer: optim.custom({ lr: 1, update: (u) => u.paramView(u.param, 99) }) }),
    { name: 'UserError', message: /expected an index below 6, got 99/ });
  await assert.rejects(
    sine({ optimizer: optim.custom({ lr: 1, update() { throw new RangeError('mine'); } }) }),
    { name: 'RangeError', message: 'mine' });
  let update;
  await sine({ optimizer: optim.custom({ lr: 1, update(u) { (update = u).setParam(u.grad); } }) });
  assert.throws(() => update.param, { name: 'UserError', message: /being traced/ });
  await assert.rejects(
    compile({ model: new Mlp(), loss: () => update.param, optimizer: optim.sgd() }),
    { name: 'UserError', message: /only an optimizer/ });
});

test('a loader reads ahead, retries and resumes from a checkpoint', async () => {
  const asked = [];
  let broken = false;
  const make = (prefetch) => new tg.DataLoader(16, async (i, epoch) => {
    asked.push(i);
    if (broken) throw new RangeError('gone');
    return { x: Float32Array.of(i), y: epoch, z: [1, 2] };
  }, { batch: 4, prefetch, seed: 1 });
  const loader = make(1);
  const first = await loader.next();
  assert.ok(first.fields.x instanceof Float32Array);
  assert.deepEqual(first.fields.y, [0, 0, 0, 0]);
  assert.equal(first.fields.z.length, 8);
  assert.equal(asked.length, 8);
  assert.equal(await loader.batchesPerEpoch(), 4);
  assert.deepEqual(await loader.state(), { epoch: 0, position: 1, seed: 1 });

  const trainer = await compile({
    model: new Mlp(), loss: (net, { x }) => tg.mean(net.forward(x)), inputs: { x: [4, 1] },
    optimizer: optim.sgd() });
  await trainer.addLoader('train', loader);
  const bytes = await trainer.save();
  const rest = [];
  for (let i = 0; i < 5; ++i) rest.push((await loader.next()).fields.x);
  await trainer.load(bytes);
  const again = [];
  for await (const { fields: { x } } of loader) if (again.push(x) === 5) break;
  assert.deepEqual(again, rest);
  assert.equal((await trainer.step({ x: again[0] })).step, 1);

  broken = true;
  await loader.loadState({ epoch: 0, position: 1, seed: 1 });
  await assert.rejects(loader.next(), { name: 'RangeError' });
  broken = false;
  assert.deepEqual((await loader.next()).fields.x, rest[0]);
  const two = await Promise.all([loader.next(), loader.next()]);
  assert.deepEqual(two.map(({ fields }) => fields.x), rest.slice(1, 3));

  await assert.rejects(new tg.DataLoader(3, () => ({ x: 1 }), { batch: 4 }).next(),
                       { name: 'UserError' });
  await assert.rejects(
    new tg.DataLoader(4, (i) => ({ x: new Float32Array(i + 1) }), { batch: 4 }).next(),
    { name: 'ShapeError', message: /field 'x': expected \d elements, got \d/ });
  await assert.rejects(
    new tg.DataLoader(2, (i) => (i ? { x: 1 } : { y: 1 }), { batch: 2 }).next(),
    { name: 'UserError', message: /has no field/ });
  await assert.rejects(trainer.addLoader('train', make(0)), { name: 'UserError' });
});

test('prefetch() reads a source ahead', async () => {
  const log = [];
  async function* source() {
    try {
      for (let i = 0; i < 4; ++i) { log.push(`read ${i}`); yield i; }
    } finally { log.push('closed'); }
  }
  const seen = [];
  for await (const each of tg.prefetch(source(), 1)) {
    log.push(`use ${each}`);
    seen.push(each);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.deepEqual(seen, [0, 1, 2, 3]);
  assert.ok(log.indexOf('read 2') < log.indexOf('use 1'), `${log}`);
  assert.ok(log.indexOf('closed') < log.indexOf('use 3'), `${log}`);
  for await (const each of tg.prefetch(source())) if (each === 1) break;
  assert.equal(log.at(-1), 'closed');
  const failing = (async function* () { yield 1; throw new RangeError('end'); })();
  await assert.rejects(async () => { for await (const _ of tg.prefetch(failing)); },
                       { name: 'RangeError' });
});

test('a custom op is traced, and needs WebGPU to run', async () => {
  const twice = new tg.CustomOp({
    name: 'twice', infer: ([x]) => x,
    wgsl: ([x]) => `fn element(i: u32) -> f32 { return f32(${x.shape.length}) * in0(i); }`,
    backward: (_, y, dy) => [mul(dy, 2)] });
  const loss = (net, { x }) => tg.mean(twice.call([tg.reshape(net.forward(x), [4, 1])]));
  const spec = { model: new Mlp(), loss, inputs: { x: [4, 1] }, optimizer: optim.sgd() };
  await assert.rejects(compile({ ...spec, device: { kind: 'cpu' } }).then((t) => t.step({ x: [1, 2, 3, 4] })),
                       { name: 'UserError', message: /twice/ });
  const traced = await compile({ ...spec, device: { kind: 'null' } });
  const kernels = Object.entries(await traced.dump())
    .filter(([name, text]) => name.endsWith('.wgsl') && /f32\(2\) \* in0\(i\)/.test(text));
  assert.equal(kernels.length, 1);
  const forward = (net, { x }) => new tg.CustomOp({
    name: 'bad', infer: () => ({ shape: [2], dtype: 'u32' }), wgsl: () => '' }).call([x]);
  await assert.rejects(
    compileFunction({ model: new Mlp(), forward, inputs: { x: [2] }, device: { kind: 'null' } }),
    { name: 'DtypeError', message: /bad: the result must be f32 or i32/ });
});
