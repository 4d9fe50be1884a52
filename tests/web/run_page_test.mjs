// SPDX-License-Identifier: MIT
// The live page of `tg train --ui` and `tg lm train --ui` in a browser: curves, tables and buttons, on
// a desktop and on a phone, and what it says if the run ends.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';

import {launch, within} from './browser.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const build = process.env.TENSORGRAD_BUILD ?? path.join(here, '../../build/release');
const pictures = path.join(here, '../../build/pages/screenshots');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tensorgrad-ui-'));
const desk = {viewport: {width: 1280, height: 860}};
const phone = {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true, colorScheme: 'dark'};
const started = [];
let browser;

// Writes IDX images of 14x14 pixels: rings, crosses and bars of random sizes and places, with noise.
function writeImages(to) {
  fs.mkdirSync(to);
  let seed = 1;
  const below = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const idx = (shape, bytes) => {
    const head = Buffer.alloc(4 + 4 * shape.length);
    head.set([0, 0, 8, shape.length]);
    shape.forEach((size, i) => head.writeUInt32BE(size, 4 + 4 * i));
    return Buffer.concat([head, Buffer.from(bytes)]);
  };
  for (const [name, count] of [['train', 600], ['t10k', 120]]) {
    const pixels = [], labels = [];
    for (let i = 0; i < count; ++i) {
      const kind = below(3), x = 5 + below(4), y = 5 + below(4), r = 3 + below(2);
      labels.push(kind);
      for (let v = 0; v < 14; ++v) {
        for (let u = 0; u < 14; ++u) {
          const dx = u - x, dy = v - y, far = Math.hypot(dx, dy);
          const on = [Math.abs(far - r) < 0.8, (dx === 0 || dy === 0) && far <= r,
            Math.abs(dx) <= 1 && Math.abs(dy) <= r][kind];
          pixels.push((on ? 150 : 0) + below(100));
        }
      }
    }
    fs.writeFileSync(path.join(to, `${name}-images-idx3-ubyte`), idx([count, 14, 14], pixels));
    fs.writeFileSync(path.join(to, `${name}-labels-idx1-ubyte`), idx([count], labels));
  }
}

// Starts tg with --ui. Resolves when it has printed the address.
async function start(...words) {
  const process = spawn(path.join(build, 'tg'), [...words, '--device', 'cpu', '--ui'], {cwd: folder});
  started.push(process);
  const run = {process, out: '', ended: new Promise((resolve) => process.on('close', resolve))};
  run.url = await within(new Promise((resolve, reject) => {
    for (const stream of [process.stdout, process.stderr]) {
      stream.on('data', (bytes) => {
        run.out += bytes;
        const found = run.out.match(/http:\/\/127\.0\.0\.1:\S+/);
        if (found) resolve(found[0]);
      });
    }
    run.ended.then((code) => reject(new Error(`tg ended with ${code}: ${run.out}`)));
  }), 120_000, 'tg');
  return run;
}

async function open(run, options) {
  const page = await browser.open(run.url, options);
  return Object.assign(page, {
    state: (state) => page.waitForFunction(
      (wanted) => document.querySelector('#state').textContent === wanted, state),
    press: (name) => page.getByRole('button', {name, exact: true}).click(),
    tile: (name) => page.locator('#tiles div', {has: page.getByText(name, {exact: true})}).locator('dd').textContent(),
    points: (name) => page.locator(`#${name}-plot`).evaluate((each) => Number(each.dataset.points)),
    shot: (name) => page.screenshot({path: path.join(pictures, `${name}.png`), fullPage: true}),
    async check() {
      assert.deepEqual([...page.errors, ...page.messages], []);
      const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= screen, `the page is ${wide} px wide on a screen of ${screen}`);
    },
  });
}
const stepOf = async (page) => Number((await page.tile('Step')).replace(/ of.*|,/g, ''));

before(async () => {
  fs.mkdirSync(pictures, {recursive: true});
  writeImages(path.join(folder, 'shapes'));
  // Also a prompt that a page must not take for HTML.
  const text = 'the cat <img src=x onerror=alert(1)> sat on the mat and saw a dog; '.repeat(120);
  fs.writeFileSync(path.join(folder, 'text.txt'), text);
  browser = await launch({webgpu: false, log: () => {}});
});
after(async () => {
  for (const each of started) each.kill('SIGKILL');
  await browser?.close();
  fs.rmSync(folder, {recursive: true});
});

