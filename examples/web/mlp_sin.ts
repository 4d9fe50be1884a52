// SPDX-License-Identifier: MIT
// mlp-sin: learns y = sin(x) from points between -pi and pi.
import { Linear, Module, compile, mean, optim, relu, square, sub, type Tensor } from 'tensorgrad';
import { count, initial, random, type Options, type Result } from './common.js';

class Mlp extends Module {
  in = new Linear(1, 64);
  mid = new Linear(64, 64);
  out = new Linear(64, 1);
  forward(x: Tensor): Tensor {
    return this.out.forward(relu(this.mid.forward(relu(this.in.forward(x)))));
  }
}

export async function train({ steps = 1000, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result> {
  const batch = 256;
  const trainer = await compile({
    model: new Mlp(),
    loss: (net, { x, y }) => mean(square(sub(net.forward(x), y))),
    inputs: { x: [batch, 1], y: [batch, 1] },
    optimizer: optim.adam({ lr: 0.005 }), initial, seed, device: { kind: device },
  });
  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const x = Float32Array.from({ length: batch }, () => (2 * next() - 1) * Math.PI);
    const { loss } = await trainer.step({ x, y: x.map(Math.sin) });
    losses.push(loss);
    if (step % 100 === 0) log(`step ${step}  loss ${loss.toExponential(2)}`);
  }

  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: [null, 1] } });
  for (const x of [-2, -1, 0, 1, 2])
    log(`sin(${x}) = ${Math.sin(x).toFixed(4)}, network ${(await predict.call({ x: [x] }))[0]!.toFixed(4)}`);
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
