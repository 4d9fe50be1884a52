// SPDX-License-Identifier: MIT
// Several trainers in a page, pages that train at once, and pages that are hidden.
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { built, launch, serve } from './page.mjs';

let site, browser;
before(async () => {
  site = await serve({ '/': dirname(fileURLToPath(import.meta.url)), '/npm/': built });
  browser = await launch({ log: () => {} });
});
after(async () => {
  await browser?.close();
  await site?.close();
});

async function open() {
  const page = await browser.open(`${site.url}/tabs.html`);
  await page.waitForFunction(() => globalThis.tg);
  return page;
}

test('trainers share a device, and pages train at once: to the same bits', async () => {
  const pages = [await open(), await open()];
  const [one, two] = await Promise.all(pages.map((page) => page.call(async () => {
    let opened = 0;
    const { requestDevice } = GPUAdapter.prototype;
    GPUAdapter.prototype.requestDevice = function (...given) {
      ++opened;
      return requestDevice.apply(this, given);
    };
    const first = await made({ engine: 'thread' });
    const second = await made({ engine: 'thread', device: first.sameDevice() });
    const predict = await tg.compileFunction({
      engine: 'thread', device: first.sameDevice(), model: new tg.Linear(3, 1),
      forward: (net, { x }) => net.forward(x), inputs: { x: [4, 3] } });
    const both = await Promise.all([losses(first, 20), losses(second, 20)]);
    const single = await losses(await made({ engine: 'worker' }), 20);
    await predict.call({ x: batch(0).x });
    return { both, single, opened, device: second.device };
  })));
  assert.equal(one.opened, 1);
  assert.match(one.device, /webgpu .*shared/);
  for (const each of [...one.both, ...two.both, two.single]) assert.deepEqual(each, one.single);
  await Promise.all(pages.map((page) => page.close()));
});

test('a device is shared within an engine', async () => {
  const page = await open();
  const message = await page.call(async () => {
    const first = await made({ engine: 'thread' });
    return made({ engine: 'worker', device: first.sameDevice() })
      .then(() => 'no error', (error) => error.message);
  });
  assert.match(message, /device: opened: the program belongs to another engine, 'thread'/);
  await page.close();
});

test('trainers pause while the page is hidden, if they are to', async () => {
  const page = await open();
  const result = await page.call(async () => {
    const device = { kind: 'cpu' };
    const pausing = await made({ device, whenHidden: 'pause' }), other = await made({ device });
    await losses(pausing, 2);
    show('hidden');
    const inputs = batch(2);
    let done = 0;
    const paused = [pausing.step(inputs), pausing.step(batch(3))].map(async (step) => {
      const result = await step;
      ++done;
      return result;
    });
    inputs.x.fill(7);  // has been copied
    const going = await losses(other, 4);
    const { steps } = await pausing.counters();
    const saved = (await pausing.save()).length;
    const before = done;
    show('visible');
    const results = await Promise.all(paused);
    show('hidden');
    const held = pausing.tryStep(batch(4));
    pausing.abort();
    const { status } = await held;
    show('visible');
    const { loss: next } = await pausing.step(batch(4));
    return { going, steps, saved, before, results, status, next, want: await losses(other, 1),
      all: await losses(await made({ device }), 5) };
  });
  assert.equal(result.steps, 2);
  assert.ok(result.saved > 0);
  assert.equal(result.before, 0);
  assert.deepEqual(result.results.map(({ loss }) => loss), result.all.slice(2, 4));
  assert.deepEqual(result.results.map(({ step }) => step), [3, 4]);
  assert.deepEqual(result.going, result.all.slice(0, 4));
  assert.equal(result.status, 'aborted');
  assert.equal(result.next, result.all[4]);
  await page.close();
});

test('an unknown choice is refused', async () => {
  const page = await open();
  assert.match(await page.call(() => made({ whenHidden: 'stop' }).catch((error) => error.message)),
               /whenHidden: expected 'continue' or 'pause', got 'stop'/);
  await page.close();
});
