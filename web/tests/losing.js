// SPDX-License-Identifier: MIT
// For device_loss.test.mjs, in a page or in its worker: counts calls of WebGPU, and destroys all
// devices before one of them. It is told by `losing(settings)`, and returns its counters.
const state = { calls: 0, loseBefore: 0, comesBack: true, opened: 0 };
const devices = [];

function before(type, names) {
  for (const name of names) {
    const call = type.prototype[name];
    type.prototype[name] = function (...given) {
      if (++state.calls === state.loseBefore) for (const each of devices.splice(0)) each.destroy();
      return call.apply(this, given);
    };
  }
}
before(GPUDevice, ['createBuffer', 'createBindGroup', 'createComputePipelineAsync']);
before(GPUQueue, ['submit', 'writeBuffer']);
before(GPUBuffer, ['mapAsync']);

const { requestAdapter } = GPU.prototype, { requestDevice } = GPUAdapter.prototype;
GPU.prototype.requestAdapter = async function (...given) {
  return state.comesBack ? requestAdapter.apply(this, given) : null;
};
GPUAdapter.prototype.requestDevice = async function (...given) {
  const device = await requestDevice.apply(this, given);
  devices.push(device);
  ++state.opened;
  return device;
};

const channel = new BroadcastChannel('losing');
channel.onmessage = ({ data }) => {
  if (!data.settings) return;
  Object.assign(state, data.settings);
  channel.postMessage({ state });
};
