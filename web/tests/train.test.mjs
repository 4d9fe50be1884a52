// SPDX-License-Identifier: MIT
// Training, checkpoints and attached functions.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Mlp, line, numbers, tg } from './support.mjs';

const { compile, compileFunction, capture, mse, optim, schedule } = tg;

const sine = (options = {}) => compile({
  model: new Mlp(), loss: (net, { x, y }) => mse(net.forward(x), y),
  inputs: { x: [32, 1], y: [32, 1] }, optimizer: optim.adam({ lr: 0.01 }), ...options });
const batch = (seed) => {
  const x = numbers(32, seed, 3);
  return { x, y: x.map(Math.sin) };
};

test('trains', async () => {
  const trainer = await sine();
  const losses = [];
  for (let i = 0; i < 100; ++i) losses.push((await trainer.step(batch(i))).loss);
  assert.ok(losses[0] > 0.2 && losses[99] < losses[0] / 10, `${losses[0]} ${losses[99]}`);
  assert.deepEqual(trainer.parameterNames, [
    'in.weight', 'in.bias', 'mid.weight', 'mid.bias', 'out.weight', 'out.bias']);
  assert.match(trainer.device, /^cpu/);
});

test('calls may be made at once, and run in order', async () => {
  const trainer = await sine();
  const results = await Promise.all([1, 2, 3].map((i) => trainer.step(batch(i))));
  assert.deepEqual(results.map((each) => each.step), [1, 2, 3]);
  const outcomes = await Promise.all([trainer.tryStep(batch(4)), trainer.tryStep({ x: [1] })]);
  assert.deepEqual(outcomes.map((each) => each.status), ['completed', 'failed']);
  assert.equal(outcomes[1].error.name, 'ShapeError');
});

test('tryRun returns errors instead of throwing them', async () => {
  const f = await compileFunction({
    engine: 'worker', model: new Mlp(), inputs: { x: [2, 1] },
    forward: (net, { x }) => net.forward(capture('doubled', tg.mul(x, 2))) });
  const x = [1, 2];
  const done = await f.tryRun({ x }, { captures: ['doubled'] });
  assert.equal(done.status, 'completed');
  assert.deepEqual(done.outputs, await f.run({ x }, { captures: ['doubled'] }));
  assert.deepEqual([...done.outputs.doubled.data], [2, 4]);
  for (const [wrong, name, message] of [[{ x: [1] }, 'ShapeError', /input 'x'/], [{}, 'UserError', /'x'/],
                                        [{ x, y: x }, 'UserError', /'y'/]]) {
    const { status, error, outputs } = await f.tryRun(wrong);
    assert.deepEqual([status, error.name, outputs], ['failed', name, undefined]);
    assert.match(error.message, message);
  }
  const waiting = f.tryRun({ x });
  await tg.close();
  assert.deepEqual(await waiting, { status: 'aborted' });
});

test('steps in slices, as whole steps', async () => {
  const [whole, sliced] = [await sine(), await sine()];
  let calls = 0;
  for (let i = 0; i < 3; ++i) {
    let done;
    do {
      done = await sliced.stepFor(0, batch(i));
      ++calls;
    } while (!done);
    assert.deepEqual(done, await whole.step(batch(i)));
  }
  assert.ok(calls > 3, `${calls} calls`);
  assert.equal(await sliced.cancelStep(), false);
  assert.equal(await sliced.stepFor(0, batch(7)), undefined);
  assert.equal(await sliced.cancelStep(), true);
  assert.deepEqual(await sliced.step(batch(3)), await whole.step(batch(3)));
  await assert.rejects(sliced.stepFor(-1, batch(0)), { name: 'UserError' });
});

