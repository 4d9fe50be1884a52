// SPDX-License-Identifier: MIT
// The page "Addition": trains a small transformer, computes typed sums, selects attention heads.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

const small = 'layers=1&width=32&batch=32&rate=0.01';
const stepsAbove = (page, n) => page.waitForFunction(
  (at) => Number(document.querySelector('output[name=step]').textContent) > at, n);

test('the loss falls, sums that were held out are right, and a typed sum is answered', async () => {
  const page = await site.open('addition', 'steps=450');
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  const first = await page.value('loss');
  assert.ok(first > 2.2 && first < 2.8, `${first}`);
  await page.press('Start');
  await page.getByLabel('First number').fill('46');
  await page.getByLabel('Second number').fill('39');
  await page.state('done');
  const loss = await page.value('loss');
  assert.ok(loss < 0.4, `${loss}`);
  await page.waitForFunction(() => parseFloat(document.querySelector('#accuracy').textContent) > 50);
  const answer = await page.value('answer');
  assert.match(await page.value('verdict'), answer === 85 ? /^Right\. / : /^Wrong: it is 85\. /);
  await page.getByLabel('First number').fill('x');
  await page.getByText('Type two numbers').waitFor();
  await page.getByLabel('First number').fill('7');
  await page.getByText(/Right|it is 46/).waitFor();
  await page.shot('addition');
  await page.check();
  await page.close();
});

test('shows the attention of each head', async () => {
  const page = await site.open('addition', small.replace('layers=1', 'layers=2'), phone);
  await page.state('paused');
  const heads = page.getByRole('button', {name: /^Layer/});
  assert.equal(await heads.count(), 8);
  const picture = () => page.locator('#large').evaluate((each) => each.toDataURL());
  await page.press('Start');
  await stepsAbove(page, 20);
  await page.press('Pause');
  await page.state('paused');
  const before = await picture();
  await page.getByRole('button', {name: 'Layer 2, head 3'}).click();
  assert.equal(await page.getByRole('button', {name: 'Layer 2, head 3'}).getAttribute('aria-pressed'), 'true');
  assert.notEqual(await picture(), before);
  await page.shot('addition_phone');
  await page.check();
  await page.press('Reset');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '0');
  await page.close();
});
