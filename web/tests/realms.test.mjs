// SPDX-License-Identifier: MIT
// Values that were made in another realm, such as a frame or a context of node:vm. They are no
// instances of this realm's Float32Array, Map or Object.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import vm from 'node:vm';
import { Mlp, numbers, tg } from './support.mjs';

after(() => tg.close());

const { Buffer, Linear, Module, compile, compileFunction, mse, optim } = tg;
const context = vm.createContext({});
/** Returns the value of an expression in another realm. */
const there = (code) => vm.runInContext(`(${code})`, context);
/** Returns a typed array of another realm with these elements. */
const copied = (array) => there(`(all) => ${array.constructor.name}.from(all)`)([...array]);

const x = numbers(16, 1, 3), y = x.map(Math.sin);
const made = () => compile({
  model: new Mlp(), inputs: { x: [16, 1], y: [16, 1] },
  loss: (net, all) => mse(net.forward(all.x), all.y), optimizer: optim.adam({ lr: 0.01 }) });

test('the values are of another realm', () => {
  for (const each of ['new Float32Array(1)', 'new ArrayBuffer(8)', 'new Map()', '{}', 'Error()'])
    assert.ok(!(there(each) instanceof Object), each);
});

test('trains on typed arrays, and resumes from bytes', async () => {
  const [here, other] = [await made(), await made()];
  for (let i = 0; i < 3; ++i) {
    const { loss } = await here.step({ x, y });
    assert.equal((await other.step({ x: copied(x), y: copied(y) })).loss, loss);
  }
  const bytes = await here.save();
  assert.deepEqual(await other.save(), bytes);
  const { loss } = await here.step({ x, y });
  for (const given of [copied(bytes), copied(bytes).buffer]) {
    await other.load(given);
    assert.equal((await other.step({ x: copied(x), y: copied(y) })).loss, loss);
  }
  const params = await here.downloadParams();
  await other.uploadParams(there('(all) => ({ ...all })')(Object.fromEntries(
    Object.entries(params).map(([name, each]) => [name, copied(each.data)]))));
  assert.deepEqual(await other.downloadParams(), params);
});

test('arrays of integers and other numbers keep their type', async () => {
  class Table extends Module {
    table = this.param([4, 1]);
    count = new Buffer([2], copied(new Int32Array([3, 4])));
  }
  const f = await compileFunction({
    model: new Table(),
    inputs: { i: { shape: [3], dtype: 'i32' }, u: { shape: [2], dtype: 'u32' }, z: [2] },
    forward: (net, { i, u, z }) => ({
      rows: tg.embedding(i, net.table), u: tg.cast(u, 'f32'), z, count: net.count.tensor() }) });
  await f.uploadParams({ table: copied(new Float32Array([1, 2, 3, 4])) });
  const { rows, u, z, count } = await f.run({
    i: copied(new Int32Array([3, 0, 2])), u: copied(new Uint32Array([7, 8])),
    z: there('[0.5, 1.5]') });
  assert.deepEqual([...rows.data], [4, 1, 3]);
  assert.deepEqual([...u.data], [7, 8]);
  assert.deepEqual([...z.data], [0.5, 1.5]);
  assert.deepEqual([...count.data], [3, 4]);
  assert.ok(count.data instanceof Int32Array);
});

test('loaders join samples', async () => {
  const loader = new tg.DataLoader(4, (i) => there(`{ x: Float32Array.of(${i}, 1) }`),
                                   { batch: 4, shuffle: false });
  const { fields } = await loader.next();
  const f = await compileFunction({
    model: new Mlp(), inputs: { x: [4, 2] }, forward: (_, all) => tg.sum(all.x, 1) });
  assert.deepEqual([...(await f.run(fields)).output.data], [1, 2, 3, 4]);
});

test('options may be objects, and hold parameters', async () => {
  class Weighted extends Module { weight = this.param([2], tg.init.ones()); fc = new Linear(1, 2); }
  const loss = (options) => (net, { x }) =>
    tg.crossEntropy(net.fc.forward(x), tg.zeros([2], 'i32'), options(net));
  const trained = async (options) => (await (await compile({
    model: new Weighted(), inputs: { x: [2, 1] }, optimizer: optim.sgd(), loss: loss(options),
  })).step({ x: [1, 2] })).loss;
  const wrapped = there('(weight) => ({ weight, labelSmoothing: 0.5 })');
  assert.equal(await trained(({ weight }) => wrapped(weight)),
               await trained(({ weight }) => ({ weight, labelSmoothing: 0.5 })));
});

test('parameters in a Map or an object are refused', async () => {
  for (const container of ['(part) => new Map([[1, part]])', '(part) => new Set([part])',
                           '(part) => ({ part })']) {
    class Holder extends Module { all = there(container)(new Linear(1, 1)); }
    await assert.rejects(compile({
      model: new Holder(), inputs: { x: [1] }, optimizer: optim.sgd(),
      loss: (_, { x }) => tg.mean(x),
    }), { name: 'UserError', message: /field 'all' is a (Map|Set|Object) that holds parameters/ });
  }
});
