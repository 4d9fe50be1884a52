// SPDX-License-Identifier: MIT
// Memory of a page does not grow with the number of steps: that of JavaScript and of WebAssembly, and
// the objects of WebGPU.
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { built, launch, serve } from './page.mjs';

const steps = Number(process.env.TENSORGRAD_FLAT_MEMORY_STEPS ?? 200);
const objects = ['GPUAdapter', 'GPUBindGroup', 'GPUBuffer', 'GPUCommandBuffer', 'GPUCommandEncoder',
  'GPUComputePassEncoder', 'GPUComputePipeline', 'GPUDevice', 'GPUShaderModule'];

test(`memory is the same after ${steps} steps`, async () => {
  const site = await serve({ '/': dirname(fileURLToPath(import.meta.url)), '/npm/': built });
  const browser = await launch({ log: () => {}, timeout: 120_000 + 200 * steps });
  try {
    const page = await browser.open(`${site.url}/tabs.html`);
    await page.waitForFunction(() => globalThis.tg);
    const protocol = await page.context().newCDPSession(page);
    // All living objects of a class.
    const living = async (name) => {
      const { result } = await protocol.send('Runtime.evaluate', { expression: `${name}.prototype` });
      return (await protocol.send('Runtime.queryObjects', { prototypeObjectId: result.objectId })).objects;
    };
    const measure = async () => {
      await protocol.send('HeapProfiler.collectGarbage');
      const counts = {};
      for (const name of objects) {
        const all = await living(name);
        counts[name] = Number(/\((\d+)\)/.exec(all.description)[1]);
      }
      const { result } = await protocol.send('Runtime.callFunctionOn', {
        objectId: (await living('WebAssembly.Memory')).objectId, returnByValue: true,
        functionDeclaration: 'function () { return this.map((m) => m.buffer.byteLength); }' });
      await protocol.send('Runtime.releaseObjectGroup', { objectGroup: '' }).catch(() => {});
      await protocol.send('HeapProfiler.collectGarbage');
      const { usedSize } = await protocol.send('Runtime.getHeapUsage');
      return { counts, wasm: result.value, usedSize };
    };
    await page.call(() => begin());
    await page.call(() => stepAll(60));
    const before = await measure();
    await page.call((count) => stepAll(count), steps);
    const after = await measure();
    assert.ok(before.counts.GPUBuffer > 4 && before.counts.GPUDevice === 1, JSON.stringify(before));
    assert.deepEqual(after.counts, before.counts);
    assert.ok(before.wasm.length > 0);
    assert.deepEqual(after.wasm, before.wasm);
    const grown = after.usedSize - before.usedSize;
    console.log(`JavaScript grew by ${grown} bytes; ${JSON.stringify(after)}`);
    assert.ok(grown < 100_000, `JavaScript grew by ${grown} bytes`);
  } finally {
    await browser.close();
    await site.close();
  }
});
