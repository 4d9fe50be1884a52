// SPDX-License-Identifier: MIT
// checkSupport(), with stand-ins for what a browser has.
import assert from 'node:assert/strict';
import test from 'node:test';
import { tg } from './support.mjs';

// Calls checkSupport() with properties of the global objects replaced.
async function support({ gpu, jspi = true, secure, validate }, options) {
  const replaced = [];
  const put = (object, name, value) => {
    replaced.push([object, name, Object.getOwnPropertyDescriptor(object, name)]);
    if (value === undefined) delete object[name];
    else Object.defineProperty(object, name, { value, configurable: true, writable: true });
  };
  put(globalThis, 'navigator', { gpu });
  put(globalThis, 'isSecureContext', secure);
  put(WebAssembly, 'Suspending', jspi ? Function : undefined);
  if (validate) put(WebAssembly, 'validate', validate);
  try {
    return await tg.checkSupport(options);
  } finally {
    for (const [object, name, before] of replaced.reverse()) {
      delete object[name];
      if (before) Object.defineProperty(object, name, before);
    }
  }
}

const never = new Promise(() => {});
const device = (lost = false) => ({
  lost: lost ? Promise.resolve({ reason: 'unknown' }) : never, destroy() { this.destroyed = true; },
  queue: { onSubmittedWorkDone: () => (lost ? never : Promise.resolve()) },
});
const adapter = (info, requestDevice = async () => device()) =>
  ({ requestAdapter: async () => ({ info, requestDevice }) });
const real = { vendor: 'acme', architecture: 'fast-1', device: '', description: '' };

const cases = {
  'a GPU': [{ gpu: adapter(real) }, 'webgpu', 'ok', /^Models train on the GPU/],
  'no WebGPU': [{}, 'cpu', 'no-webgpu', /no WebGPU/],
  'no secure context': [{ secure: false }, 'cpu', 'insecure', /https or localhost/],
  'no JSPI': [{ gpu: adapter(real), jspi: false }, 'cpu', 'no-jspi', /JSPI/],
  'no adapter': [{ gpu: { requestAdapter: async () => null } }, 'cpu', 'no-adapter', /No GPU/],
  'an adapter that fails': [
    { gpu: { requestAdapter: async () => { throw new Error('blocked'); } } },
    'cpu', 'no-adapter', /No GPU/],
  'a fallback adapter': [
    { gpu: adapter({ ...real, isFallbackAdapter: true }) }, 'cpu', 'software-adapter', /in software/],
  'SwiftShader': [
    { gpu: adapter({ vendor: 'google', architecture: 'swiftshader' }) }, 'cpu', 'software-adapter',
    /in software/],
  'a lost device': [{ gpu: adapter(real, async () => device(true)) }, 'cpu', 'device-lost', /lost/],
  'no device': [
    { gpu: adapter(real, async () => { throw new Error('no memory'); }) },
    'cpu', 'device-lost', /lost/],
  'no SIMD': [
    { gpu: adapter(real), validate: (code) => !code.includes(253) }, null, 'too-old', /too old/],
  'no exceptions': [
    { gpu: adapter(real), validate: (code) => code.includes(253) }, null, 'too-old', /too old/],
};
for (const [name, [given, kind, reason, message]] of Object.entries(cases)) {
  test(name, async () => {
    const found = await support(given);
    assert.equal(found.device, kind);
    assert.equal(found.reason, reason);
    assert.match(found.message, message);
  });
}

test('the adapter is named, its device is returned, and software may be allowed', async () => {
  const opened = device();
  assert.equal((await support({ gpu: adapter(real, async () => opened) })).adapter, 'acme fast-1');
  assert.equal(opened.destroyed, true);
  const software = { gpu: adapter({ vendor: 'google', architecture: 'swiftshader' }) };
  assert.equal((await support(software, { allowSoftware: true })).device, 'webgpu');
});

test('the GPU is not asked if the CPU is wanted', async () => {
  const gpu = { requestAdapter: () => assert.fail('asked') };
  const found = await support({ gpu }, { kind: 'cpu' });
  assert.deepEqual([found.device, found.reason], ['cpu', 'ok']);
});

test('what node has is validated for real', async () => {
  const { device: kind, reason } = await tg.checkSupport();
  const expected = globalThis.navigator?.gpu ? ['webgpu', 'ok'] : ['cpu', 'no-webgpu'];
  assert.deepEqual([kind, reason], expected);
});
