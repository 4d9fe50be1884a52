// SPDX-License-Identifier: MIT
// vae: a variational autoencoder of digits with eight numbers per image.
import {
  Linear, Module, add, compile, exp, mean, mul, neg, optim, randn, relu, sigmoid, square, sub, sum,
  type Tensor,
} from 'tensorgrad';
import { count, initial, random, type Digits, type Options, type Result } from './common.js';

const pixels = 28 * 28, size = 8;

class Vae extends Module {
  enc1 = new Linear(pixels, 256);
  enc2 = new Linear(256, 256);
  mu = new Linear(256, size);
  logVar = new Linear(256, size);
  dec1 = new Linear(size, 256);
  dec2 = new Linear(256, 256);
  out = new Linear(256, pixels);

  // Images [B, 784] -> mean and logarithm of the variance of their codes, each [B, 8]
  encode(x: Tensor) {
    const h = relu(this.enc2.forward(relu(this.enc1.forward(x))));
    return { mu: this.mu.forward(h), logVar: this.logVar.forward(h) };
  }
  decode(z: Tensor): Tensor {
    return sigmoid(this.out.forward(relu(this.dec2.forward(relu(this.dec1.forward(z))))));
  }
}

export async function train({
  steps = 2000, seed = 1, device = 'auto', log = () => {}, digits: { images, labels }, batch = 128,
}: Options & { digits: Digits; batch?: number }): Promise<Result> {
  const trainer = await compile({
    model: new Vae(),
    loss: (net, { x }) => {
      const { mu, logVar } = net.encode(x);
      const z = add(mu, mul(exp(mul(logVar, 0.5)), randn([batch, size])));
      const error = sum(square(sub(net.decode(z), x)), 1);
      const divergence = mul(0.5, sum(neg(sub(add(logVar, 1), add(square(mu), exp(logVar)))), 1));
      return mean(add(error, divergence));
    },
    inputs: { x: [batch, pixels] },
    optimizer: optim.adam({ lr: 1e-3 }), clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const decode = await trainer.attach({
    forward: (net, { z }) => net.decode(z), inputs: { z: [null, size] } });

  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const x = new Float32Array(batch * pixels);
    for (let i = 0; i < batch; ++i) {
      const from = Math.floor(next() * labels.length) * pixels;
      for (let p = 0; p < pixels; ++p) x[i * pixels + p] = images[from + p]! / 255;
    }
    losses.push((await trainer.step({ x })).loss);
    if (step % 200 === 0) log(`step ${step}  loss ${losses.at(-1)!.toFixed(2)}`);
  }
  const image = await decode.call({ z: Array(size).fill(0) });  // of the middle of all codes
  for (let y = 0; y < 28; y += 2)
    log(Array.from({ length: 28 }, (_, x) => ' .:*#'[Math.round(image[y * 28 + x]! * 4)]).join(''));
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
