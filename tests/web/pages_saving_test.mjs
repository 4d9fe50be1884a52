// SPDX-License-Identifier: MIT
// Pages save a run, in the browser or as a file, and continue it after a reload, bit for bit. They
// report if the storage is full, and if a run or file is truncated, damaged or from elsewhere.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, before, test} from 'node:test';

import {models, openSite, phone} from './pages.mjs';

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

const atStep = async (page, n) => {
  await page.waitForFunction((at) => globalThis.run.steps === at, n);
  await page.state('paused');
};
const files = {};  // that the pages download

for (const [name, query] of Object.entries(models)) {
  test(`${name} continues after a reload, and from a file`, async () => {
    const page = await site.open(name, `device=cpu&${query}`);
    await page.state('paused');
    assert.ok(await page.getByRole('button', {name: 'Resume'}).isDisabled());
    await losses(page);
    const steps = await page.call(() => globalThis.run.steps);
    const [file] = await Promise.all([page.waitForEvent('download'), page.press('Download')]);
    assert.equal(file.suggestedFilename(), `${name}.safetensors`);
    files[name] = fs.readFileSync(await file.path());
    await page.press('Save');
    await message(page, `Saved at step ${steps}`);
    await page.check();
    const want = await losses(page);
    await page.goto(page.url().replace(/\?.*/, '?device=cpu&seed=9'));  // with the settings of the page
    await page.state('paused');
    await page.press('Resume');
    await atStep(page, steps);
    assert.deepEqual(await losses(page), want);
    await page.reload();
    await page.state('paused');
    await page.openFile({name: 'run.safetensors', mimeType: '', buffer: files[name]});
    await atStep(page, steps);
    assert.deepEqual(await losses(page), want);
    await page.check();
    await page.close();
  });
}

test('refuses files that are truncated, damaged or from elsewhere', async () => {
  const page = await site.open('sine', `device=cpu&${models.sine}`, phone);
  await page.state('paused');
  await losses(page);
  const given = (name, buffer) => page.openFile({name, mimeType: '', buffer});
  const whole = files.sine, header = 8 + Number(whole.readBigUInt64LE());
  const other = 'is not a checkpoint of tensorgrad, or it is truncated or damaged:';
  for (const [file, buffer, text] of [
    ['cat.png', Buffer.from('not a model'), `cat.png ${other} header length`],
    ['empty', Buffer.alloc(0), `empty ${other} truncated at byte 0: expected an 8-byte header length.`],
    ['a.safetensors', whole.subarray(0, 100),
      `a.safetensors ${other} header length ${header - 8} at byte 0: the file has only 92 more bytes.`],
    ['b.safetensors', whole.subarray(0, header + 64), `b.safetensors ${other} `],
    ['kan.safetensors', files.kan, 'kan.safetensors is a checkpoint of the page Curves on edges. Open it there.'],
    ['text.safetensors', files.text, 'text.safetensors is a checkpoint of the page Text. Open it there.'],
    ['weights.safetensors', Buffer.from(await page.call(async () => [...await globalThis.run.trainer.saveWeights()])),
      'weights.safetensors has weights only.'],
  ]) {
    await given(file, buffer);
    await page.locator('#message.error').getByText(text).waitFor();
    await page.state('paused');
    assert.equal(await page.value('step'), 3);  // nothing has changed
  }
  await page.shot('sine_refuses_phone');
  const damaged = Buffer.from(whole);
  damaged[whole.length - 9] ^= 4;
  await given('damaged.safetensors', damaged);
  await page.locator('#message.error').getByText('the file is damaged').waitFor();
  await page.state('paused');
  await page.check();
  await page.close();
});

test('opens a checkpoint of another program, also while it trains', async () => {
  const page = await site.open('sine', `device=cpu&${models.sine}`);
  await page.state('paused');
  await losses(page);
  const plain = await page.call(async () => [...await globalThis.run.trainer.save()]);
  const want = await page.call(async () => [...(await globalThis.run.trainer.downloadParams())['in.weight'].data]);
  await page.press('Start');
  await page.waitForFunction(() => globalThis.run.steps > 20);
  await page.press('Pause');
  await page.state('paused');
  const given = () => page.openFile({name: 'plain.safetensors', mimeType: '', buffer: Buffer.from(plain)});
  await given();
  await atStep(page, 3);
  assert.deepEqual(await page.call(async () =>
    [...(await globalThis.run.trainer.downloadParams())['in.weight'].data]), want);
  await page.press('Start');
  await page.waitForFunction(() => globalThis.run.steps > 200);
  await given();
  await page.waitForFunction(() => globalThis.run.steps < 200);
  await page.state('running');
  await page.locator('[name=width]').selectOption('4');
  await page.waitForSelector('#run[data-models="2"][data-state=running]');
  await page.press('Pause');
  await page.state('paused');
  await given();
  await page.locator('#message.error').getByText(/in\.weight|shape/).waitFor();
  await page.check();
  await page.close();
});

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

  // Truncates the file: in the tensors, then in the header.
  for (const part of [0.9, 0.01]) {
    await page.call(async (keep) => {
      const folder = await navigator.storage.getDirectory();
      const file = await folder.getFileHandle('sine.safetensors');
      const stream = await file.createWritable({keepExistingData: true});
      await stream.truncate(Math.floor((await file.getFile()).size * keep));
      await stream.close();
    }, part);
    await page.press('Resume');
    await message(page, 'The saved run is not a checkpoint of tensorgrad, or it is truncated or damaged');
    await page.state('paused');
    assert.equal(await page.value('step'), 0);
  }
  await page.close();
});
