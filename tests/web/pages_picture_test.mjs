// SPDX-License-Identifier: MIT
// The page "Picture".
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('learns the picture of the sample', async () => {
  const page = await site.open('picture', 'picture=text&rate=0.003&steps=100');
  await page.state('paused');
  await page.waitForFunction(() => Number(document.querySelector('#quality').textContent) > 0);
  const before = await page.value('quality');
  await page.press('Start');
  await page.state('done');
  assert.ok(await page.value('loss') < 0.02, `${await page.value('loss')}`);
  await page.waitForFunction(() => Number(document.querySelector('#quality').textContent) > 16);
  assert.ok(before < 15, `${before}`);
  await page.shot('picture');
  const [file] = await Promise.all([page.waitForEvent('download'), page.press('Save the result')]);
  assert.equal(file.suggestedFilename(), 'picture.png');
  await page.check();
  await page.close();
});

test('learns a picture of the user, and refuses other files', async () => {
  const page = await site.open('picture', 'side=32&zoom=3&rate=0.01', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  const own = await page.locator('header').screenshot();
  const shown = () => page.locator('#target').evaluate((canvas) => canvas.toDataURL());
  const before = await shown();
  await page.setInputFiles('#file', {name: 'own.png', mimeType: 'image/png', buffer: own});
  await page.waitForFunction(() => document.querySelector('[name=picture]').value === 'own');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '5');
  assert.notEqual(await shown(), before);
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 60);
  await page.press('Pause');
  await page.state('paused');
  assert.ok(await page.value('loss') < 0.05, `${await page.value('loss')}`);
  await page.shot('picture_phone');
  await page.setInputFiles('#file', {name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no picture')});
  await page.getByRole('alert').filter({hasText: 'notes.txt is not a picture'}).waitFor();
  await page.check();
  await page.close();
});
