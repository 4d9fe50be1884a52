// SPDX-License-Identifier: MIT
// The model of each page has the same losses on WebGPU as on the CPU, up to rounding.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite} from './pages.mjs';

// Small sizes, because the GPU is SwiftShader.
const models = [
  ['sine', 'width=16&batch=32'],
  ['digits', 'model=cnn-4'],
  ['digits', 'model=mlp-16'],
  ['addition', 'width=32&batch=32'],
  ['text', 'model=mamba&width=32&layers=1&batch=4'],
  ['text', 'model=mamba2&width=32&layers=1&batch=4'],
  ['text', 'model=gpt&width=32&layers=1&batch=4'],
  ['picture', 'side=32&width=32&waves=2'],
  ['flow', 'width=32&euler=1'],
  ['flow_digits', 'batch=4&euler=1'],
  ['kan', 'target=paper&hidden=2&speed=full'],
  ['cartpole', 'speed=full'],
  ['tictactoe', ''],
];

let site;
before(async () => { site = await openSite({webgpu: true}); });
after(() => site?.close());

// Returns the losses of a few steps, and the device. The page computes its batches as usual.
async function losses(name, query, device) {
  const page = await site.open(name, `${query}&device=${device}&seed=3`);
  await page.state('paused');
  const result = await page.call(async () => {
    const {run} = globalThis, {trainer} = run, all = [];
    const {step, run: several} = Object.getPrototypeOf(trainer);
    trainer.step = async (...given) => {
      const result = await step.apply(trainer, given);
      all.push(result.loss);
      return result;
    };
    trainer.run = async (...given) => {
      const result = await several.apply(trainer, given);
      all.push(...result);
      return result;
    };
    for (let i = 0; i < 3; ++i) await run.spec.step(trainer);
    return {all, device: trainer.device};
  });
  assert.ok(result.device.startsWith(device), result.device);
  await page.check();
  await page.close();
  return result.all;
}

for (const [name, query] of models) {
  test(`${name} ${query}`, async () => {
    const gpu = await losses(name, query, 'webgpu'), cpu = await losses(name, query, 'cpu');
    assert.ok(cpu.length >= 3 && new Set(cpu).size === cpu.length, `${cpu}`);
    assert.equal(gpu.length, cpu.length);
    for (const [i, loss] of cpu.entries()) {
      assert.ok(Math.abs(gpu[i] - loss) <= 1e-4 * Math.max(1, Math.abs(loss)),
                `step ${i + 1}: ${gpu[i]} on WebGPU, ${loss} on the CPU`);
    }
  });
}
