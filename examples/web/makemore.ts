// SPDX-License-Identifier: MIT
// makemore: a decoder learns to spell names and generates more. A tenth of the names is held out.
import { compile, crossEntropy, mul, optim, schedule, sum, type Tensor } from 'tensorgrad';
import { count, draw, groups, initial, random, type Options, type Result } from './common.js';
import { Decoder } from './decoder.js';
import { someNames } from './names.js';

const batch = 32, length = 16, symbols = 27;  // 0: begin or end of a name; 1: a; ... 26: z

const encode = (name: string) => [...name].map((letter) => letter.charCodeAt(0) - 96);

// FNV-1a hash, so that whether a name is held out does not depend on the other names.
function held(name: string): boolean {
  let hash = 0x811c9dc5;
  for (const letter of encode(name)) hash = Math.imul(hash ^ letter, 0x01000193) >>> 0;
  return hash % 10 === 0;
}

// Returns names as symbols, their next symbols, and their weights in the loss.
function rows(names: readonly string[]) {
  const x = new Int32Array(batch * length), y = new Int32Array(batch * length);
  const mask = new Float32Array(batch * length);
  names.forEach((name, i) => {
    x.set([0, ...encode(name)], i * length);
    y.set(encode(name), i * length);
    mask.fill(1, i * length, i * length + name.length + 1);
  });
  const all = mask.reduce((a, b) => a + b, 0);
  return { x, y, mask: mask.map((each) => each / all) };
}

const loss = (net: Decoder, { x, y, mask }: { x: Tensor; y: Tensor; mask: Tensor }) =>
  sum(mul(crossEntropy(net.forward(x), y, 'none'), mask));

export async function train({ steps = 1500, seed = 1, device = 'auto', log = () => {}, names = someNames }:
  Options & { names?: readonly string[] } = {}): Promise<Result> {
  const usable = names.map((name) => name.toLowerCase())
    .filter((name) => /^[a-z]+$/.test(name) && name.length < length);
  const training = usable.filter((name) => !held(name)), others = usable.filter(held);
  const shape = [batch, length] as const;
  const inputs = { x: { shape, dtype: 'i32' }, y: { shape, dtype: 'i32' }, mask: shape } as const;
  const trainer = await compile({
    model: new Decoder(symbols, length), loss, inputs,
    optimizer: optim.adamw({ lr: schedule.linear(0.005, 0.0005, steps), weightDecay: 0.01 }),
    groups, clipGradNorm: 1, initial, seed, device: { kind: device },
  });
  const validate = await trainer.attach({ forward: loss, inputs });
  const predict = await trainer.attach({
    forward: (net, { x }) => net.forward(x), inputs: { x: { shape: [8, length], dtype: 'i32' } } });

  // Eight names, letter by letter.
  const samples = async () => {
    const x = new Int32Array(8 * length), made = Array<string>(8).fill('');
    for (let t = 0; t + 1 < length; ++t) {
      const logits = await predict.call({ x });
      for (let i = 0; i < 8; ++i) {
        const symbol = draw(logits, (i * length + t) * symbols, symbols, next);
        if (!symbol || made[i]!.length < t) continue;  // it has ended
        made[i] += String.fromCharCode(96 + symbol);
        x[i * length + t + 1] = symbol;
      }
    }
    return made;
  };

  const next = random(seed), losses: number[] = [];
  const some = (of: readonly string[]) => Array.from({ length: batch }, () => of[Math.floor(next() * of.length)]!);
  for (let step = 1; step <= steps; ++step) {
    losses.push((await trainer.step(rows(some(training)))).loss);
    if (step % 100 !== 0) continue;
    const [validation] = await validate.call(rows(some(others)));
    log(`step ${step}  loss ${losses.at(-1)!.toFixed(3)}  held out ${validation!.toFixed(3)}  ${(await samples()).join(' ')}`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses };
}