test('slices of a step take about the time that they may', async () => {
  class Deep extends tg.Module {
    layers = Array.from({ length: 24 }, () => new tg.Linear(128, 128));
    forward(x) { return this.layers.reduce((h, layer) => tg.relu(layer.forward(h)), x); }
  }
  const x = numbers(256 * 128, 1);
  const made = () => compile({
    model: new Deep(), inputs: { x: [256, 128] }, optimizer: optim.adam({ lr: 0.001 }),
    loss: (net, all) => tg.mean(tg.square(net.forward(all.x))) });
  const [whole, sliced] = [await made(), await made()];
  const { launches } = await sliced.report();
  assert.ok(launches > 40, `${launches} launches`);
  // CPU time of this process, which other programs do not extend.
  const cpu = async (f) => {
    const before = process.cpuUsage(), result = await f(), { user, system } = process.cpuUsage(before);
    return { result, seconds: (user + system) / 1e6 };
  };
  const median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];
  const steps = [];
  for (let i = 0; i < 4; ++i) {  // the first compiles WebAssembly
    await whole.step({ x });
    const begin = performance.now();
    await sliced.step({ x });
    steps.push((performance.now() - begin) / 1000);
  }
  const budget = median(steps) / 8, took = [];
  for (let i = 0; i < 3; ++i) {
    let done;
    while (!done) {
      const { result, seconds } = await cpu(() => sliced.stepFor(budget, { x }));
      took.push(seconds);
      done = result;
    }
    assert.deepEqual(done, await whole.step({ x }));
  }
  assert.deepEqual(await sliced.downloadParams(), await whole.downloadParams());
  const calls = took.length / 3, text = `${calls} calls of ${took.map((each) =>
    (each / budget).toFixed(2))} budgets of ${budget} s, ${launches} launches`;
  assert.ok(calls >= 4, text);
  assert.ok(calls < launches, text);  // several launches a call
  assert.ok(median(took) < 2 * budget, text);
  assert.ok(Math.max(...took) < 6 * budget, text);
});

test('weights can be tied, shared and read by path', async () => {
  class Tied extends tg.Module {
    table = new tg.Embedding(5, 4);
    attention = new tg.MultiheadAttention(4, 2);
    same = this.attention;
    scale = this.param([4], tg.init.ones());
    seen = this.buffer([], 3);
    forward(i) {
      const h = tg.mul(this.same.forward(this.table.forward(i)), this.scale);
      this.seen.set(tg.add(this.seen, 1));
      const norm = tg.sum(tg.square(this.attention.parameter('out_proj.bias')));
      return tg.add(tg.matmul(h, tg.transpose(this.table.weight)), norm);
    }
  }
  const trainer = await compile({
    model: new Tied(), loss: (net, { i }) => tg.mean(capture('h', net.forward(i))),
    inputs: { i: { shape: [2, 3], dtype: 'i32' } }, optimizer: optim.sgd() });
  assert.deepEqual(trainer.parameterNames, [
    'table.weight', 'attention.in_proj_weight', 'attention.in_proj_bias',
    'attention.out_proj.weight', 'attention.out_proj.bias', 'scale']);
  const { captures: { h } } = await trainer.step({ i: [0, 1, 2, 3, 4, 0] }, { captures: ['h'] });
  assert.deepEqual(h.shape, [2, 3, 5]);
  const graph = await trainer.graph();
  assert.ok(graph.nodes.some((node) => node.op === 'state' && node.name === 'seen') ||
            /seen/.test(graph.text));
});

test('takes arrays of numbers, and returns captures', async () => {
  const trainer = await compile({
    model: new Mlp(), loss: (net, { x }) => tg.mean(capture('y', net.forward(x))),
    inputs: { x: [2, 1] }, optimizer: optim.sgd() });
  assert.deepEqual(trainer.captures, ['y']);
  const { loss, step, captures: { y } } = await trainer.step({ x: [1, 2] }, { captures: ['y'] });
  assert.equal(step, 1);
  assert.deepEqual(y.shape, [2, 1]);
  assert.ok(Math.abs((y.data[0] + y.data[1]) / 2 - loss) < 1e-6);
});

test('resumes bit for bit from the bytes of a checkpoint', async () => {
  const first = await sine({ optimizer: optim.adamw({ lr: schedule.cosine(0.01, 0.001, 20) }) });
  for (let i = 0; i < 5; ++i) await first.step(batch(i));
  const bytes = await first.save();
  assert.ok(bytes instanceof Uint8Array);
  const expected = [];
  for (let i = 5; i < 10; ++i) expected.push((await first.step(batch(i))).loss);
  const second = await sine({ optimizer: optim.adamw({ lr: schedule.cosine(0.01, 0.001, 20) }) });
  await second.load(bytes);
  const losses = [];
  for (let i = 5; i < 10; ++i) losses.push((await second.step(batch(i))).loss);
  assert.deepEqual(losses, expected);
  await assert.rejects(second.load(bytes.subarray(0, 100)), { name: 'IoError' });
});

