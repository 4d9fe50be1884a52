// SPDX-License-Identifier: MIT
// nerf-tiny: learns a picture of 64 x 64 pixels as a function from position to color. Positions are
// encoded as sines and cosines of eight frequencies.
import {
  Linear, Module, arange, compile, concat, cos, exp2, flatten, mse, mul, optim, relu, sigmoid, sin, unsqueeze,
  type Tensor,
} from 'tensorgrad';
import { count, initial, random, type Options, type Result } from './common.js';

const side = 64, frequencies = 8;

class Field extends Module {
  first = new Linear(4 * frequencies, 64);
  second = new Linear(64, 64);
  third = new Linear(64, 64);
  color = new Linear(64, 3);
  // Positions [B, 2] in (-1, 1) -> colors [B, 3] in (0, 1)
  forward(place: Tensor): Tensor {
    const phase = flatten(mul(unsqueeze(place, -1), mul(exp2(arange(frequencies, 'f32')), Math.PI)), 1);
    let h = concat([sin(phase), cos(phase)], 1);
    for (const layer of [this.first, this.second, this.third]) h = relu(layer.forward(h));
    return sigmoid(this.color.forward(h));
  }
}

// A disc on a gradient, with a bright bar.
function color(x: number, y: number): number[] {
  const r = Math.hypot(x, y);
  if (Math.abs(y) < 0.1 && Math.abs(x) < 0.6) return [1, 1, 0.9];
  return r < 0.8 ? [0.9 - 0.6 * r, 0.3 + 0.4 * x, 0.4 + 0.4 * r] : [0.1, 0.1 + 0.1 * y, 0.2];
}

export async function train({ steps = 2000, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result> {
  const batch = 1024;
  const trainer = await compile({
    model: new Field(),
    loss: (net, { place, wanted }) => mse(net.forward(place), wanted),
    inputs: { place: [batch, 2], wanted: [batch, 3] },
    optimizer: optim.adam({ lr: 1e-3 }), initial, seed, device: { kind: device },
  });
  const next = random(seed), losses: number[] = [];
  const center = () => (Math.floor(next() * side) + 0.5) / side * 2 - 1;
  for (let step = 1; step <= steps; ++step) {
    const places = Array.from({ length: batch }, () => [center(), center()] as const);
    const { loss } = await trainer.step({
      place: places.flat(), wanted: places.flatMap(([x, y]) => color(x, y)) });
    losses.push(loss);
    if (step % 200 === 0) log(`step ${step}  PSNR ${(-10 * Math.log10(loss)).toFixed(1)} dB`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
