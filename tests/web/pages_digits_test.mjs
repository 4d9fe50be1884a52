// SPDX-License-Identifier: MIT
// The page "Digits": training, drawing with mouse, finger and pen, another model, and checkpoints.
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

// Draws strokes with a finger.
async function touch(page, ...strokes) {
  const devtools = await page.context().newCDPSession(page);
  const {x, y, width, height} = await page.locator('#pad').boundingBox();
  const send = (type, ...points) => devtools.send('Input.dispatchTouchEvent',
    {type, touchPoints: points.map(([u, v], id) => ({x: x + u * width, y: y + v * height, id}))});
  for (const [first, ...others] of strokes) {
    await send('touchStart', first);
    let last = first;
    for (const each of others) {
      for (let i = 1; i <= 8; ++i)
        await send('touchMove', last.map((from, axis) => from + i / 8 * (each[axis] - from)));
      last = each;
    }
    await send('touchEnd');
  }
  return send;
}

// Returns the width and height of the ink on the pad, in units of its size.
const inkSize = (page) => page.locator('#pad').evaluate((pad) => {
  const copy = new OffscreenCanvas(pad.width, pad.height).getContext('2d', {willReadFrequently: true});
  copy.drawImage(pad, 0, 0);
  const {data} = copy.getImageData(0, 0, pad.width, pad.height);
  const xs = [], ys = [];
  for (let i = 3; i < data.length; i += 4) {
    if (data[i] < 128) continue;
    xs.push((i >> 2) % pad.width);
    ys.push(Math.floor((i >> 2) / pad.width));
  }
  const range = (all) => all.reduce((a, b) => Math.max(a, b), 0) - all.reduce((a, b) => Math.min(a, b), pad.width);
  return [range(xs) / pad.width, range(ys) / pad.height];
});

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

test('a finger and a pen draw on a phone, and the page does not scroll', async () => {
  const page = await site.open('digits', 'model=cnn-4&rate=0.005&steps=100', phone);
  await page.state('paused');
  await page.press('Start');
  await page.state('done');
  await page.locator('#pad').scrollIntoViewIfNeeded();
  const scrolled = () => page.evaluate(() => document.scrollingElement.scrollTop);
  const before = await scrolled();
  const send = await touch(page, [[0.5, 0.9], [0.52, 0.1]]);  // upwards, as one scrolls
  await page.waitForFunction(() => document.querySelector('#guess').textContent === '1');
  const [width, height] = await inkSize(page);
  assert.ok(width < 0.2 && height > 0.75, `${width} x ${height}`);
  assert.equal(await scrolled(), before);
  await page.shot('digits_touch_phone');

  // A second finger does not draw.
  await send('touchStart', [0.5, 0.5], [0.1, 0.5]);
  await send('touchMove', [0.5, 0.4], [0.1, 0.9]);
  await send('touchEnd');
  assert.deepEqual(await inkSize(page), [width, height]);
  assert.equal(await scrolled(), before);

  await page.getByRole('button', {name: 'Clear'}).tap();
  await page.waitForFunction(() => document.querySelector('#guess').textContent === '–');
  await page.locator('#pad').scrollIntoViewIfNeeded();
  const box = await page.locator('#pad').boundingBox();
  const devtools = await page.context().newCDPSession(page);
  const pen = (type, u, v) => devtools.send('Input.dispatchMouseEvent', {
    type, x: box.x + u * box.width, y: box.y + v * box.height, button: 'left',
    buttons: type === 'mouseReleased' ? 0 : 1, pointerType: 'pen'});
  await pen('mousePressed', 0.2, 0.5);
  for (let u = 0.3; u < 0.85; u += 0.1) await pen('mouseMoved', u, 0.5);
  await pen('mouseReleased', 0.8, 0.5);
  for (let i = 0; i < 100 && (await inkSize(page))[0] < 0.55; ++i) await page.waitForTimeout(50);
  assert.ok((await inkSize(page))[0] > 0.55, `${await inkSize(page)}`);

  // The same finger scrolls the page elsewhere.
  const guess = page.getByText('It reads your digit as');
  await guess.scrollIntoViewIfNeeded();
  const start = await scrolled(), {x, y} = await guess.boundingBox();
  const swipe = (type, ...points) => devtools.send('Input.dispatchTouchEvent',
    {type, touchPoints: points.map((dy) => ({x: x + 20, y: y + dy}))});
  await swipe('touchStart', 5);
  for (let i = 1; i <= 10; ++i) await swipe('touchMove', 5 - 20 * i);
  await swipe('touchEnd');
  await page.waitForFunction((top) => document.scrollingElement.scrollTop > top + 50, start);
  await page.check();
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
