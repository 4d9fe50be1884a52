// SPDX-License-Identifier: MIT
// What only the full module has.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Mlp, numbers, tg } from './support.mjs';

const { compile, compileFunction, optim } = tg;

class Scan extends tg.Module {
  A = this.param([2, 3], tg.init.constant(-1));
  forward(u) {
    const bc = tg.broadcastTo(tg.mean(u, 2, true), [1, 4, 3]);
    return tg.selectiveScan(u, tg.softplus(u), this.A, bc, bc).y;
  }
}

test('the core module says what it lacks, and dumps in the full one', async () => {
  const lacks = { name: 'UserError', message: /assets\.full = true/ };
  const net = await compileFunction({
    model: new Mlp(), inputs: { x: [4, 1] }, forward: (m, { x }) => m.forward(x) });
  await assert.rejects(net.exportOnnx(), lacks);
  await assert.rejects(net.exportWeb(), lacks);
  const train = (device) => compile({
    model: new Mlp(), loss: (m, { x }) => tg.mean(m.forward(x)), inputs: { x: [4, 1] },
    optimizer: optim.sgd(), device });
  const trainer = await train();
  await assert.rejects(trainer.replaceModel(new tg.LanguageModel({ vocabSize: 3 })), lacks);
  const x = numbers(4, 1);
  const want = (await trainer.step({ x })).loss;
  const other = await train(trainer.sameDevice());
  assert.match((await other.dump())['99_plan.txt'], /linear/);
  // The full module is there now, and what shares a device stays with its program.
  const another = await train(net.sameDevice());
  await assert.rejects(another.replaceModel(new tg.LanguageModel({ vocabSize: 3 })), lacks);
  for (const each of [other, another]) assert.equal((await each.step({ x })).loss, want);
  await tg.close();
});

test('a function with a selective scan is recorded again, for the full module', async () => {
  const inputs = { u: [1, 4, 2] };
  const core = await compile({
    model: new Scan(), inputs, loss: (net, { u }) => tg.add(tg.mean(net.A), tg.mean(u)),
    optimizer: optim.sgd() });
  await assert.rejects(core.attach({ inputs, forward: (net, { u }) => net.forward(u) }), {
    name: 'UserError', message: /selectiveScan: the core module does not have it.*core\.test\.mjs:13/s });
  let recorded = 0;
  const net = await compile({
    model: new Scan(), inputs, loss: (model, { u }) => {
      ++recorded;
      return tg.mean(tg.square(model.forward(u)));
    }, optimizer: optim.sgd({ lr: 0.1 }) });
  assert.equal(recorded, 2);
  const u = numbers(8, 1);
  const losses = [];
  for (let i = 0; i < 4; ++i) losses.push((await net.step({ u })).loss);
  assert.ok(losses[3] < losses[0], String(losses));
  const y = await compileFunction({
    model: new Scan(), inputs, forward: (model, all) => model.forward(all.u) });
  assert.ok((await y.call({ u })).every((each) => Number.isFinite(each) && each !== 0));
});
