// SPDX-License-Identifier: MIT
// The helpers of browser tests: they serve files, WebGPU computes, and failures are reported.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {setTimeout as sleep} from 'node:timers/promises';
import {fileURLToPath} from 'node:url';

import {launch, serve, within} from './browser.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tensorgrad-web-'));
const lines = [];
let site, browser;

before(async () => {
  fs.writeFileSync(path.join(folder, 'index.html'), '<!DOCTYPE html><title>page</title>');
  fs.writeFileSync(path.join(folder, 'data.json'), '{"answer": 42}');
  site = await serve({'/': folder, '/web/': here}, {isolated: true});
  browser = await launch({log: line => lines.push(line)});
});
after(async () => {
  await browser?.close();
  await site?.close();
  fs.rmSync(folder, {recursive: true});
});

test('serves files of every root and nothing else', async () => {
  const status = async name => (await fetch(site.url + name)).status;
  assert.equal(await status('/'), 200);
  assert.equal(await status('/web/browser.mjs'), 200);
  assert.equal(await status('/missing'), 404);
  assert.equal(await status('/data.json/inside'), 404);
  assert.equal(await status('/..%2f..%2fetc/passwd'), 404);
  assert.deepEqual(await (await fetch(site.url + '/data.json')).json(), {answer: 42});
  assert.deepEqual(site.requests.at(-1), {path: '/data.json', bytes: 14, status: 200});
});

test('webgpu computes in an isolated page', async () => {
  const page = await browser.open(site.url);
  const result = await page.call(async factor => {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const usage = GPUBufferUsage;
    const data = device.createBuffer({size: 16, usage: usage.STORAGE | usage.COPY_SRC});
    const back = device.createBuffer({size: 16, usage: usage.COPY_DST | usage.MAP_READ});
    const module = device.createShaderModule({code: `
      @group(0) @binding(0) var<storage, read_write> data: array<u32>;
      @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
        data[i] = i * ${factor}u;
      }`});
    const pipeline = device.createComputePipeline({layout: 'auto', compute: {module}});
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0), entries: [{binding: 0, resource: {buffer: data}}],
    }));
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(data, 0, back, 0, 16);
    device.queue.submit([encoder.finish()]);
    await back.mapAsync(GPUMapMode.READ);
    return {isolated: crossOriginIsolated, values: [...new Uint32Array(back.getMappedRange())]};
  }, 7);
  assert.deepEqual(result, {isolated: true, values: [0, 7, 14, 21]});
  await page.close();
});

test('forwards the console and what is not caught', async () => {
  const page = await browser.open(site.url);
  await page.call(() => {
    console.log('hello', 1);
    setTimeout(() => { throw new Error('thrown later'); });
  });
  for (let i = 0; i < 500 && page.errors.length === 0; ++i) await sleep(10);
  assert.equal(page.messages[0], 'hello 1');
  assert.ok(lines.includes('  page: hello 1'));
  assert.match(page.errors[0].message, /thrown later/);
  await page.close();
});

test('errors carry the last messages of the page', async () => {
  const page = await browser.open(site.url);
  await assert.rejects(page.call(() => {
    console.log('before it failed');
    throw new Error('failed');
  }), /failed[^]*page: before it failed/);
  await page.close();
});

test('a limit names what was awaited', async () => {
  await assert.rejects(within(new Promise(() => {}), 20, 'forever'),
    /forever: no result after 0.02 s/);
  const quick = await launch({timeout: 1500, log: () => {}});
  const page = await quick.open(site.url);
  await assert.rejects(page.call(() => new Promise(() => {})), /127.0.0.1.*no result after 1.5 s/);
  await quick.close();
});

test('without webgpu there is no adapter', async () => {
  const plain = await launch({webgpu: false, log: () => {}});
  const page = await plain.open(site.url);
  assert.equal(await page.call(async () => await navigator.gpu?.requestAdapter() ?? null), null);
  await plain.close();
});

test('says where it looked for a browser', async () => {
  process.env.CHROMIUM = '/nowhere/chromium';
  await assert.rejects(launch(), /no Chromium: \/nowhere\/chromium not found; install/);
  delete process.env.CHROMIUM;
});