test('a checkpoint carries metadata', async () => {
  const trainer = await sine();
  await trainer.step(batch(0));
  const plain = await trainer.save();
  const metadata = [['notes', 'Größe\n"1"'], ['', ''], ['settings', JSON.stringify({ width: 64 })], ['__proto__', 'p']];
  const bytes = await trainer.save({ metadata });
  const all = await tg.readMetadata(bytes);
  assert.deepEqual(all, { ...await tg.readMetadata(plain), ...Object.fromEntries(metadata) });
  assert.equal(all['tensorgrad.step'], '1');
  await trainer.step(batch(1));
  await trainer.load(bytes);
  assert.deepEqual(await trainer.save(), plain);
  await assert.rejects(trainer.save({ metadata: [['tensorgrad.step', '9']] }), {
    name: 'UserError', message: /the key 'tensorgrad\.step'; keys that start with 'tensorgrad\.' are reserved/ });
  await assert.rejects(trainer.save({ metadata: [['a', '1'], ['a', '2']] }), {
    name: 'UserError', message: /the key 'a' more than once/, line: line() - 1 });
  for (const [size, message] of [[0, /^a\.bin: truncated at byte 0/], [100, /^a\.bin: header length \d+/],
                                 [bytes.length - 1, /^a\.bin: /]])
    await assert.rejects(tg.readMetadata(bytes.subarray(0, size), { name: 'a.bin' }),
                         { name: 'IoError', message });
  await assert.rejects(tg.readMetadata(new Uint8Array()), { name: 'IoError', message: /^<memory>: / });
});

test('runs on a dataset', async () => {
  const trainer = await compile({
    model: new Mlp(), loss: (net, { x, y }) => mse(net.forward(x), y),
    dataset: { x: [64, 1], y: [64, 1] }, batch: 16, optimizer: optim.adam({ lr: 0.01 }) });
  const x = numbers(64, 1, 3);
  await trainer.uploadData('x', x);
  await trainer.uploadData('y', x.map(Math.sin));
  const losses = await trainer.run(40);
  assert.equal(losses.length, 40);
  await trainer.submit(4);
  assert.equal((await trainer.losses()).length, 4);
  assert.deepEqual(await trainer.counters(), {
    steps: 44, updates: 44, epoch: 11, batchesPerEpoch: 4, lr: 0.01 });
});

test('queues steps on inputs', async () => {
  const stepped = await sine(), queued = await sine();
  const expected = [];
  for (let i = 0; i < 20; ++i) {
    expected.push((await stepped.step(batch(i))).loss);
    await queued.submit(batch(i));
  }
  assert.deepEqual([...await queued.losses()], expected.map(Math.fround));
  assert.deepEqual(await queued.downloadParams(), await stepped.downloadParams());
  await assert.rejects(queued.submit({ ...batch(0), x: [1] }), { name: 'ShapeError' });
});

const sineLoader = (options = {}) => new tg.DataLoader(70, (i) => {
  const x = numbers(1, i, 3);
  return { x, y: x.map(Math.sin) };
}, { batch: 32, seed: 3, ...options });

test('fits a loader, to the bits of a loop over its batches', async () => {
  for (const options of [{}, { detectNan: true }]) {  // queued, and step by step
    const looped = await sine(options), fitted = await sine(options), means = [];
    const batches = sineLoader();
    for (let epoch = 0; epoch < 3; ++epoch) {
      const losses = [];
      for (let i = 0; i < 2; ++i) losses.push((await looped.step((await batches.next()).fields)).loss);
      means.push((losses[0] + losses[1]) / 2);
    }
    const shown = [], seen = [];
    const result = await fitted.fit(sineLoader(), {
      epochs: 3, onProgress: (each) => shown.push(each), progressSeconds: 1e-9,
      onEpoch: (each) => { seen.push(each); } });
    result.epochs.forEach(({ loss }, i) => assert.ok(Math.abs(loss - means[i]) < 1e-6, `${loss} ${means[i]}`));
    assert.deepEqual(seen, result.epochs);
    assert.equal(result.stopped, false);
    assert.deepEqual(shown.map(({ epoch, step, steps }) => [epoch, step, steps]),
                     [[0, 1, 2], [0, 2, 2], [1, 1, 2], [1, 2, 2], [2, 1, 2], [2, 2, 2]]);
    assert.equal(shown[5].loss, result.epochs[2].loss);
    assert.ok(shown.every(({ stepsPerSecond }) => stepsPerSecond > 0));
    assert.deepEqual(await fitted.downloadParams(), await looped.downloadParams());
  }
});

