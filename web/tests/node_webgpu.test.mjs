// SPDX-License-Identifier: MIT
// WebGPU in node, by the npm package `webgpu` (Dawn). It needs a node with JSPI, which is fetched
// from npm, and a Vulkan driver: SwiftShader, if Debian's Chromium is installed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'node:test';
import { library } from './support.mjs';

const pins = fileURLToPath(new URL('node', import.meta.url));
const folder = fileURLToPath(new URL('../../build/_deps/node_webgpu', import.meta.url));
const swiftshader = '/usr/lib/chromium/vk_swiftshader_icd.json';

function install() {
  const lock = 'package-lock.json';
  const same = () => readFileSync(`${pins}/${lock}`).equals(readFileSync(`${folder}/${lock}`));
  if (existsSync(`${folder}/node_modules/webgpu`) && same()) return;
  mkdirSync(folder, { recursive: true });
  for (const name of ['package.json', lock]) cpSync(`${pins}/${name}`, `${folder}/${name}`);
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'],
    { cwd: folder, stdio: 'pipe' });
}

test('trains on the GPU that the package webgpu finds', () => {
  install();
  cpSync(`${pins}/train.mjs`, `${folder}/train.mjs`);
  const node = 'Suspending' in WebAssembly ? process.execPath
    : `${folder}/node_modules/node-linux-${process.arch}/bin/node`;
  const drivers = existsSync(swiftshader) ? { VK_DRIVER_FILES: swiftshader } : {};
  const { supported, cpu, gpu } = JSON.parse(execFileSync(node, ['train.mjs', library], {
    cwd: folder, encoding: 'utf8', env: { ...process.env, ...drivers } }));
  assert.equal(supported, 'webgpu');
  assert.match(cpu.device, /^cpu/);
  assert.match(gpu.device, /^webgpu/);
  assert.ok(gpu.losses[49] < gpu.losses[0] / 50, `${gpu.losses[0]} ${gpu.losses[49]}`);
  gpu.losses.forEach((loss, i) =>
    assert.ok(Math.abs(loss - cpu.losses[i]) <= 1e-5 * cpu.losses[i] + 1e-7, `step ${i}: ${loss}`));
});
