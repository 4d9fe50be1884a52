// SPDX-License-Identifier: MIT
// A page of the benchmark: one library, one workload and one device, named in the URL. The
// library's module exports prepare(shape, device, options), which resolves to
// - device: a text;
// - step(batch): uploads a batch, runs a step and resolves to its loss;
// - run(steps, batches): runs steps on data on the device, and resolves to the last loss.
import { prepare } from '#library';
import { batches, workloads } from './workloads.mjs';

// Counts the WebGPU calls of this thread, the same for all libraries.
const calls = {};
for (const [type, names] of [
  ['GPUComputePassEncoder', ['dispatchWorkgroups', 'dispatchWorkgroupsIndirect']],
  ['GPUQueue', ['submit', 'writeBuffer']], ['GPUDevice', ['createBindGroup', 'createBuffer']],
]) {
  const prototype = globalThis[type]?.prototype;
  for (const name of prototype ? names : []) {
    const original = prototype[name];
    prototype[name] = function (...args) {
      calls[name] = (calls[name] ?? 0) + 1;
      return original.apply(this, args);
    };
  }
}

const asked = new URLSearchParams(location.search);
const shape = workloads[asked.get('workload')];
const given = batches(shape, 4);
let prepared, done = 0;

const step = () => prepared.step(given[done++ % given.length]);

// Resolves to the losses of the first steps and the time of the first, from the start of
// navigation.
globalThis.start = (async () => {
  prepared = await prepare(shape, asked.get('device'), { engine: asked.get('engine') ?? 'worker' });
  const losses = [await step()];
  const first = performance.now();
  for (let i = 1; i < 4; ++i) losses.push(await step());
  return { device: prepared.device, losses, first };
})();
globalThis.start.catch(() => {});

// Returns the milliseconds of each step, over some time. In mode 'run', a call runs `steps` steps.
globalThis.measure = async ({ mode, seconds, steps }) => {
  const go = mode === 'step' ? step : () => prepared.run(steps, given);
  const per = mode === 'step' ? 1 : steps;
  await go();
  const times = [], end = performance.now() + 1000 * seconds;
  while (performance.now() < end || times.length < 3) {
    const begin = performance.now();
    await go();
    times.push((performance.now() - begin) / per);
  }
  return times;
};

// Returns the launches of a step with their times, if the library supports it.
globalThis.profile = () => prepared.profile(given[0]);

// Returns the WebGPU calls of one step.
globalThis.count = async () => {
  for (const name of Object.keys(calls)) calls[name] = 0;
  await step();
  return { ...calls };
};