test('a fit stops early, with the checkpoint of its best epoch', async () => {
  const trainer = await sine(), values = [3, 1, NaN, 2, 0], saved = [], steps = [];
  const result = await trainer.fit(sineLoader(), {
    epochs: 5, patience: 2, validate: async () => values[steps.push((await trainer.counters()).steps) - 1],
    onBest: (checkpoint) => saved.push(checkpoint) });
  assert.deepEqual(steps, [2, 4, 6, 8]);
  assert.deepEqual(result.epochs.map(({ validation, best }) => [validation, best]),
                   [[3, true], [1, true], [NaN, false], [2, false]]);
  assert.deepEqual([result.best, result.stopped, saved.length], [1, true, 2]);
  await trainer.load(saved[1]);
  assert.equal((await trainer.counters()).steps, 4);

  // It continues within an epoch, and the callback ends it.
  const loader = sineLoader();
  await loader.next();
  const rest = await trainer.fit(loader, { epochs: 2, onEpoch: () => false });
  assert.deepEqual([rest.epochs.length, rest.stopped, (await trainer.counters()).steps], [1, true, 5]);
});

test('a fit refuses invalid options and batches, in the line of the call', async () => {
  const trainer = await sine();
  for (const [options, message] of [
    [{ epochs: 0 }, /fit: expected at least 1 epoch, got 0/], [{ patience: -1 }, /patience of at least 0, got -1/],
    [{ progressSeconds: 0 }, /progressSeconds above 0, got 0/]])
    await assert.rejects(trainer.fit(sineLoader(), options), { name: 'UserError', message });
  await assert.rejects(trainer.fit(sineLoader({ batch: 16 })),
                       { name: 'ShapeError', message: /train\.test\.mjs:\d+/ });
  await assert.rejects(trainer.fit(sineLoader(), { validate: () => { throw new RangeError('gone'); } }),
                       { name: 'RangeError' });
});

test('attached functions see the current parameters, at any size', async () => {
  const trainer = await sine();
  const predict = await trainer.attach({
    forward: (net, { x }) => tg.reshape(net.forward(x), [x.shape[0]]), inputs: { x: [null, 1] } });
  const before = await predict.call({ x: [1] });
  for (let i = 0; i < 20; ++i) await trainer.step(batch(i));
  const after = await predict.run({ x: [1, 2, 3] });
  assert.deepEqual(after.output.shape, [3]);
  assert.notEqual(before[0], after.output.data[0]);
  assert.deepEqual(await predict.compiledSizes(), [1, 3]);
  const large = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [null, 1] }, dynamicSize: 4 });
  assert.deepEqual(await large.compiledSizes(), [4]);
  const alone = await compileFunction({
    model: new Mlp(), forward: (net, { x }) => net.forward(x), inputs: { x: [3, 1] } });
  await alone.loadParams(await trainer.save());
  assert.deepEqual((await alone.run({ x: [1, 2, 3] })).output.data, after.output.data);
  await alone.uploadParams(await trainer.downloadParams());
  assert.deepEqual((await alone.run({ x: [1, 2, 3] })).output.data, after.output.data);
});

