// SPDX-License-Identifier: MIT
// What each page of the benchmark does: one library, one workload, one device, named in the address.
// The library's module exports prepare(shape, device, options), which resolves to
// - device: a text;
// - step(batch): uploads a batch, runs a step and resolves to its loss;
// - run(steps, batches): runs steps on data that is on the device, and resolves to the last loss.
import { prepare } from '#library';
import { batches, workloads } from './workloads.mjs';

// Calls into WebGPU by this thread, the same for all libraries.
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

// Resolves to the losses of the first steps and the time of the first, from the start of navigation.
globalThis.start = (async () => {
  prepared = await prepare(shape, asked.get('device'), { engine: asked.get('engine') ?? 'worker' });
  const losses = [await step()];
  const first = performance.now();
  for (let i = 1; i < 4; ++i) losses.push(await step());
  return { device: prepared.device, losses, first };
})();
globalThis.start.catch(() => {});

// Milliseconds of each step, for some time; in mode 'run' of calls of `steps` steps.
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

// Launches of a step with their times, of libraries that can tell.
globalThis.profile = () => prepared.profile(given[0]);

// Calls of one step.
globalThis.count = async () => {
  for (const name of Object.keys(calls)) calls[name] = 0;
  await step();
  return { ...calls };
};
