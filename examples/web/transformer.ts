// SPDX-License-Identifier: MIT
// transformer: a decoder learns to add two-digit numbers from examples: "27+58=" is followed by the
// digits of 85, the last one first. A fifth of all pairs is held out.
import { compile, crossEntropy, div, narrow, optim, schedule } from 'tensorgrad';
import { argmax, count, groups, initial, random, type Options, type Result } from './common.js';
import { Decoder } from './decoder.js';

const batch = 128, length = 8, symbols = 12, plus = 10, equals = 11;
const first = 5;  // the position that predicts the first digit of the result

const held = (a: number, b: number) => ((100 * a + b) * 31 + 7) % 5 === 0;
const digits = (n: number) => [Math.floor(n / 10), n % 10];
const problem = (a: number, b: number) => [...digits(a), plus, ...digits(b), equals];
const result = (a: number, b: number) => [(a + b) % 10, Math.floor((a + b) / 10) % 10, Math.floor((a + b) / 100)];

export async function train({ steps = 1500, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result> {
  const trainer = await compile({
    model: new Decoder(symbols, length),
    loss: (net, { text, answer }) =>
      div(crossEntropy(narrow(net.forward(text), 1, first, 3), answer, 'sum'), batch * 3),
    inputs: { text: { shape: [batch, length], dtype: 'i32' }, answer: { shape: [batch, 3], dtype: 'i32' } },
    optimizer: optim.adamw({ lr: schedule.linear(0.005, 0.0005, steps), weightDecay: 0.01 }),
    groups, clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const predict = await trainer.attach({
    forward: (net, { text }) => net.forward(text), inputs: { text: { shape: [batch, length], dtype: 'i32' } } });

  // Share of held-out sums whose three digits are right, each predicted from the previous ones.
  const accuracy = async () => {
    const pairs: [number, number][] = [];
    while (pairs.length < batch) {
      const [a, b] = [Math.floor(next() * 100), Math.floor(next() * 100)];
      if (held(a, b)) pairs.push([a, b]);
    }
    const text = new Int32Array(batch * length);
    pairs.forEach(([a, b], i) => text.set(problem(a, b), i * length));
    const right = pairs.map(() => true);
    for (let d = 0; d < 3; ++d) {
      const logits = await predict.call({ text });
      for (const [i, [a, b]] of pairs.entries()) {
        const digit = argmax(logits, (i * length + first + d) * symbols, symbols);
        right[i] &&= digit === result(a, b)[d];
        if (d < 2) text[i * length + first + 1 + d] = digit;
      }
    }
    return right.filter(Boolean).length / batch;
  };

  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const text: number[] = [], answer: number[] = [];
    while (answer.length < 3 * batch) {
      const [a, b] = [Math.floor(next() * 100), Math.floor(next() * 100)];
      if (held(a, b)) continue;
      text.push(...problem(a, b), ...result(a, b).slice(0, 2));
      answer.push(...result(a, b));
    }
    losses.push((await trainer.step({ text, answer })).loss);
    if (step % 100 === 0)
      log(`step ${step}  loss ${losses.at(-1)!.toFixed(4)}  held out ${(100 * await accuracy()).toFixed(1)} %`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
