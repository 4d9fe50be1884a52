// SPDX-License-Identifier: MIT
// kan-tiny: a Kolmogorov-Arnold network learns sin(pi x). Each connection is a curve: a sum of eight
// cubic B-splines and a weighted silu.
import {
  Module, abs, add, arange, compile, div, flatten, init, linear, lt, mse, mul, optim, relu, silu, square,
  sub, unsqueeze, where, type Tensor,
} from 'tensorgrad';
import { count, random, type Options, type Result } from './common.js';

const knots = 8;

// The B-splines at x in [-1, 1]: [B, I] -> [B, I, 8]
function splines(x: Tensor): Tensor {
  const u = abs(sub(unsqueeze(mul(add(x, 1), (knots - 1) / 2), -1), arange(knots, 'f32')));
  const inner = add(sub(mul(0.5, mul(u, square(u))), square(u)), 2 / 3);
  const tail = relu(sub(2, u));
  return where(lt(u, 1), inner, div(mul(tail, square(tail)), 6));
}

class Layer extends Module {
  curves;
  weight;
  constructor(inputs: number, outputs: number) {
    super();
    this.curves = this.param([outputs, inputs * knots], init.normal(0, 0.1));
    this.weight = this.param([outputs, inputs], init.normal(0, 0.02));
  }
  // [B, I] -> [B, O]
  forward(x: Tensor): Tensor {
    return add(linear(flatten(splines(x), 1), this.curves), linear(silu(x), this.weight));
  }
}

class Kan extends Module {
  first = new Layer(1, 4);
  second = new Layer(4, 1);
  forward(x: Tensor): Tensor { return this.second.forward(this.first.forward(x)); }
}

export async function train({ steps = 2000, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result> {
  const batch = 256;
  const trainer = await compile({
    model: new Kan(),
    loss: (net, { x, y }) => mse(net.forward(x), y),
    inputs: { x: [batch, 1], y: [batch, 1] },
    optimizer: optim.adam({ lr: 0.005 }), seed, device: { kind: device },
  });
  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const x = Float32Array.from({ length: batch }, () => 2 * next() - 1);
    losses.push((await trainer.step({ x, y: x.map((each) => Math.sin(Math.PI * each)) })).loss);
    if (step % 200 === 0) log(`step ${step}  loss ${losses.at(-1)!.toExponential(2)}`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
