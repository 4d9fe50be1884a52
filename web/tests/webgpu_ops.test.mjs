// SPDX-License-Identifier: MIT
// Every op and its gradients on WebGPU in Chromium, against the CPU, which golden.test.mjs compares
// with C++.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { built, launch, serve } from './page.mjs';

const program = process.env.TENSORGRAD_GOLDEN ??
  new URL('../../build/web/web/web_golden.js', import.meta.url).pathname;
const cases = JSON.parse(readFileSync(program.replace('web_golden.js', 'cases.json')));
const kAtOnce = 12;

let site, browser, page;
before(async () => {
  site = await serve({ '/': dirname(fileURLToPath(import.meta.url)), '/npm/': built });
  browser = await launch({ log: () => {} });
  page = await browser.open(`${site.url}/webgpu_ops.html`);
  await page.waitForFunction(() => globalThis.tg);
});
after(async () => {
  await browser?.close();
  await site?.close();
});

// Texts of numbers: those of f32 to rounding, all others to the bit.
const differ = (dtype, a, b) => a !== b &&
  (dtype !== 'f32' || !(Math.abs(a - b) <= 1e-6 + 1e-5 * Math.abs(b)));
let gradients = 0;

for (let first = 0; first < cases.length; first += kAtOnce) {
  const some = cases.slice(first, first + kAtOnce);
  test(`ops ${some.map((each) => each.label).join(', ')}`, async () => {
    const run = (kind) => page.call(([all, k]) => globalThis.compute(all, k), [some, kind]);
    const got = await run('webgpu'), want = await run('cpu');
    assert.match(got.device, /^webgpu/);
    assert.match(want.device, /^cpu/);
    const wrong = [];
    some.forEach(({ label }, k) => {
      assert.deepEqual(Object.keys(got.outputs[k]), Object.keys(want.outputs[k]));
      for (const [name, { dtype, data }] of Object.entries(want.outputs[k])) {
        gradients += name.startsWith('gradient');
        const ours = got.outputs[k][name];
        assert.deepEqual([ours.dtype, ours.data.length], [dtype, data.length]);
        if (ours.data.some((each, i) => differ(dtype, each, data[i])))
          wrong.push(`${label}, ${name}: ${ours.data}, not ${data}`);
      }
    });
    assert.deepEqual(wrong, []);
  });
}

test('their gradients were compared', () => assert.ok(gradients >= 250, `${gradients}`));
