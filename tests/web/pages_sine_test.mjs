// SPDX-License-Identifier: MIT
// The page "Sine", and the features of all pages: start, pause, step, reset, settings, messages.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

test('learns the sine', async () => {
  const page = await site.open('sine', 'steps=300&batch=64&rate=0.01');
  await page.state('paused');
  const before = await page.value('error');
  assert.ok(before > 0.3, `${before}`);
  assert.match(await page.value('device'), /^CPU, \d+ threads?$/);
  await page.press('Start');
  await page.state('done');
  assert.equal(await page.value('step'), 300);
  assert.ok(await page.value('loss') < 0.02, `${await page.value('loss')}`);
  await page.waitForFunction(() => Number(document.querySelector('#error').textContent) < 0.1);
  assert.ok(await page.value('steps-per-second') > 0);
  assert.equal(await page.locator('progress').evaluate((each) => each.value), 1);
  await page.shot('sine');
  await page.check();
  await page.close();
});

test('pauses, steps and starts again from the same values', async () => {
  const page = await site.open('sine', 'batch=64');
  await page.state('paused');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  const first = await page.value('loss');
  await page.press('Start');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 20);
  await page.press('Pause');
  await page.state('paused');
  const steps = await page.value('step');
  await page.waitForTimeout(200);
  assert.equal(await page.value('step'), steps);
  await page.press('Reset');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '0');
  await page.press('Step');
  await page.waitForFunction(() => document.querySelector('output[name=step]').textContent === '1');
  assert.equal(await page.value('loss'), first);
  await page.close();
});

test('pauses while it is hidden, if that is chosen', async () => {
  const page = await site.open('sine', 'batch=64&width=16');
  await page.state('paused');
  const show = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', {value, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await page.press('Start');
  await page.state('running');
  await show(true);
  await page.state('running');
  await show(false);
  await page.getByLabel('Pause while hidden').check();
  await show(true);
  await page.state('paused');
  await show(false);
  await page.state('running');
  await page.press('Pause');
  await page.state('paused');
  await show(true);
  await show(false);
  assert.equal(await page.locator('#run[data-state=paused]').count(), 1);
  await page.check();
  await page.close();
});

test('settings apply while it trains, on a phone and with the keyboard', async () => {
  const page = await site.open('sine', 'batch=64', {...phone, colorScheme: 'dark'});
  await page.state('paused');
  await page.getByRole('button', {name: 'Start'}).focus();
  await page.keyboard.press('Enter');
  await page.state('running');
  await page.getByLabel('Learning rate').selectOption('0.01');
  await page.getByLabel('Activation').selectOption('tanh');
  await page.state('running');
  await page.getByLabel('Width').selectOption('16');
  await page.locator('[name=target]').selectOption('chirp');
  await page.waitForFunction(() => Number(document.querySelector('output[name=step]').textContent) > 50);
  await page.press('Pause');
  await page.state('paused');
  await page.shot('sine_phone');
  await page.check();
  await page.close();
});

test('says that it trains on the CPU', async () => {
  const page = await site.open('sine');
  await page.state('paused');
  assert.match(await page.getByRole('alert').textContent(), /WebGPU.* models train on the CPU/);
  await page.close();
});

test('trains on webgpu', async () => {
  const gpu = await openSite({webgpu: true});
  try {
    const page = await gpu.open('sine', 'device=webgpu&batch=64&width=16&rate=0.01&steps=30');
    await page.state('paused');
    assert.match(await page.value('device'), /swiftshader/i);
    assert.equal(await page.getByRole('alert').isVisible(), false);
    await page.press('Start');
    await page.state('done');
    assert.ok(await page.value('loss') < 0.3, `${await page.value('loss')}`);
    await page.check();
    const devtools = await gpu.browser.newBrowserCDPSession();
    await devtools.send('Browser.crashGpuProcess').catch(() => {});
    await page.press('Step');
    await page.getByRole('alert').getByText('GPU was lost and has come back. Repeated 30 steps').waitFor();
    assert.equal(await page.value('step'), 31);
  } finally {
    await gpu.close();
  }
});

test('lists the pages', async () => {
  const page = await site.open('index', '', phone);
  assert.equal(await page.getByRole('link', {name: /^Sine/}).getAttribute('href'), 'sine.html');
  await page.shot('index_phone');
  await page.check();
  await page.setViewportSize({width: 1280, height: 860});
  await page.shot('index');
  await page.close();
});
