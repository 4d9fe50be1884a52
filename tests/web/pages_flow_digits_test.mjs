// SPDX-License-Identifier: MIT
// The page "Digits from noise".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('learns the velocity, and makes images of noise', async () => {
  const page = await site.open('flow_digits', 'batch=8&rate=0.003&steps=16&euler=5', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  const first = await page.value('loss');
  const images = () => page.locator('#images canvas').first().evaluate((canvas) => canvas.toDataURL());
  const before = await images();
  await page.press('Start');
  await page.state('done');
  const last = await page.value('loss');
  assert.ok(first > 1.2 && last < 0.9 * first, `${first} ${last}`);
  await page.press('From new noise');
  await page.waitForFunction((old) => document.querySelector('#images canvas').toDataURL() !== old, before);
  assert.match(await page.value('ink'), /^\d+ %$/);
  await page.shot('flow_digits_phone');
  await page.check();
  await page.close();
});