test('a loss takes inputs of any size, in the order of the calls', async () => {
  const options = (rows) => ({
    loss: (net, { x, y }) => mse(tg.reshape(net.forward(x), [x.shape[0], 1]), y),
    inputs: { x: [rows, 1], y: [rows, 1] } });
  const trainer = await sine(options(null));
  const rows = [1, 8, 3, 8, 5];
  const part = (n, seed) => ({ x: batch(seed).x.slice(0, n), y: batch(seed).y.slice(0, n) });
  const together = await Promise.all(rows.map((n, i) => trainer.step(part(n, i))));
  assert.deepEqual(together.map((each) => each.step), [1, 2, 3, 4, 5]);
  assert.deepEqual(await trainer.compiledSizes(), [1, 5, 8, 3]);
  let checkpoint = await (await sine(options(1))).save();
  for (const [i, n] of rows.entries()) {
    const fixed = await sine(options(n));
    await fixed.load(checkpoint);
    assert.equal((await fixed.step(part(n, i))).loss, together[i].loss, `${n}`);
    checkpoint = await fixed.save();
  }
  assert.deepEqual(await trainer.save(), checkpoint);
  await assert.rejects(trainer.step({ x: [1, 2], y: [1] }), { name: 'ShapeError' });
  await trainer.replaceModel(new Mlp());
  assert.equal((await trainer.step(part(8, 1))).step, 1);
  assert.deepEqual(await trainer.compiledSizes(), [1, 8]);
});

test('parameters, scalars and rates can be set', async () => {
  const trainer = await sine({ clipGradNorm: 1, emaDecay: 0.9 });
  const zeros = Object.fromEntries(Object.entries(await trainer.downloadParams())
    .map(([name, { data }]) => [name, new Float32Array(data.length)]));
  await trainer.uploadParams(zeros);
  const { loss } = await trainer.step(batch(1));
  const { y } = batch(1);
  assert.ok(Math.abs(loss - y.reduce((s, v) => s + v * v, 0) / 32) < 1e-6);
  assert.deepEqual(await trainer.scalars(), { clip_grad_norm: 1 });
  await trainer.set('clip_grad_norm', 0.5);
  assert.deepEqual(await trainer.scalars(), { clip_grad_norm: 0.5 });
  await trainer.setLR(schedule.linear(0.1, 0, 10));
  assert.equal((await trainer.counters()).lr, 0.1);
  assert.ok(await trainer.gradNorm() > 0);
  assert.deepEqual(Object.keys(await trainer.downloadEma()).sort(),
                   [...trainer.parameterNames].sort());
  const averaged = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] }, weights: 'ema' });
  assert.equal((await averaged.call({ x: [1] })).length, 1);
  assert.deepEqual((await averaged.downloadParams())['out.bias'].data,
                   (await trainer.downloadEma())['out.bias'].data);
  assert.equal((await trainer.downloadGrads())['out.bias'].data.length, 1);
  assert.ok('exp_avg/in.weight' in await trainer.downloadOptimizer());
  await assert.rejects(trainer.uploadParams({ 'in.weight': new Float32Array(3) }),
                       { name: 'ShapeError', message: /in\.weight/ });
  await trainer.reset();
  assert.equal((await trainer.counters()).steps, 0);
});

test('the model can be replaced', async () => {
  class Wide extends tg.Module {
    in = new tg.Linear(1, 96);
    out = new tg.Linear(96, 1);
    forward(x) { return this.out.forward(tg.tanh(this.in.forward(x))); }
  }
  const trainer = await sine();
  await trainer.step(batch(1));
  await trainer.replaceModel(new Wide());
  assert.deepEqual(trainer.parameterNames, ['in.weight', 'in.bias', 'out.weight', 'out.bias']);
  assert.equal((await trainer.step(batch(1))).step, 1);
  const params = await trainer.downloadParams();
  assert.deepEqual(params['in.weight'].shape, [96, 1]);
});

