// SPDX-License-Identifier: MIT
// A worker computes what this thread does, and runs none of the user's code.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { Mlp, line, numbers, tg } from './support.mjs';

after(() => tg.close());

const { compile, compileFunction, mse, optim } = tg;
const batch = (seed) => {
  const x = numbers(16, seed, 3);
  return { x, y: x.map(Math.sin) };
};
const made = (engine, options = {}) => compile({
  engine, model: new Mlp(), inputs: { x: [16, 1], y: [16, 1] },
  loss: (net, { x, y }) => mse(tg.checkpoint((h) => net.forward(h), [x]), y),
  optimizer: optim.adam({ lr: 0.01 }), ...options });

test('trains to the same bits as this thread', async () => {
  const trainers = [await made('worker'), await made('thread')];
  const losses = [[], []];
  for (const [k, trainer] of trainers.entries()) {
    for (let i = 0; i < 10; ++i) losses[k].push((await trainer.step(batch(i))).loss);
  }
  assert.deepEqual(losses[0], losses[1]);
  assert.deepEqual(await trainers[0].save(), await trainers[1].save());
  const table = (text) => text.slice(0, text.indexOf('\ncompile '));  // without milliseconds
  assert.equal(table(await trainers[0].explain()), table(await trainers[1].explain()));
});

test('calls may be made at once, and run in order', async () => {
  const trainer = await made('worker');
  const results = await Promise.all([1, 2, 3].map((i) => trainer.step(batch(i))));
  assert.deepEqual(results.map((each) => each.step), [1, 2, 3]);
});

test('dynamic sizes are traced in this thread', async () => {
  let calls = 0;
  const f = await compileFunction({
    engine: 'worker', model: new Mlp(), inputs: { x: [null, 1] },
    forward: (m, { x }) => { ++calls; return tg.reshape(m.forward(x), [x.shape[0]]); } });
  assert.deepEqual((await f.run({ x: [1, 2, 3] })).output.shape, [3]);
  assert.deepEqual((await f.run({ x: [4, 5, 6] })).output.shape, [3]);
  assert.equal(calls, 2);
});

test('errors name the user\'s line', async () => {
  await assert.rejects(made('worker', { loss: (_, { x, y }) => tg.matmul(x, y) }),
                       { name: 'ShapeError', message: /worker\.test\.mjs:\d+/ });
  const trainer = await made('worker');
  const n = line() + 1;
  await assert.rejects(trainer.step({ x: [1] }), { name: 'ShapeError', line: n });
});
