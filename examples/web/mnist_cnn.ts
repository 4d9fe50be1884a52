// SPDX-License-Identifier: MIT
// mnist-cnn: a convolutional network classifies handwritten digits. A tenth of them is held out.
import {
  Conv2d, Linear, Module, argmax, compile, crossEntropy, flatten, maxPool2d, optim, relu, type Tensor,
} from 'tensorgrad';
import { count, groups, initial, random, type Digits, type Options, type Result } from './common.js';

const pixels = 28 * 28;

class Cnn extends Module {
  conv1 = new Conv2d(1, 16, 3, { padding: 1 });
  conv2 = new Conv2d(16, 32, 3, { padding: 1 });
  hidden = new Linear(32 * 7 * 7, 64);
  out = new Linear(64, 10);
  // Images [B, 1, 28, 28] -> logits [B, 10]
  forward(x: Tensor): Tensor {
    x = maxPool2d(relu(this.conv1.forward(x)), 2);
    x = maxPool2d(relu(this.conv2.forward(x)), 2);
    return this.out.forward(relu(this.hidden.forward(flatten(x, 1))));
  }
}

export async function train({
  steps = 2000, seed = 1, device = 'auto', log = () => {}, digits: { images, labels }, batch = 64,
}: Options & { digits: Digits; batch?: number }): Promise<Result> {
  const trainer = await compile({
    model: new Cnn(),
    loss: (net, { x, y }) => crossEntropy(net.forward(x), y),
    inputs: { x: [batch, 1, 28, 28], y: { shape: [batch], dtype: 'i32' } },
    optimizer: optim.adamw({ lr: 1e-3, weightDecay: 0.01 }),
    groups, clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const classify = await trainer.attach({
    forward: (net, { x }) => argmax(net.forward(x), 1), inputs: { x: [null, 1, 28, 28] } });

  const training = Math.floor(labels.length * 0.9), next = random(seed);
  const image = (i: number) => images.subarray(i * pixels, (i + 1) * pixels);
  const floats = (indices: readonly number[]) => {
    const x = new Float32Array(indices.length * pixels);
    indices.forEach((i, row) => image(i).forEach((value, p) => { x[row * pixels + p] = value / 255; }));
    return x;
  };
  // Share of the held-out digits that are classified correctly.
  const accuracy = async () => {
    let right = 0;
    for (let i = training; i < labels.length; i += 100) {
      const indices = Array.from({ length: Math.min(100, labels.length - i) }, (_, k) => i + k);
      const said = await classify.call({ x: floats(indices) });
      right += indices.filter((index, k) => said[k] === labels[index]).length;
    }
    return right / (labels.length - training);
  };

  const losses: number[] = [];
  let order: number[] = [];  // of an epoch
  for (let step = 1; step <= steps; ++step) {
    if (order.length < batch) {
      order = Array.from({ length: training }, (_, i) => i);
      for (let i = training - 1; i > 0; --i) {
        const j = Math.floor(next() * (i + 1));
        [order[i], order[j]] = [order[j]!, order[i]!];
      }
    }
    const indices = order.splice(0, batch);
    losses.push((await trainer.step({ x: floats(indices), y: indices.map((i) => labels[i]!) })).loss);
    if (step % 200 === 0)
      log(`step ${step}  loss ${losses.at(-1)!.toFixed(4)}  held out ${(100 * await accuracy()).toFixed(1)} %`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
