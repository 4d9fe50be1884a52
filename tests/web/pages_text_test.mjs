// SPDX-License-Identifier: MIT
// The page "Text": learns a text, writes samples, saves and resumes, and downloads a model file.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

const small = 'width=32&layers=1&batch=4&rate=0.01&temperature=0';
const rhyme = 'she sells sea shells by the sea shore. '.repeat(8);
const atStep = (page, n) => page.waitForFunction(
  (at) => Number(document.querySelector('output[name=step]').textContent) === at, n);
const newest = (page) => page.locator('#samples li').first().textContent();

// Replaces the text and waits for the new model. 'building' may be over before a test sees it.
async function enter(page, text) {
  const models = () => page.locator('#run').getAttribute('data-models').then(Number);
  const before = await models();
  await page.getByLabel('Your text').fill(text);
  await page.getByLabel('Your text').blur();
  await page.waitForSelector(`#run[data-models="${before + 1}"][data-state=paused]`);
}

test('a Mamba learns a text, and resumes after a reload', async () => {
  const page = await site.open('text', `${small}&steps=120`);
  await page.state('paused');
  await enter(page, rhyme);
  assert.match(await page.value('about'), /^312 characters, 12 of them different/);
  const before = await newest(page);
  await page.getByRole('button', {name: 'Start'}).click();
  await page.state('done');
  const loss = await page.value('loss');
  assert.ok(loss < 0.4, `${loss}`);
  await page.getByLabel('Beginning').fill('she sells ');
  await page.press('Write');
  await page.waitForFunction(() => /sea shells by/.test(document.querySelector('#samples li').textContent));
  assert.notEqual(await newest(page), before);
  await page.shot('text');

  const downloading = page.waitForEvent('download');
  await page.press('Download the model');
  const file = await downloading;
  assert.equal(file.suggestedFilename(), 'model.safetensors');
  const bytes = fs.readFileSync(await file.path());
  const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))));
  assert.ok(Object.keys(header).length > 5, Object.keys(header).join(' '));

  await page.press('Save');
  await page.getByText('Saved at step 120').waitFor();
  await page.reload();
  await page.state('paused');
  await page.press('Resume');
  await atStep(page, 120);
  assert.equal(await page.getByLabel('Your text').inputValue(), rhyme);
  await page.press('Step');
  await atStep(page, 121);
  assert.ok(await page.value('loss') < 0.5, `${await page.value('loss')}`);
  await page.check();
  await page.close();
});

test('a GPT trains on a phone, and wrong input is explained', async () => {
  const page = await site.open('text', `${small}&model=gpt`, {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 60);
  await page.waitForFunction(() => document.querySelectorAll('#samples li').length >= 2);
  await page.press('Pause');
  await page.state('paused');
  assert.ok(await page.value('loss') < 3.2);
  await page.shot('text_phone');
  await page.getByLabel('Your text').fill('too short');
  await page.getByLabel('Your text').blur();
  await page.getByText('The text has 9 characters; at least 128 are needed.').waitFor();
  await enter(page, rhyme);
  assert.ok(await page.locator('#message').evaluate((each) => each.className !== 'error'));
  await page.getByLabel('Beginning').fill('sea 7');
  await page.press('Write');
  await page.getByText('does not have all characters').waitFor();
  await page.check();
  await page.close();
});
