// SPDX-License-Identifier: MIT
// What the type system accepts and refuses. Compiled, never run.
import {
  Conv2d, Linear, Module, Tensor, adjustable, checkpoint, compile, compileFunction, crossEntropy,
  init, max, mse, optim, relu, schedule, singleFlight, softmax, split, topk, type CompileOptions,
} from 'tensorgrad';

class Mlp extends Module {
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
  const predict = await trainer.attach({
    forward: (net, { x }) => ({ h: net.forward(x), p: softmax(x) }), inputs: { x: [null, 1] } });
  const { h, p } = await predict.run({ x: [1] });
  const one = await compileFunction({
    model: new Mlp(), forward: (net, { x }) => net.forward(x), inputs: { x: [1, 1] } });
  const numbers: number[] = [loss, h.data[0]!, p.data.length, (await one.run({ x: [1] })).output.shape[0]!];
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
  // @ts-expect-error y is missing
  await trainer.step({ x: new Float32Array(32) });
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
  // @ts-expect-error a number is no tensor
  softmax(3);
  // @ts-expect-error the loss of a model has its type
  await trainer.replaceModel(new Linear(1, 1));
}
