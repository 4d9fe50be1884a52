// SPDX-License-Identifier: MIT
// A character GPT: the decoder of makemore learns from any text and continues it.
import { compile, crossEntropy, optim, schedule } from 'tensorgrad';
import { alice } from '../../web/pages/text_default.js';
import { count, draw, groups, initial, random, type Options, type Result } from './common.js';
import { Decoder } from './decoder.js';

export async function train({
  steps = 1500, seed = 1, device = 'auto', log = () => {}, text = alice, batch = 32, length = 64,
}: Options & { text?: string; batch?: number; length?: number } = {}): Promise<Result> {
  const characters = [...new Set(text)].sort();
  const numbers = new Map(characters.map((each, i) => [each, i]));
  const encode = (part: string) => Int32Array.from(part, (each) => numbers.get(each)!);
  const all = encode(text), symbols = characters.length;

  const shape = [batch, length] as const;
  const trainer = await compile({
    model: new Decoder(symbols, length),
    loss: (net, { x, y }) => crossEntropy(net.forward(x), y),
    inputs: { x: { shape, dtype: 'i32' }, y: { shape, dtype: 'i32' } },
    optimizer: optim.adamw({ lr: schedule.linear(0.005, 0.0005, steps), weightDecay: 0.01 }),
    groups, clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: { shape: [1, length], dtype: 'i32' } } });

  // Continues a beginning by `n` characters, each from the last `length` characters.
  const write = async (beginning: string, n: number) => {
    const tokens = [...encode(beginning)];
    while (tokens.length < beginning.length + n) {
      const seen = tokens.slice(-length), x = new Int32Array(length);
      x.set(seen);  // those after them are not looked at
      tokens.push(draw(await predict.call({ x }), (seen.length - 1) * symbols, symbols, next));
    }
    return tokens.map((each) => characters[each]).join('');
  };

  const next = random(seed), losses: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    const x = new Int32Array(batch * length), y = new Int32Array(batch * length);
    for (let i = 0; i < batch; ++i) {
      const at = Math.floor(next() * (all.length - length));
      x.set(all.subarray(at, at + length), i * length);
      y.set(all.subarray(at + 1, at + 1 + length), i * length);
    }
    losses.push((await trainer.step({ x, y })).loss);
    if (step % 100 === 0)
      log(`step ${step}  loss ${losses.at(-1)!.toFixed(3)}  ${JSON.stringify(await write(text.slice(0, 10), 60))}`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
