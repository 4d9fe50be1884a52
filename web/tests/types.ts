// SPDX-License-Identifier: MIT
// What the type system accepts and refuses. Compiled, never run.
import {
  CustomOp, DataLoader, add, argmax, cast, checkSupport, lt, mul, prefetch, sub, sum, BatchNorm, Conv2d, Linear, Module, Tensor, adjustable, checkpoint, compile, compileFunction, crossEntropy,
  init, max, mse, optim, readMetadata, relu, schedule, singleFlight, softmax, split, topk, type CompileOptions,
} from 'tensorgrad';

class Part extends Module {
  shift = this.param([64]);
  count = this.buffer([1], 0, 'i32');
  norm = new BatchNorm(64);
}

class Mlp extends Module {
  part = new Part();
  in = new Linear(1, 64);
  blocks = [new Linear(64, 64), new Linear(64, 64, false)];
  conv = new Conv2d(1, 4, [3, 3], { padding: 1, stride: [1, 2] });
  scale = this.param([64], init.ones());
  forward(x: Tensor): Tensor { return relu(this.in.forward(x)); }
}

export async function accepted(): Promise<void> {
  const trainer = await compile({
    model: new Mlp(),
    loss: (net, { x, y, images }) => {
      const batch: 32 = x.shape[0];
      const parts: Tensor[] = split(net.forward(x), 2, 1);
      const { values } = topk(max(images, [1, 2]), batch);
      return mse(checkpoint((h) => h, [parts[0]!]), crossEntropy(values, y, { ignoreIndex: 0 }));
    },
    inputs: { x: [32, 1], y: { shape: [32], dtype: 'i32' } },
    dataset: { images: [1000, 28, 28] }, batch: 32, clipGradNorm: 1, lossScale: { initScale: 1 },
    groups: [{ params: (name, shape) => name.endsWith('bias') && shape.length < 2, freeze: true }],
    optimizer: optim.adam({ lr: schedule.warmup(10, schedule.cosine(1, 0, 10)),
      beta1: adjustable(0.9) }),
  });
  const { loss, captures } = await trainer.step({ x: new Float32Array(32), y: new Int32Array(32) });
  await trainer.step({ x: [1, 2], y: [0, 1] }, { captures: ['h'] });
  await trainer.uploadData('images', new Float32Array(1000 * 784));
  const value = new Float32Array(64);
  await trainer.uploadParams({
    'in.weight': value, 'blocks.1.weight': { data: value, shape: [64] }, scale: value, 'part.shift': value,
    'part.norm.running_mean': value, 'part.count': new Int32Array(1) }, { partial: true });
  await trainer.uploadParams(await trainer.downloadParams());
  const { notes } = await readMetadata(await trainer.save({ metadata: [['notes', 'a']] }), { name: 'a' });
  void notes?.length;
  const predict = await trainer.attach({
    forward: (net, { x }) => ({ h: net.forward(x), p: softmax(x) }), inputs: { x: [null, 1] } });
  const { h, p } = await predict.run({ x: [1] });
  const one = await compileFunction({
    model: new Mlp(), forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  const tried = await one.tryRun({ x: [1] }, { captures: ['h'] });
  if (tried.status === 'completed') void [tried.outputs.output.data[0]!, tried.outputs.h.shape];
  else if (tried.status === 'failed') void tried.error.message;
  await one.uploadParams({ 'in.weight': value, scale: value }, { partial: true });
  await one.uploadParams(await one.downloadParams());
  await predict.uploadParams({ 'part.shift': value }, { partial: true });
  const numbers: number[] = [loss, h.data[0]!, p.data.length, (await one.run({ x: [1] })).output.shape[0]!];
  // Elements have the array of their type.
  const total: number = h.data.reduce((a, b) => a + b) + Math.max(...p.data.map((x) => x * x));
  const { best, less, whole, given, all } = await (await compileFunction({
    model: new Mlp(), inputs: { x: [2, 3], i: { shape: [2], dtype: 'i32' } },
    forward: (_, { x, i }) => ({
      best: argmax(x, 1), less: lt(x, 0), whole: cast(x, 'i32'), given: i,
      all: topk(x, 1).indices }) })).run({ x: [1], i: [1] });
  const ints: Int32Array[] = [best.data, whole.data, given.data, all.data];
  const flags: Uint32Array = less.data;
  const called: Float32Array = await one.call({ x: [1] });
  const { seen } = await predict.run({ x: [1] }, { captures: ['seen'] });
  numbers.push(total, ints.length, flags[0]!, called[0]!, seen.data.reduce((a, b) => a + b));
  const captured = await trainer.step({ x: [1], y: [0] }, { captures: ['h'] });
  numbers.push(captured.captures.h.data.reduce((a, b) => a + b));

  const gan = await compile({
    model: new Mlp(), dataset: { images: [10, 4] }, seed: 1, objectives: {
      one: { loss: (net, { x }) => mse(net.forward(x), x), inputs: { x: [4, 1] },
        optimizer: optim.adam(), params: 'in.*', clipGradNorm: 1 },
      two: { loss: (net, { y, images }) => crossEntropy(images, y), batch: 4,
        inputs: { y: { shape: [4], dtype: 'i32' } },
        optimizer: optim.custom({ lr: 1, update: (u) => u.setParam(sub(u.param, mul(u.lr, u.grad))) }) },
      three: { loss: (net, { images }) => net.forward(images), batch: 2, optimizer: optim.sgd() },
    } });
  await gan.objectives.three.run(1);
  numbers.push((await gan.objectives.one.step({ x: [1] })).loss);
  await gan.objectives.two.step({ y: new Int32Array(4) });
  await gan.uploadData('images', new Float32Array(40));

  const loader = new DataLoader(4, async (i) => ({ x: Float32Array.of(i), y: Int32Array.of(i) }));
  const batch = await loader.next();
  await trainer.step(batch.fields);
  for await (const [x, y] of prefetch([[1, 2]])) numbers.push(x! + y!);
  const double = new CustomOp({ name: 'double', infer: ([x]) => x!, wgsl: () => '' });
  const support = await checkSupport();
  if (support.reason === 'ok') numbers.push(support.message.length);
  void [double, sum, add];
  const flight = await singleFlight((n: number) => Promise.resolve(n))(1);
  if (flight.completed) numbers.push(flight.value);
  const options: Partial<CompileOptions> = { seed: numbers.length };
  void [captures['h']?.data, options];
}

export async function refused(): Promise<void> {
  // @ts-expect-error an option that there is not
  new Conv2d(1, 4, 3, { paddding: 1 });
  // @ts-expect-error one of 'mean', 'sum', 'none', 'batchMean'
  mse(new Mlp().scale, new Mlp().scale, 'average');
  // @ts-expect-error an optimizer's option that there is not
  optim.sgd({ beta1: 1 });
  // @ts-expect-error the optimizer is missing
  await compile({ model: new Mlp(), loss: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  const trainer = await compile({
    model: new Mlp(), inputs: { x: [32, 1], y: { shape: [32], dtype: 'i32' } },
    dataset: { labels: { shape: [100], dtype: 'u32' } },
    // @ts-expect-error there is no input z
    loss: (net, { x, z }) => mse(net.forward(x), z), optimizer: optim.adam() });
  const typed = await compile({
    model: new Mlp(), loss: (net, { x }) => net.forward(x), inputs: { x: [1, 1] }, optimizer: optim.adam() });
  // @ts-expect-error y is missing
  await trainer.step({ x: new Float32Array(32) });
  // @ts-expect-error the model has no field 'inn'
  await typed.uploadParams({ 'inn.weight': new Float32Array(64) }, { partial: true });
  // @ts-expect-error the module 'part' has no field 'scale'
  await typed.uploadParams({ 'part.scale': new Float32Array(64) }, { partial: true });
  // @ts-expect-error 'scale' is a parameter, not a module
  await typed.uploadParams({ 'scale.weight': new Float32Array(64) }, { partial: true });
  // @ts-expect-error values are no text
  await typed.uploadParams({ scale: 'ones' }, { partial: true });
  const one = await compileFunction({
    model: new Mlp(), forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  // @ts-expect-error the model of the function has no field 'inn'
  await one.uploadParams({ 'inn.weight': new Float32Array(64) }, { partial: true });
  // @ts-expect-error outputs are there only if the run completed
  void (await one.tryRun({ x: [1] })).outputs;
  // @ts-expect-error there is no input w
  await trainer.step({ x: new Float32Array(32), y: new Int32Array(32), w: [1] });
  // @ts-expect-error y is i32
  await trainer.step({ x: new Float32Array(32), y: new Float32Array(32) });
  // @ts-expect-error there is no such entry
  await trainer.uploadData('images', new Float32Array(1));
  // @ts-expect-error labels are u32
  await trainer.uploadData('labels', new Float32Array(1));
  const predict = await trainer.attach({
    forward: (net, { x }) => ({ h: net.forward(x) }), inputs: { x: [null, 1] } });
  // @ts-expect-error the sizes of a function are numbers
  const never: 'size' = (await predict.run({ x: [1] })).h.shape[0]!;
  void never;
  // @ts-expect-error the model of the trainer has no field 'inn'
  await predict.uploadParams({ 'inn.weight': new Float32Array(64) }, { partial: true });
  const gan = await compile({
    model: new Mlp(), objectives: {
      one: { loss: (net, { x }) => net.forward(x), inputs: { x: [4, 1] }, optimizer: optim.adam() },
    } });
  // @ts-expect-error there is no objective two
  await gan.objectives.two.step({});
  // @ts-expect-error x is missing
  await gan.objectives.one.step({});
  await compile({ model: new Mlp(), objectives: {
    // @ts-expect-error one of several losses has no seed of its own
    one: { loss: (net) => net.scale, inputs: {}, optimizer: optim.adam(), seed: 1 } } });
  // @ts-expect-error a mean is f32
  const ints: Int32Array = (await predict.run({ x: [1] })).h.data;
  void ints;
  // @ts-expect-error a number is no tensor
  softmax(3);
  // @ts-expect-error the loss of a model has its type
  await trainer.replaceModel(new Linear(1, 1));
}
