// SPDX-License-Identifier: MIT
// The page "Flow matching".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('moves noise into a spiral', async () => {
  const page = await site.open('flow', 'steps=300&width=32&rate=0.01&euler=10');
  await page.state('paused');
  await page.waitForFunction(() => Number(document.querySelector('#distance').textContent) > 0);
  const before = await page.value('distance');
  await page.press('Start');
  await page.state('done');
  await page.waitForFunction(() => Number(document.querySelector('#distance').textContent) < 0.17);
  assert.ok(before > 0.3, `${before}`);
  assert.ok(await page.value('loss') < 1.5, `${await page.value('loss')}`);
  await page.getByLabel('Time from noise to shape').fill('1');
  assert.equal(await page.getByRole('button', {name: 'Play'}).count(), 1);
  await page.shot('flow');
  await page.check();
  await page.close();
});

test('learns a shape that the user draws', async () => {
  const page = await site.open('flow', 'width=32&rate=0.01&euler=10', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  const box = await page.locator('#plane').boundingBox();
  await page.mouse.move(box.x + 0.3 * box.width, box.y + 0.3 * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.7 * box.width, box.y + 0.3 * box.height, {steps: 20});
  await page.mouse.up();
  assert.equal(await page.locator('[name=shape]').inputValue(), 'own');
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 120);
  await page.press('Pause');
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => Number(document.querySelector('#distance').textContent) < 0.3);
  await page.shot('flow_phone');
  await page.check();
  await page.close();
});
