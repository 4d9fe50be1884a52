// SPDX-License-Identifier: MIT
// flow-matching-tiny: learns the velocity that turns noise into the image of a digit.
import {
  Conv2d, Embedding, Linear, Module, add, cast, compile, div, mse, mul, optim, randn, relu, reshape, sub,
  type Tensor,
} from 'tensorgrad';
import { count, initial, random, type Digits, type Options, type Result } from './common.js';

const side = 28, pixels = side * side, times = 100;

class Velocity extends Module {
  time = new Embedding(times + 1, 32);
  mix = new Linear(32, 32);
  first = new Conv2d(1, 32, 3, { padding: 1 });
  second = new Conv2d(32, 32, 3, { padding: 1 });
  third = new Conv2d(32, 32, 3, { padding: 1 });
  out = new Conv2d(32, 1, 3, { padding: 1 });
  // Images [B, 1, 28, 28] at times i32 [B] from 0 to 100 -> velocities
  forward(x: Tensor, t: Tensor): Tensor {
    const when = reshape(this.mix.forward(this.time.forward(t)), [t.shape[0]!, 32, 1, 1]);
    const h = relu(add(this.first.forward(x), when));
    return this.out.forward(relu(this.third.forward(relu(this.second.forward(h)))));
  }
}

export async function train({
  steps = 3000, seed = 1, device = 'auto', log = () => {}, digits: { images, labels }, batch = 64,
}: Options & { digits: Digits; batch?: number }): Promise<Result> {
  const shape = [batch, 1, side, side] as const;
  const trainer = await compile({
    model: new Velocity(),
    loss: (net, { image, time }) => {
      const noise = randn(shape), velocity = sub(image, noise);
      const part = reshape(div(cast(time, 'f32'), times), [batch, 1, 1, 1]);
      return mse(net.forward(add(noise, mul(part, velocity)), time), velocity);
    },
    inputs: { image: shape, time: { shape: [batch], dtype: 'i32' } },
    optimizer: optim.adam({ lr: 2e-4 }), clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const euler = 25;
  const noise = await trainer.attach({ forward: () => randn([1, 1, side, side]), inputs: {} });
  const move = await trainer.attach({
    forward: (net, { x, time }) => add(x, div(net.forward(x, time), euler)),
    inputs: { x: [1, 1, side, side], time: { shape: [1], dtype: 'i32' } } });

  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const image = new Float32Array(batch * pixels);
    for (let i = 0; i < batch; ++i) {
      const from = Math.floor(next() * labels.length) * pixels;
      for (let p = 0; p < pixels; ++p) image[i * pixels + p] = images[from + p]! / 127.5 - 1;
    }
    const time = Int32Array.from({ length: batch }, () => 1 + Math.floor(next() * times));
    losses.push((await trainer.step({ image, time })).loss);
    if (step % 200 === 0) log(`step ${step}  loss ${losses.at(-1)!.toFixed(4)}`);
  }
  let x = Float32Array.from(await noise.call({}));
  for (let i = 0; i < euler; ++i) x = Float32Array.from(await move.call({ x, time: [i * times / euler] }));
  for (let row = 0; row < side; row += 2)
    log(Array.from({ length: side }, (_, column) => ' .:*#'[
      Math.round(Math.min(Math.max((x[row * side + column]! + 1) / 2, 0), 1) * 4)]).join(''));
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