test('shows, pauses, saves, times and stops a classifier', async () => {
  const run = await start('train', '--data', 'shapes', '--out', 'runs/shapes', '--epochs', '1000000',
    '--hidden', '64,32', '--batch', '60', '--lr', '0.0003');
  const page = await open(run, desk);
  await page.state('training').catch(() => page.state('testing'));
  await page.waitForFunction(() => document.querySelector('#accuracy-plot').dataset.points > 10);
  assert.equal(await page.getByRole('heading', {level: 1}).textContent(), 'runs/shapes');
  assert.match(await page.tile('Test accuracy'), /^\d+\.\d\d %/);
  assert.match(await page.locator('#about').textContent(), /cpu .*196-64-32-3.*600 images for training/);
  assert.ok(await page.points('loss') > 100);
  await page.waitForFunction(() => document.querySelector('#rate-plot').dataset.points > 3);

  await page.press('Pause');
  await page.state('paused');
  const step = await stepOf(page);
  await page.press('Save');
  await page.waitForFunction((wanted) => document.querySelector('#tiles').textContent.includes(wanted),
    `Savedstep ${step.toLocaleString('en')}`);
  assert.equal(await stepOf(page), step);
  await page.press('Resume');
  await page.waitForFunction((before) => Number(document.querySelector('#tiles dd').firstChild.textContent
    .replaceAll(',', '')) > before, step);

  await page.press('Time them');
  await page.getByRole('cell', {name: /matmul/}).first().waitFor();
  await page.locator('#predictions figure.right canvas').first().waitFor();
  assert.equal(await page.locator('#predictions figure').count(), 40);
  assert.match(await page.locator('#predictions figcaption').first().textContent(), /^[012] \d+\u00a0%/);
  // The pixels are those of the file.
  const shown = await page.locator('#predictions canvas').first().evaluate((canvas) => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, 14, 14);
    return Array.from({length: 196}, (_, i) => data[4 * i]);
  });
  const file = fs.readFileSync(path.join(folder, 'shapes/t10k-images-idx3-ubyte'));
  assert.deepEqual(shown, [...file.subarray(16, 16 + 196)]);

  // A page that is loaded again has the whole history.
  await page.press('Pause');
  await page.state('paused');
  const points = await page.points('loss');
  await page.reload();
  await page.state('paused');
  assert.equal(await page.points('loss'), points);
  const tick = page.locator('#loss-plot text').first();
  const linear = await tick.textContent();
  await page.getByLabel('logarithmic').check();
  assert.notEqual(await tick.textContent(), linear);
  await page.getByLabel('logarithmic').uncheck();
  const box = await page.locator('#loss-plot').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await page.locator('#loss-readout').textContent(), /^training \S+ +test \S+ +at step [\d,]+$/);
  await page.shot('run_page');

  await page.press('Stop');
  await page.press('Cancel');
  await page.state('paused');
  await page.press('Stop');
  await page.press('Stop the run');
  await page.state('stopped');
  assert.equal(await run.ended, 130);
  const message = await page.getByRole('alert').textContent();
  assert.match(message, /^Stopped: stopped after step \d+ of .*resume with: tg train --resume runs\/shapes$/);
  assert.ok(run.out.includes(message.replace('Stopped: ', '')));
  assert.equal(await page.getByRole('button', {name: 'Stop'}).isDisabled(), true);
  await page.check();
  await page.close();
});

test('shows a language model to its end, on a phone', async () => {
  const run = await start('lm', 'train', 'text.txt', '--out', 'runs/cats', '--arch', 'gpt', '--layers', '1',
    '--width', '32', '--heads', '2', '--length', '32', '--batch', '8', '--steps', '1200', '--eval-every', '100',
    '--prompt', '<img src=x onerror=alert(1)>', '--sample-tokens', '60');
  const page = await open(run, phone);
  await page.state('done');
  assert.equal(await run.ended, 0);
  assert.match(await page.getByRole('alert').textContent(), /^Complete: best validation loss 0\.\d+ at step \d+/);
  assert.equal(await stepOf(page), 1200);
  assert.equal(await page.locator('#samples article').count(), 12);
  assert.match(await page.locator('#samples p').first().textContent(), /^<img src=x onerror=alert\(1\)>./);
  assert.equal(await page.locator('#samples img').count(), 0);
  assert.match(await page.tile('Validation loss'), /^0\.\d+/);
  await page.shot('run_page_phone');
  await page.check();
  await page.close();
});

test('says that the process is gone', async () => {
  const run = await start('train', '--data', 'shapes', '--out', 'runs/killed', '--epochs', '1000000');
  const page = await open(run, desk);
  await page.waitForFunction(() => document.querySelector('#loss-plot').dataset.points > 10);
  run.process.kill('SIGKILL');
  await page.state('lost');
  assert.match(await page.getByRole('alert').textContent(), /^tg does not answer any more/);
  assert.equal(await page.getByRole('button', {name: 'Pause'}).isDisabled(), true);
  assert.deepEqual(page.errors, []);
  await page.close();
});

test('refuses an address without its token', async () => {
  const run = await start('train', '--data', 'shapes', '--out', 'runs/private', '--epochs', '1000000');
  await assert.rejects(browser.open(run.url.replace(/token=.*/, 'token=0')), /403/);
  // Another site can neither read the state nor press a button.
  const site = await browser.open(run.url.replace('127.0.0.1', 'localhost'));
  const other = await site.evaluate(async (url) => {
    try {
      const response = await fetch(url.replace('/?', '/stop?'), {method: 'POST'});
      return response.status;
    } catch (error) {
      return error.name;
    }
  }, run.url);
  assert.equal(other, 'TypeError');
  assert.equal(run.process.exitCode, null);
  run.process.kill('SIGINT');
  assert.equal(await run.ended, 130);
  await site.close();
});
