// SPDX-License-Identifier: MIT
// The page "Samples in C++": programs of examples/, built by ./dev web.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {builtSamples} from '../../web/pages/samples.mjs';
import {openSite, phone} from './pages.mjs';

let site;
before(async () => {
  assert.ok(builtSamples().length > 0, 'no samples in build/web/examples: ./dev web builds them');
  site = await openSite({webgpu: true});
});
after(() => site?.close());

const stateIs = (page, state) => page.waitForFunction(
  (text) => document.querySelector('[name=state]').textContent === text, state);
const lines = async (page) => (await page.locator('#output').textContent()).trim().split('\n');

for (const [device, options] of [['webgpu', {}], ['cpu', phone]]) {
  test(`fits a sine on ${device} as natively, and shows its picture`, async () => {
    const page = await site.open('samples', `sample=mlp_sin&device=${device}`, options);
    await stateIs(page, 'ready');
    assert.match(await page.locator('#about').textContent(), /^Fits y = sin\(x\)/);
    await page.press('Run');
    await stateIs(page, 'done');  // the status of main(): the result is as expected
    const printed = await lines(page);
    assert.match(printed[0], new RegExp(`^${device}`));
    assert.match(printed.at(-1), /^result: mean squared error \S+ \(at most 0.005 expected\)$/);
    const picture = page.getByAltText('mlp_sin.svg');
    assert.ok(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)) > 100);
    await page.shot(`samples_${device}`);
    await page.check();
    await page.close();
  });
}

test('loads the data of a sample, and stops it', async () => {
  const page = await site.open('samples', 'sample=makemore&device=cpu');
  await stateIs(page, 'ready');
  await page.press('Run');
  await page.waitForFunction(() => /loss/.test(document.getElementById('output').textContent));
  assert.match((await lines(page))[0], /^loading \/data\/names\//);
  await page.press('Stop');
  await stateIs(page, 'stopped');
  const count = (await lines(page)).length;
  await page.waitForTimeout(1500);
  assert.equal((await lines(page)).length, count);
  assert.ok(await page.getByRole('button', {name: 'Run', exact: true}).isEnabled());
  await page.check();
  await page.close();
});

test('says what is missing', async () => {
  const page = await site.open('samples');
  await page.route('**/samples.json', (route) => route.fulfill({json: []}));
  await page.reload();
  await stateIs(page, 'failed');
  assert.match(await page.locator('#message').textContent(), /No samples are built/);
  await page.unroute('**/samples.json');
  await page.route('**/mlp_sin.js', (route) => route.fulfill({status: 404}));
  await page.goto(`${site.url}/samples.html?sample=mlp_sin`);
  await stateIs(page, 'ready');
  await page.press('Run');
  await stateIs(page, 'failed');
  assert.match(await page.locator('#message').textContent(), /mlp_sin/);
  await page.close();
});
