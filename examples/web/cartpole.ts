// SPDX-License-Identifier: MIT
// cartpole: balances a pole on a cart by policy gradients (REINFORCE). 16 carts play 200 steps each,
// then one training step follows.
import {
  Linear, Module, compile, div, flatten, gather, logSoftmax, mul, neg, optim, reshape, sum, tanh,
  type Tensor,
} from 'tensorgrad';
import { count, initial, random, type Options, type Result } from './common.js';

const carts = 16, length = 200, rows = carts * length, discount = 0.99;

class Policy extends Module {
  first = new Linear(4, 16);
  second = new Linear(16, 2);
  // States [B, 4] -> log-probabilities of pushes to the left and to the right [B, 2]
  forward(state: Tensor): Tensor {
    return logSoftmax(this.second.forward(tanh(this.first.forward(state))));
  }
}

// Returns position, speed, angle and angular speed after 0.02 s (Barto, Sutton and Anderson 1983).
function push([x, v, angle, turn]: readonly [number, number, number, number], right: boolean):
  [number, number, number, number] {
  const gravity = 9.8, pole = 0.1, total = 1.1, half = 0.5, dt = 0.02;
  const sine = Math.sin(angle), cosine = Math.cos(angle);
  const pushed = ((right ? 10 : -10) + pole * half * turn * turn * sine) / total;
  const spin = (gravity * sine - cosine * pushed) / (half * (4 / 3 - pole * cosine * cosine / total));
  return [x + dt * v, v + dt * (pushed - pole * half * spin * cosine / total), angle + dt * turn, turn + dt * spin];
}
const fallen = ([x, , angle]: readonly number[]) =>
  Math.abs(x!) > 2.4 || Math.abs(angle!) > 12 / 180 * Math.PI;

export async function train({ steps = 200, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result & { lengths: number[] }> {
  const trainer = await compile({
    model: new Policy(),
    loss: (net, { state, action, weight }) => {
      const taken = flatten(gather(net.forward(state), 1, reshape(action, [rows, 1])));
      return div(neg(sum(mul(taken, weight))), rows);
    },
    inputs: { state: [rows, 4], action: { shape: [rows], dtype: 'i32' }, weight: [rows] },
    optimizer: optim.adam({ lr: 5e-3 }), initial, seed, device: { kind: device },
  });
  const policy = await trainer.attach({
    forward: (net, { state }) => net.forward(state), inputs: { state: [carts, 4] } });

  const next = random(seed), losses: number[] = [], lengths: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    // Row t * carts + c is step t of cart c.
    const state = new Float32Array(rows * 4), action = new Int32Array(rows), weight = new Float32Array(rows);
    const ends = Array<number>(carts).fill(length);
    let now = Array.from({ length: carts }, () =>
      Array.from({ length: 4 }, () => 0.1 * next() - 0.05) as [number, number, number, number]);
    for (let t = 0; t < length; ++t) {
      state.set(now.flat(), t * carts * 4);
      const chances = await policy.call({ state: now.flat() });
      now = now.map((each, c) => {
        if (ends[c]! < length) return each;
        const right = next() < Math.exp(chances[2 * c + 1]!);
        action[t * carts + c] = Number(right);
        const after = push(each, right);
        if (fallen(after)) ends[c] = t + 1;
        return after;
      });
    }
    // The weight of a push: how much better than average the rest of the episode was.
    const returns: number[] = [];
    for (const [c, end] of ends.entries()) {
      for (let t = end - 1, gain = 0; t >= 0; --t) returns.push(weight[t * carts + c] = gain = 1 + discount * gain);
    }
    const mean = returns.reduce((a, b) => a + b, 0) / returns.length;
    const variance = returns.reduce((a, b) => a + (b - mean) ** 2, 0) / returns.length;
    for (const [c, end] of ends.entries()) {
      for (let t = 0; t < end; ++t)
        weight[t * carts + c] = (weight[t * carts + c]! - mean) / (Math.sqrt(variance) + 1e-6);
    }
    losses.push((await trainer.step({ state, action, weight })).loss);
    lengths.push(ends.reduce((a, b) => a + b, 0) / carts);
    if (step % 10 === 0) log(`step ${step}  mean length ${lengths.at(-1)!.toFixed(1)} of ${length}`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses, lengths };
}
