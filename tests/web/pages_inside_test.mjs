// SPDX-License-Identifier: MIT
// The page "Inside".
import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, before, test} from 'node:test';

import {models, openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

const profiled = (page) => page.waitForFunction(
  () => document.querySelector('main').ariaBusy === 'false' && document.querySelectorAll('#rows tr').length > 0);

test('shows the kernels of a model beside their lines', async () => {
  const page = await site.open('inside', 'model=kan');
  await profiled(page);
  const launches = await page.value('launches');
  assert.ok(launches > 5, `${launches}`);
  assert.equal(await page.locator('#rows tr').count(), launches);
  assert.equal(await page.locator('#timeline button').count(), launches);
  assert.match(await page.value('step'), /^[\d.]+ (µs|ms)$/);
  assert.match(await page.value('memory'), /KiB|MiB/);
  assert.match(await page.locator('#kernel').textContent(), /@compute/);
  // The line belongs to the model's TypeScript source.
  const line = await page.locator('#lines button').first().textContent();
  const [, number] = /^kan\.ts:(\d+)$/.exec(line) ?? assert.fail(line);
  const source = fs.readFileSync(new URL('../../web/pages/kan.ts', import.meta.url), 'utf8').split('\n');
  assert.equal((await page.locator('#source .here').textContent()).trim(),
    `${number}  ${source[number - 1]}`.trim());
  assert.match(source[number - 1], /splines|linear|abs|add|mul|sub|where|arange|compile/);
  const boxes = await page.locator('#map svg rect').count();
  assert.ok(boxes > launches, `${boxes}`);
  await page.shot('inside');
  await page.check();
  await page.close();
});

// Returns the names and shapes of the parameters, and the sum of their values.
const parameters = (page) => page.evaluate(async () => {
  const all = Object.entries(await globalThis.run.trainer.downloadParams());
  return all.map(([name, {shape, data}]) => `${name} ${shape} ${data.reduce((a, b) => a + b, 0)}`);
});

for (const [name, query] of Object.entries(models)) {
  test(`${name} opens its current model`, async () => {
    const page = await site.open(name, `device=cpu&${query}`);
    await page.state('paused');
    await page.press('Step');
    await page.waitForFunction(() => globalThis.run.steps > 0);
    await page.press('Start');
    await page.state('running');
    const [inside] = await Promise.all([page.waitForEvent('popup'), page.press('Look inside this model')]);
    inside.setDefaultTimeout(240_000);
    await page.state('paused');
    const steps = await page.value('step');
    await inside.waitForFunction(() => document.querySelector('main').ariaBusy === 'false');
    assert.equal(await inside.locator('#message').textContent(), '');
    await profiled(inside);
    assert.equal(await inside.locator('[name=model]').inputValue(), name);
    assert.equal(await inside.locator('#steps').textContent(), `${steps}`);
    assert.match(await inside.locator('#lines').textContent(), new RegExp(`^${name}\\.ts:\\d+`));
    assert.match(await inside.locator('#kernel').textContent(), /@compute/);
    assert.ok(await inside.locator('#map svg rect').count() > 5);
    const launches = await page.evaluate(async () => (await globalThis.run.trainer.report()).launches);
    assert.equal(await inside.locator('#rows tr').count(), launches);
    // Another two steps were run there.
    const shapes = (all) => all.map((each) => each.replace(/ \S+$/, ''));
    const [here, there] = [await parameters(page), await parameters(inside.frames()[1])];
    assert.deepEqual(shapes(there), shapes(here));
    assert.notDeepEqual(there, here);
    await inside.close();
    await page.close();
  });
}

test('shows each kernel of the launches that a GPU joins', async () => {
  const gpu = await openSite({webgpu: true});
  const page = await gpu.open('inside', 'model=kan&device=webgpu');
  await profiled(page);
  for (const row of await page.locator('#rows th').all()) {
    const name = await row.textContent();
    await row.click();
    await page.waitForFunction((wanted) => document.querySelector('#name').textContent.endsWith(` ${wanted}`), name);
    const kernels = (await page.locator('#kernel').textContent()).match(/^\/\/ \w+(?=: )/gm);
    assert.deepEqual(kernels.map((each) => each.slice(3)), name.split(' | '));
  }
  await page.close();
  await gpu.close();
});

test('selects launches, sorts them, saves the profile and opens other models', async () => {
  const page = await site.open('inside', 'model=sine', {...phone, colorScheme: 'dark'});
  await profiled(page);
  assert.equal(await page.locator('[name=model]').inputValue(), 'sine');
  const optimizer = page.locator('#rows button', {hasText: 'optimizer'});
  await optimizer.focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /optimizer/.test(document.querySelector('#name').textContent));
  assert.equal(await optimizer.getAttribute('aria-pressed'), 'true');
  await page.locator('#heads').getByRole('button', {name: 'bytes'}).click();
  const bytes = (await page.locator('#rows td:nth-child(5)').allTextContents()).map((text) => {
    const [value, unit] = text.split(' ');
    return Number(value) * {B: 1, KiB: 1024, MiB: 1048576}[unit];
  });
  assert.deepEqual(bytes, bytes.toSorted((a, b) => b - a));
  await page.getByText('The graph after each pass').click();
  await page.locator('[name=graph]').selectOption({label: '99 plan'});
  assert.ok((await page.locator('#graph').textContent()).length > 100);
  const [file] = await Promise.all([page.waitForEvent('download'), page.press('Save the trace')]);
  assert.ok(JSON.parse(fs.readFileSync(await file.path(), 'utf8')));
  await page.locator('[name=model]').selectOption('cartpole');
  await page.waitForFunction(() => document.querySelector('main').ariaBusy === 'true');
  await profiled(page);
  await page.waitForFunction(() => /cartpole\.ts/.test(document.querySelector('#lines').textContent));
  const [wide, shown] = await page.evaluate(() => {
    const {scrollWidth, clientWidth} = document.querySelector('table').parentElement;
    return [scrollWidth, clientWidth];
  });
  assert.ok(wide <= shown, `the table is ${wide} px wide in ${shown}`);
  await page.shot('inside_phone');
  await page.check();
  await page.close();
});
