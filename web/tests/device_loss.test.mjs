// SPDX-License-Identifier: MIT
// A page, or its worker, loses its GPU in the middle of anything: the trainer continues bit for bit,
// or says that it cannot and saves its snapshot.
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

// A page whose trainers run in `engine`.
async function open(engine) {
  const page = await browser.open(`${site.url}/device_loss.html`);
  await page.waitForFunction(() => globalThis.tg);
  await page.call(async (name) => {
    globalThis.engine = name;
    if (name === 'thread') await import('./losing.js');
    else globalThis.tg.assets.worker = new URL('losing_worker.js', location.href).href;
  }, engine);
  return page;
}

for (const engine of ['worker', 'thread']) {
  test(`a loss before any call changes no bit, in a ${engine}`, async () => {
    const page = await open(engine);
    const want = await page.call(() => globalThis.outcome(0));
    assert.equal(want.recoveries.length, 0);
    assert.equal(want.opened, 1);
    let recovered = 0;
    for (let at = 4; at <= want.calls; at += Math.ceil(want.calls / 7)) {
      const got = await page.call((call) => globalThis.outcome(call), at);
      assert.deepEqual(got.losses, want.losses, `before call ${at} of ${want.calls}`);
      assert.deepEqual(got.bytes, want.bytes, `before call ${at} of ${want.calls}`);
      assert.deepEqual(got.told, got.recoveries);
      assert.equal(got.opened, 2);
      for (const { reason, snapshotStep, repeatedSteps, seconds } of got.recoveries) {
        assert.match(reason, /^webgpu: the device .* was lost: /);
        assert.ok(repeatedSteps <= 3 && snapshotStep % 3 === 0 && seconds > 0);
      }
      recovered += got.recoveries.length;
    }
    assert.ok(recovered > 2, `${recovered} recoveries`);
    await page.close();
  });

  test(`without a device the snapshot can be saved, in a ${engine}`, async () => {
    const page = await open(engine);
    const { name, message, again, waited, saved, steps, losses, next } =
      await page.call(() => globalThis.stranded());
    assert.equal(name, 'DeviceLostError');
    assert.match(message, /did not come back within 0\.3 s: webgpu: no adapter found; save\(\) writes the snapshot of step 3/);
    assert.match(again, /it has not come back: webgpu: no adapter found; save/);
    assert.ok(waited >= 300 && waited < 3000, `${waited} ms`);
    assert.ok(saved > 100);
    assert.equal(steps, 3);
    assert.deepEqual(losses, [next]);  // of the device that came back and of the loaded snapshot
    await page.close();
  });

  test(`the GPU process may crash, in a ${engine}`, async () => {
    const page = await open(engine);
    await page.call(() => globalThis.begin());
    const session = await browser.browser.newBrowserCDPSession();
    const trained = page.call(() => globalThis.untilLost());
    await session.send('Browser.crashGpuProcess').catch(() => {});
    const { losses, want, recoveries } = await trained;
    assert.deepEqual(losses, want);
    assert.equal(recoveries.length, 1, JSON.stringify(recoveries));
    await page.close();
  });
}
