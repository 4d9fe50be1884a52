// SPDX-License-Identifier: MIT
// What the tests of the pages share: the built pages in a browser, at the size of a desk or a phone.
// The pages are in build/pages; they are built from build/npm if they are missing.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {launch, serve} from './browser.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const built = path.join(root, 'build/pages');
const pictures = path.join(built, 'screenshots');
export const phone = {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true};
export const desk = {viewport: {width: 1280, height: 860}};

/**
 * Serves the pages and starts a browser. `open('sine', 'steps=50')` returns a page of Playwright
 * with some more methods.
 */
export async function openSite({webgpu = false} = {}) {
  if (!fs.existsSync(path.join(built, 'index.html'))) {
    if (!fs.existsSync(path.join(root, 'web/node_modules/uplot')))
      execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], {cwd: path.join(root, 'web')});
    execFileSync(process.execPath, [path.join(root, 'web/pages/build.mjs')], {stdio: 'inherit'});
  }
  fs.mkdirSync(pictures, {recursive: true});
  const browser = await launch({webgpu, log: () => {}, timeout: 60_000});
  const site = await serve(built, {isolated: true});
  const open = async (name, query = '', options = desk) => {
    const page = await browser.open(`${site.url}/${name}.html?${query}`, options);
    return Object.assign(page, {
      /** Waits until the panel is in a state: 'paused', 'running', 'done'. */
      state: (state) => page.waitForSelector(`#run[data-state=${state}]`),
      /** Presses a button by its text. */
      press: (text) => page.getByRole('button', {name: text, exact: true}).click(),
      /** Number or text that the page shows. */
      value: async (output) => {
        const text = await page.locator(`output[name="${output}"], #${output}`).first().textContent();
        return Number.isFinite(Number(text)) ? Number(text) : text;
      },
      /** Keeps a picture of the whole page in build/pages/screenshots. */
      shot: (file) => page.screenshot({path: path.join(pictures, `${file}.png`), fullPage: true}),
      /** Fails if something is wider than the screen, or the page had errors. */
      async check() {
        assert.deepEqual([...page.errors, ...page.messages], []);
        const [wide, screen] = await page.evaluate(
          () => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `the page is ${wide} px wide on a screen of ${screen}`);
      },
    });
  };
  return {open, url: site.url, async close() {
    await browser.close();
    await site.close();
  }};
}
