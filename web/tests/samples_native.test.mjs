// SPDX-License-Identifier: MIT
// The losses of the samples in examples/web against the same programs in the native library: `tg run`
// makes each step from the traced graph, with the same parameters, batches and learning rates.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { compileSamples, readDigits } from '../../examples/web/build.mjs';
import * as native from './native.mjs';
import { library, tg } from './support.mjs';

const { skip } = native;
const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
after(() => rmSync(folder, { recursive: true }));

// Records each step of a trainer, and what it starts from.
const { step } = tg.Trainer.prototype;
let record;
tg.Trainer.prototype.step = async function (inputs, ...rest) {
  if (!record.graph) {
    record.graph = (await this.dump())['01_autodiff.ir'];
    record.state = native.readTensors(await this.save()).tensors;
  }
  const scalars = { ...await this.scalars(), _lr: (await this.counters()).lr, _t: record.steps.length + 1,
                    _seed: 1, _step: record.steps.length };
  const result = await step.call(this, inputs, ...rest);
  record.steps.push({ inputs, scalars, loss: result.loss });
  return result;
};

// Shapes and types of the leaves of a graph by name.
const leaves = (graph) => Object.fromEntries(
  [...graph.matchAll(/ = (?:input|scalar)\(\) \{.*?name="(.*?)".*?\} : (\w+)\[([\d,]*)\]/g)].map(
    ([, name, dtype, shape]) => [name, { dtype: dtype.toUpperCase(), shape: shape ? shape.split(',').map(Number) : [] }]));
const arrays = { F32: Float32Array, I32: Int32Array, U32: Uint32Array };

// Returns the parameters by name in the arena that holds all of them.
const parameters = (graph, { data }) => Object.fromEntries(
  [...graph.matchAll(/ = parameter\(\) \{.*?name="(.*?)", offset=(\d+).*?\} : f32\[([\d,]*)\]/g)].map(
    ([, name, offset, sizes]) => {
      const shape = sizes.split(',').map(Number), count = shape.reduce((a, b) => a * b, 1);
      return [name, { dtype: 'F32', shape, data: data.slice(+offset, +offset + count) }];
    }));

// Makes the recorded steps natively. Returns their losses.
function trainNatively({ graph, state, steps }, target) {
  writeFileSync(join(folder, 'graph.ir'), graph);
  const known = leaves(graph);
  let values = state;
  return steps.map(({ inputs, scalars }) => {
    const given = Object.entries({ ...inputs, ...Object.fromEntries(
      Object.entries(scalars).map(([name, value]) => [name, [value]])) }).filter(([name]) => name in known)
      .map(([name, data]) => [name, { ...known[name], data: arrays[known[name].dtype].from(data) }]);
    assert.equal(given.length, Object.keys(known).length, Object.keys(known).join(' '));
    writeFileSync(join(folder, 'in.safetensors'), native.writeTensors({ ...values, ...Object.fromEntries(given) }));
    native.tg(folder, ['run', 'graph.ir', '--inputs', 'in.safetensors', '--out', 'out.safetensors'], target);
    const { tensors } = native.readTensors(new Uint8Array(readFileSync(join(folder, 'out.safetensors'))));
    const states = Object.entries(tensors).filter(([name]) => name.startsWith('update optim.'))
      .map(([name, tensor]) => [name.slice('update '.length), tensor]);
    values = { ...parameters(graph, tensors['update params']), ...Object.fromEntries(states) };
    return tensors.loss.data[0];
  });
}

const options = {
  cartpole: {}, char_gpt: { batch: 4, length: 32 }, flow_matching_tiny: { batch: 4 }, kan_tiny: {}, makemore: {}, mlp_sin: {},
  mnist_cnn: { batch: 16 }, nerf_tiny: {}, tic_tac_toe: {}, transformer: {},
  vae: { batch: 16 } };
const own = pathToFileURL(`${folder}/`);
const samples = skip ? '' : await compileSamples(library, own), digits = skip ? undefined : readDigits(own);
for (const [name, more] of Object.entries(options)) {
  test(`${name} has the losses of the native library`, { skip }, async () => {
    record = { steps: [] };
    const { train } = await import(new URL(`${name}.js`, samples));
    await train({ steps: 6, device: 'cpu', digits, ...more });
    const expected = trainNatively(record, native.target), losses = record.steps.map(({ loss }) => loss);
    assert.ok(losses.length >= 6, `${losses.length}`);
    assert.notEqual(losses.at(-1), losses[0]);
    const text = losses.map((loss, i) => `${loss} ${expected[i]}`).join('\n');
    // To the bit if nothing fuses products and sums, else to rounding.
    const most = native.target ? 0 : 1e-5;
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - expected[i]) <= most * Math.abs(loss), text));
  });
}
