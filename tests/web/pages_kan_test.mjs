// SPDX-License-Identifier: MIT
// The page "Curves on edges".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('fits the sine of the sample', async () => {
  const page = await site.open('kan', 'steps=300&speed=full');
  await page.state('paused');
  assert.ok(await page.value('worst') > 0.3);
  await page.press('Start');
  await page.state('done');
  assert.ok(await page.value('loss') < 1e-3, `${await page.value('loss')}`);
  await page.waitForFunction(() => Number(document.querySelector('#worst').textContent) < 0.15);
  await page.shot('kan');
  await page.check();
  await page.close();
});

test('draws one step a frame, and a function of two inputs', async () => {
  const page = await site.open('kan', 'target=product&hidden=5&rate=0.02', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  const pixels = () => page.locator('#network').evaluate((canvas) => canvas.toDataURL());
  const before = await pixels();
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=loss]').textContent) < 0.01 &&
                                   Number(document.querySelector('#worst').textContent) < 0.5);
  await page.press('Pause');
  await page.state('paused');
  assert.notEqual(await pixels(), before);
  await page.shot('kan_phone');
  await page.getByLabel('Hidden nodes').selectOption('2');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '0');
  await page.state('paused');
  await page.check();
  await page.close();
});