test('attached functions follow to a new model', async () => {
  class Wide extends tg.Module {
    in = new tg.Linear(1, 96);
    out = new tg.Linear(96, 1);
    forward(x) { return this.out.forward(tg.tanh(this.in.forward(x))); }
  }
  const trainer = await sine();
  const predict = await trainer.attach({
    forward: (net, { x }) => tg.reshape(net.forward(x), [x.shape[0]]), inputs: { x: [null, 1] } });
  const freed = await trainer.attach({
    forward: (net, { x }) => net.mid.forward(x), inputs: { x: [1, 64] } });
  await freed.free();
  await predict.call({ x: [1, 2, 3] });
  // A call that needs a tape for another size meanwhile.
  const [, y] = await Promise.all([trainer.replaceModel(new Wide()), predict.call({ x: [1, 2] })]);
  for (let i = 0; i < 3; ++i) await trainer.step(batch(i));
  const params = await trainer.downloadParams();
  assert.deepEqual((await predict.downloadParams())['in.weight'].data, params['in.weight'].data);
  const expected = [0.5, -1].map((x) => params['out.bias'].data[0] +
    params['out.weight'].data.reduce((sum, w, i) => sum + w *
      Math.tanh(x * params['in.weight'].data[i] + params['in.bias'].data[i]), 0));
  const got = await predict.call({ x: [0.5, -1] });
  expected.forEach((each, i) => assert.ok(Math.abs(got[i] - each) < 1e-5, `${got} ${expected}`));
  assert.equal(y.length, 2);
  // A size that only the model before had run.
  assert.equal((await predict.call({ x: [1, 2, 3] })).length, 3);

  // A model that does not fit the function: nothing changes.
  class Bare extends tg.Module {
    w = this.param([1, 1]);
    forward(x) { return tg.matmul(x, this.w); }
  }
  const inner = await trainer.attach({
    forward: (net, { x }) => net.in.forward(x), inputs: { x: [1, 1] } });
  await assert.rejects(trainer.replaceModel(new Bare()), {
    name: 'TypeError', message: /in the function attached at .*train\.test\.mjs:\d+/ });
  class Narrow extends Bare { in = new tg.Linear(2, 1); }
  await assert.rejects(trainer.replaceModel(new Narrow()), {
    name: 'ShapeError', message: /in the function attached at .*train\.test\.mjs:\d+/ });
  assert.deepEqual(await predict.call({ x: [0.5, -1] }), got);
  assert.equal((await trainer.step(batch(3))).step, 4);
  assert.ok((await trainer.graph()).nodes.some((node) => node.op === 'tanh'));
  await inner.free();
  await trainer.replaceModel(new Bare());
  assert.deepEqual([...await predict.call({ x: [0.5, -1] })], [0, 0].map((v) => v * 1));
});

test('a model is replaced with another seed and optimizer', async () => {
  const trainer = await sine({ optimizer: optim.sgd({ lr: 0.1 }), clipGradNorm: 1 });
  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  const weights = async () => (await trainer.downloadParams())['mid.weight'].data;
  const first = await weights();
  await trainer.replaceModel(new Mlp());
  assert.deepEqual(await weights(), first);
  await trainer.replaceModel(new Mlp(), { seed: 2, optimizer: optim.adam({ lr: 0.01 }) });
  assert.notDeepEqual(await weights(), first);
  assert.deepEqual(Object.keys(await trainer.scalars()), ['clip_grad_norm']);
  await trainer.step(batch(1));
  assert.ok('exp_avg/in.weight' in await trainer.downloadOptimizer());
  const second = await weights();
  await trainer.replaceModel(new Mlp(), { keep: true, seed: 3 });
  assert.deepEqual(await weights(), second);
  assert.ok('exp_avg/in.weight' in await trainer.downloadOptimizer());
  assert.deepEqual((await predict.downloadParams())['mid.weight'].data, second);
});

test('reports what was compiled', async () => {
  const trainer = await sine();
  assert.match(await trainer.explain(), /linear_relu.*train\.test\.mjs|train\.test\.mjs/s);
  const report = await trainer.report();
  assert.ok(report.launches > 0 && report.peakBytes > 0 && report.passes.length > 5);
  const { table, html, profile } = await trainer.profile(batch(1));
  assert.match(table, /us/);
  assert.match(html, /^<!doctype html>/i);
  assert.equal(profile.launches.length, report.launches);
  const graph = await trainer.graph();
  assert.ok(graph.nodes.some((node) => node.op === 'matmul' && /support\.mjs:/.test(node.location)));
});

test('returns the kernels and the memory of the program', async () => {
  const trainer = await sine();
  const files = await trainer.dump();
  const kernels = Object.keys(files).filter((name) => /^kernels\/\d{3}_.*\.wgsl$/.test(name));
  assert.equal(kernels.length, (await trainer.report()).launches);
  assert.match(files[kernels[0]], /@compute/);
  assert.match(files['memory.svg'], /<svg/);
  assert.match(files['00_trace.ir'], /matmul/);
  const { 'timeline.json': times, ...rest } = await trainer.dump();
  assert.ok(JSON.parse(times));
  delete files['timeline.json'];  // has the times of the passes
  assert.deepEqual(rest, files);
  assert.equal((await trainer.step(batch(1))).step, 1);
});

