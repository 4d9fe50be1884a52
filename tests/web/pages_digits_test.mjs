// SPDX-License-Identifier: MIT
// The page "Digits": training, drawing, another model, and checkpoints.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

const accuracy = async (page) => parseFloat(await page.value('accuracy'));

// Draws strokes on the pad with the mouse. Points are in units of its size.
async function draw(page, ...strokes) {
  await page.locator('#pad').scrollIntoViewIfNeeded();
  const {x, y, width, height} = await page.locator('#pad').boundingBox();
  for (const [first, ...others] of strokes) {
    await page.mouse.move(x + first[0] * width, y + first[1] * height);
    await page.mouse.down();
    for (const each of others) await page.mouse.move(x + each[0] * width, y + each[1] * height, {steps: 8});
    await page.mouse.up();
  }
}

test('a CNN learns, and reads a drawing', async () => {
  const page = await site.open('digits', 'model=cnn-4&rate=0.005&steps=100');
  await page.state('paused');
  assert.ok(await accuracy(page) < 40);
  await page.press('Start');
  await draw(page, [[0.52, 0.2], [0.5, 0.8]]);
  await page.state('done');
  await page.waitForFunction(() => parseFloat(document.querySelector('#accuracy').textContent) > 85);
  assert.ok(await page.value('loss') < 0.7, `${await page.value('loss')}`);
  await page.waitForFunction(() => document.querySelector('#guess').textContent === '1');
  assert.equal(await page.locator('#kernels canvas').count(), 8);
  await page.shot('digits');
  await page.press('Clear');
  await page.waitForFunction(() => document.querySelector('#guess').textContent === '–');
  await page.press('Example');
  await page.waitForFunction(() => /[0-9]/.test(document.querySelector('#guess').textContent));
  await page.check();
  await page.close();
});

test('the model changes while it trains, and runs are saved and resumed', async () => {
  const page = await site.open('digits', 'model=mlp-64&rate=0.003', phone);
  await page.state('paused');
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 60);
  await page.locator('[name=model]').selectOption('mlp-16');
  await page.waitForFunction(() => document.querySelectorAll('#kernels canvas').length === 16);
  await page.state('running');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 100);
  await page.press('Pause');
  await page.state('paused');
  const steps = await page.value('step');
  await page.press('Save');
  await page.getByText(`Saved at step ${steps}`).waitFor();
  await page.shot('digits_phone');
  await page.check();

  await page.reload();  // starts as mlp-64
  await page.state('paused');
  const untrained = await accuracy(page);
  await page.press('Resume');
  await page.waitForFunction((n) => Number(document.querySelector('output[name=step]').textContent) === n, steps);
  await page.waitForFunction((a) => parseFloat(document.querySelector('#accuracy').textContent) > a + 30, untrained);
  assert.equal(await page.locator('[name=model]').inputValue(), 'mlp-16');
  await page.close();
});

test('says that the storage is full', async () => {
  const page = await site.open('digits', 'model=mlp-64');
  await page.state('paused');
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Storage.overrideQuotaForOrigin', {origin: site.url, quotaSize: 1000});
  await page.press('Save');
  await page.getByRole('alert').getByText('storage of this browser is full').waitFor();
  await page.close();
});
