// SPDX-License-Identifier: MIT
// The page "Cart and pole".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('learns to balance', async () => {
  const page = await site.open('cartpole', 'speed=full&steps=13&rate=0.05');
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  const first = await page.value('length');
  assert.ok(first > 10 && first < 40, `${first}`);
  await page.press('Start');
  await page.state('done');
  const recent = await page.value('recent');
  assert.ok(recent > 1.5 * first, `${first} ${recent}`);
  await page.shot('cartpole');
  await page.check();
  await page.close();
});

test('the carts can be pushed over', async () => {
  const page = await site.open('cartpole', '', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('#time').textContent) > 2);
  for (let i = 0; i < 8; ++i) await page.getByRole('button', {name: 'Push →'}).click();
  await page.waitForFunction(() => Number(document.querySelector('#standing').textContent) < 16);
  await page.shot('cartpole_phone');
  await page.press('Pause');
  await page.state('paused');
  const steps = await page.value('step');
  await page.press('Reset');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '0');
  assert.ok(steps >= 1);
  await page.check();
  await page.close();
});