test('exports to ONNX and for pages, with dynamic sizes', async () => {
  const spec = {
    model: new Mlp(), inputs: { x: [null, 1] },
    forward: (m, { x }) => tg.reshape(m.forward(x), [x.shape[0]]) };
  tg.assets.full = true;
  const net = await compileFunction(spec);
  const bytes = await net.exportOnnx({ name: 'mlp' });
  assert.match(new TextDecoder('latin1').decode(bytes), /mlp.*Gemm|MatMul/s);
  const files = await net.exportWeb({ name: 'mlp', sizes: [1, 4] });
  assert.deepEqual(Object.keys(files).sort(),
                   ['model.json', 'runner.d.ts', 'runner.js', 'weights.bin']);
  const { name, programs } = JSON.parse(new TextDecoder().decode(files['model.json']));
  assert.equal(name, 'mlp');
  assert.equal(programs.length, 2);
});

test('imports weights of another library', async () => {
  const trainer = await sine();
  const bytes = await trainer.save();
  const net = await compileFunction({
    model: new Mlp(), inputs: { x: [1, 1] }, forward: (m, { x }) => m.forward(x) });
  await assert.rejects(net.importWeights(bytes, { ignore: ['in.*'] }), { name: 'UserError' });
  await net.importWeights(bytes);
  assert.deepEqual((await net.downloadParams())['in.weight'].data,
                   (await trainer.downloadParams())['in.weight'].data);
});

test('buffers start with values, and weights have a file of their own', async () => {
  class Scaled extends tg.Module {
    fc = new tg.Linear(2, 1);
    scale = new tg.Buffer([2], Float32Array.of(1, 10));
    order = this.buffer([2], Int32Array.of(1, 0));
    forward(x) { return this.fc.forward(tg.indexSelect(tg.mul(x, this.scale), 1, this.order)); }
  }
  const spec = { model: new Scaled(), inputs: { x: [1, 2] } };
  const loss = (net, { x }) => tg.mean(tg.square(net.forward(x)));
  const trainer = await compile({ ...spec, loss, optimizer: optim.sgd() });
  await trainer.step({ x: [1, 2] });
  assert.deepEqual([...(await trainer.downloadBuffers()).order.data], [1, 0]);
  await trainer.uploadParams({ scale: Float32Array.of(2, 20) }, { partial: true });
  const file = await trainer.saveWeights();
  const next = await compile({ ...spec, loss, optimizer: optim.adam() });
  await next.loadParams(file);
  assert.deepEqual([...(await next.downloadBuffers()).scale.data], [2, 20]);
  const net = await compileFunction({ ...spec, forward: (m, { x }) => m.forward(x) });
  await net.loadParams(file);
  assert.deepEqual([...(await net.downloadBuffers()).scale.data], [2, 20]);
  await assert.rejects(compile({ ...spec, loss, model: Object.assign(new Scaled(), {
    scale: new tg.Buffer([3], Float32Array.of(1, 2)) }) }), { name: 'ShapeError' });
});

test('options can be functions of parameters', async () => {
  const seen = [];
  const trainer = await compile({
    model: new Mlp(), loss: (net, { x }) => tg.mean(net.forward(x)), inputs: { x: [2, 1] },
    initial: (name, shape) => { seen.push([name, shape]); return name === 'out.bias' ? tg.init.ones() : null; },
    groups: [{ params: (name) => name.startsWith('in.'), freeze: true },
      { params: '*.bias', weightDecay: 0 }],
    optimizer: optim.muon({ params: (name) => name === 'mid.weight' }) });
  assert.deepEqual(seen[0], ['in.weight', [64, 1]]);
  assert.deepEqual((await trainer.downloadParams())['out.bias'].data, new Float32Array([1]));
  const before = await trainer.downloadParams();
  await trainer.step({ x: [1, 2] });
  const after = await trainer.downloadParams();
  assert.deepEqual(after['in.weight'].data, before['in.weight'].data);
  assert.notDeepEqual(after['mid.weight'].data, before['mid.weight'].data);
});
