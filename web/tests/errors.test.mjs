// SPDX-License-Identifier: MIT
// Errors name the user's line; exceptions of his own arrive unchanged.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Mlp, library, line, tg } from './support.mjs';

const { compile, compileFunction, matmul, mean, mse, optim } = tg;

const trained = (loss, options = {}) => compile({
  model: new Mlp(), loss, inputs: { x: [4, 1], y: [4, 1] }, optimizer: optim.sgd(), ...options });

const at = (name, n, message) => (error) => {
  assert.equal(error.name, name);
  assert.ok(error instanceof tg.TensorgradError);
  assert.match(error.message, message);
  assert.match(error.file, /errors\.test\.mjs$/);
  assert.equal(error.line, n, error.message);
  assert.match(error.message, new RegExp(`at .*errors\\.test\\.mjs:${n}`));
  return true;
};

test('of an op name its line', async () => {
  let n;
  await assert.rejects(
    trained((net, { x }) => { n = line(); return mean(matmul(x, x)); }),
    (error) => at('ShapeError', n, /matmul: inner sizes differ: a \[4,1\], b \[4,1\]/)(error));
});

test('of a layer name the line of its call and of its constructor', async () => {
  let n;
  await assert.rejects(
    trained((net, { x }) => { n = line(); return mean(net.mid.forward(x)); }),
    (error) => at('ShapeError', n, /linear/)(error));
  class Bad extends tg.Module {
    conv = (n = line(), new tg.Conv2d(3, 4, 3, { groups: 2 }));
  }
  await assert.rejects(
    compile({ model: new Bad(), loss: () => 0, optimizer: optim.sgd() }),
    (error) => at('ShapeError', n, /groups/)(error));
});

test('of arguments say what was expected', async () => {
  const message = async (f) => {
    try {
      await trained(f);
    } catch (error) {
      return error.message.split('\n')[0];
    }
    throw new Error('it did not throw');
  };
  assert.equal(await message((_, { x }) => tg.softmax(x, 'last')),
               "softmax: axis: expected an integer, got 'last'");
  assert.equal(await message((_, { x }) => tg.softmax(x, 0.5)),
               'softmax: axis: expected an integer, got 0.5');
  assert.equal(await message(() => tg.softmax(3)), 'softmax: x: expected a tensor, got 3');
  assert.equal(await message((_, { x }) => tg.softmax(x, 0, 1)),
               'softmax: expected at most 2 arguments, got 3');
  assert.equal(await message((_, { x }) => mse(x, x, 'average')),
               "mse: reduction: expected one of 'mean', 'sum', 'none', 'batchMean', got 'average'");
  assert.equal(await message((_, { x }) => tg.split(x, 'a')),
               "split: the arguments (a tensor, 'a') fit none of the overloads: (x, size, axis?), " +
               '(x, sizes, axis?)');
  assert.equal(
    await message((_, { x, y }) => tg.crossEntropy(x, y, { ignore: 3 })),
    "crossEntropy: options: unknown option 'ignore'; available: weight, ignoreIndex, " +
    'labelSmoothing, axis, reduction');
});

test('of the user pass through unchanged', async () => {
  const mine = new RangeError('mine');
  await assert.rejects(trained(() => { throw mine; }), (error) => error === mine);
  await assert.rejects(
    trained((_, { x }) => tg.mean(tg.checkpoint(() => { throw mine; }, [x]))),
    (error) => error === mine);
});

test('of options, inputs and models', async () => {
  await assert.rejects(trained((_, { x }) => mean(x), { optimizer: optim.adam({ beta: 1 }) }),
                       /adam: unknown option 'beta'; available: lr, beta1, beta2/);
  await assert.rejects(trained((_, { x }) => mean(x), { clip: 1 }), /unknown option 'clip'/);
  await assert.rejects(trained((net, { x, y }) => net.forward(x)), { name: 'ShapeError' });
  await assert.rejects(trained((_, { z }) => mean(z)), /mean: x: expected a tensor, got nothing/);
  const trainer = await trained((net, { x, y }) => mse(net.forward(x), y));
  const n = line() + 1;
  await assert.rejects(trainer.step({ x: [1, 2, 3, 4] }), at('UserError', n, /'y'/));
  await assert.rejects(trainer.step({ x: [1, 2, 3], y: [1, 2, 3, 4] }), /'x'/);
  await assert.rejects(trainer.step({ x: [1, 2, 3, 4], y: new Int32Array(4) }), /'y'/);
  await trainer.free();
  await assert.rejects(trainer.run(1), /freed/);
  class Hidden extends tg.Module { layers = { a: new tg.Linear(1, 1) }; }
  await assert.rejects(compile({ model: new Hidden(), loss: () => 0, optimizer: optim.sgd() }),
                       /field 'layers' is a Object that holds parameters/);
  const outside = new tg.Linear(1, 1);
  await assert.rejects(trained((_, { x }) => mean(outside.forward(x))),
                       /the model does not have the Linear/);
});

test('ops outside of a traced function, and tensors of another one', async () => {
  assert.throws(() => tg.zeros([2]), /zeros: ops can only be called in a function/);
  let kept;
  await trained((net, { x, y }) => mse(net.forward(kept = x), y));
  await assert.rejects(trained(() => mean(kept)), /mean: the tensor belongs to another traced/);
});

test('of a function that does not take a dynamic size', async () => {
  const f = await compileFunction({
    model: new Mlp(), inputs: { x: [null, 1] },
    forward: (m, { x }) => tg.reshape(m.forward(x), [x.shape[0] > 2 ? 7 : x.shape[0]]) });
  await f.run({ x: [1, 2] });
  await assert.rejects(f.run({ x: [1, 2, 3] }), { name: 'ShapeError' });
  await f.run({ x: [1] });
});

test('library frames are told from those of the user', () => {
  assert.match(library, /tensorgrad\.js$/);
});
