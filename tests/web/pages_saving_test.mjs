// SPDX-License-Identifier: MIT
// Pages save a run in the browser and continue it after a reload, bit for bit. They report if the
// storage is full, if nothing is saved, or if the saved run is corrupt.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {openSite, phone} from './pages.mjs';

const models = {
  addition: 'width=32&batch=32',
  cartpole: 'speed=full&rate=0.05',
  flow: 'width=32&euler=1',
  flow_digits: 'batch=4&euler=1',
  kan: 'target=paper&hidden=2&speed=full',
  picture: 'side=32&width=32&waves=2&picture=text',
  sine: 'width=16&batch=32',
  tictactoe: 'rate=0.005',
};

let site;
before(async () => { site = await openSite(); });
after(() => site?.close());

// Returns the losses of a few steps.
const losses = (page) => page.call(async () => {
  const {run} = globalThis, all = [];
  for (let i = 0; i < 3; ++i) {
    const loss = await run.spec.step(run.trainer);
    all.push(...(typeof loss === 'number' ? [loss] : loss));
    run.add(loss);
  }
  return all;
});
const message = (page, text) => page.getByRole('alert').getByText(text).waitFor();

for (const [name, query] of Object.entries(models)) {
  test(`${name} continues after a reload`, async () => {
    let page = await site.open(name, `device=cpu&${query}`);
    await page.state('paused');
    assert.ok(await page.getByRole('button', {name: 'Resume'}).isDisabled());
    await losses(page);
    const steps = await page.call(() => globalThis.run.steps);
    await page.press('Save');
    await message(page, `Saved at step ${steps}`);
    await page.check();
    const want = await losses(page);
    await page.goto(page.url().replace(/\?.*/, '?device=cpu&seed=9'));  // with the settings of the page
    await page.state('paused');
    await page.press('Resume');
    await page.waitForFunction((n) => globalThis.run.steps === n, steps);
    await page.state('paused');
    assert.deepEqual(await losses(page), want);
    await page.check();
    await page.close();
  });
}

// These have their own buttons to save, and their files can be used elsewhere.
for (const [name, query] of Object.entries({digits: 'model=mlp-16', text: 'width=32&layers=1&batch=4'})) {
  test(`${name} continues with the same data after a reload`, async () => {
    const page = await site.open(name, `device=cpu&${query}`);
    await page.state('paused');
    await losses(page);
    await page.press('Save');
    await page.getByText('Saved at step 3').waitFor();
    const want = await losses(page);
    await page.reload();
    await page.state('paused');
    await page.press('Resume');
    await page.waitForFunction(() => globalThis.run.steps === 3);
    await page.state('paused');
    assert.deepEqual(await losses(page), want);
    await page.check();
    await page.close();
  });
}

test('says that the storage is full, or that a run is damaged', async () => {
  const page = await site.open('sine', 'device=cpu&width=16&batch=32', phone);
  await page.state('paused');
  const devtools = await page.context().newCDPSession(page);
  const origin = new URL(page.url()).origin;
  await devtools.send('Storage.overrideQuotaForOrigin', {origin, quotaSize: 1000});
  await page.press('Save');
  await message(page, 'storage of this browser is full');
  await devtools.send('Storage.overrideQuotaForOrigin', {origin});
  await page.press('Save');
  await message(page, 'Saved at step 0');
  await page.shot('sine_saved_phone');
  await page.check();

  // Truncates the file: in the checkpoint, then in the text before it.
  for (const [part, text] of [[0.9, /safetensors|truncated|bytes/], [0.001, 'The saved run is damaged.']]) {
    await page.call(async (keep) => {
      const folder = await navigator.storage.getDirectory();
      const file = await folder.getFileHandle('sine.run');
      const stream = await file.createWritable({keepExistingData: true});
      await stream.truncate(Math.ceil((await file.getFile()).size * keep));
      await stream.close();
    }, part);
    await page.press('Resume');
    await page.locator('#message.error').getByText(text).waitFor();
    await page.state('paused');
    assert.equal(await page.value('step'), 0);
  }
  await page.close();
});
