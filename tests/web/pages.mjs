// SPDX-License-Identifier: MIT
// Helpers for the tests of the pages: the built pages in a browser, at the size of a desktop or a
// phone. The pages are in build/pages; they are built from build/npm if they are missing or
// outdated.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {builtSamples} from '../../web/pages/samples.mjs';
import {launch, serve} from './browser.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const built = path.join(root, 'build/pages');
const pictures = path.join(built, 'screenshots');
export const phone = {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true};
export const desk = {viewport: {width: 1280, height: 860}};

/** The pages that train, with settings that make them fast. */
export const models = {
  addition: 'width=32&batch=32',
  cartpole: 'speed=full&rate=0.05',
  digits: 'model=mlp-16',
  flow: 'width=32&euler=1',
  flow_digits: 'batch=4&euler=1',
  kan: 'target=paper&hidden=2&speed=full',
  picture: 'side=32&width=32&waves=2&picture=text',
  sine: 'width=16&batch=32',
  text: 'width=32&layers=1&batch=4',
  tictactoe: 'rate=0.005',
};

// Runs `work` while no other process does, for tests that run concurrently. A folder is the lock;
// one that is older than five minutes is left over.
function exclusively(lock, work) {
  for (;;) {
    try {
      fs.mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const made = fs.statSync(lock, {throwIfNoEntry: false})?.mtimeMs ?? Date.now();
      if (Date.now() - made > 300_000) fs.rmSync(lock, {recursive: true, force: true});
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
  try {
    work();
  } finally {
    fs.rmSync(lock, {recursive: true, force: true});
  }
}

// Builds the pages unless they are newer than the package and their sources.
function build() {
  const time = (file) => fs.statSync(file, {throwIfNoEntry: false})?.mtimeMs ?? 0;
  const web = path.join(root, 'web');
  const library = path.join(root, 'build/npm/dist/tensorgrad.js');
  if (!time(library)) throw new Error('no package in build/npm; build it with ./dev npm');
  const sources = fs.readdirSync(path.join(web, 'pages')).map((each) => path.join(web, 'pages', each));
  const newest = Math.max(...[library, ...sources, ...builtSamples()].map(time));
  if (time(path.join(built, 'index.html')) > newest) return;
  if (!fs.existsSync(path.join(web, 'node_modules/uplot')))
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], {cwd: web});
  const fresh = fs.mkdtempSync(`${built}-`);
  execFileSync(process.execPath, [path.join(web, 'pages/build.mjs'), fresh], {stdio: 'inherit'});
  fs.mkdirSync(built, {recursive: true});
  for (const each of fs.readdirSync(fresh)) {
    fs.rmSync(path.join(built, each), {recursive: true, force: true});
    fs.renameSync(path.join(fresh, each), path.join(built, each));
  }
  fs.rmSync(fresh, {recursive: true});
}

/**
 * Serves the pages and starts a browser. `open('sine', 'steps=50')` returns a Playwright page with
 * additional methods. Without `steps`, a run continues until it is paused.
 */
export async function openSite({webgpu = false} = {}) {
  fs.mkdirSync(path.dirname(built), {recursive: true});
  exclusively(`${built}.lock`, build);
  fs.mkdirSync(pictures, {recursive: true});
  const browser = await launch({webgpu, log: () => {}, timeout: 240_000});
  const site = await serve(built, {isolated: true});
  const open = async (name, query = '', options = desk) => {
    const settings = new URLSearchParams(query);
    if (!settings.has('steps')) settings.set('steps', '1000000');
    const page = await browser.open(`${site.url}/${name}.html?${settings}`, options);
    return Object.assign(page, {
      /**
       * Waits until the panel is in a state: 'paused', 'running' or 'done'. Fails at once if it is in
       * another final state. A short run may be done before the test sees it running.
       */
      async state(state) {
        const lasting = ['done', 'failed', state].map((each) => `#run[data-state=${each}]`).join();
        const panel = await page.waitForSelector(lasting);
        assert.equal(await panel.getAttribute('data-state'), state);
      },
      /** Presses a button by its text. */
      press: (text) => page.getByRole('button', {name: text, exact: true}).click(),
      /** Opens a checkpoint as the button "Open…" does. */
      openFile: (file) => page.setInputFiles('input[name=checkpoint]', file),
      /** Returns the number or text that the page shows. */
      value: async (output) => {
        const text = await page.locator(`output[name="${output}"], #${output}`).first().textContent();
        return Number.isFinite(Number(text)) ? Number(text) : text;
      },
      /** Saves a screenshot of the whole page in build/pages/screenshots. */
      shot: (file) => page.screenshot({path: path.join(pictures, `${file}.png`), fullPage: true}),
      /** Fails if the page is wider than the screen or had errors. */
      async check() {
        // Chromium's message if a page requests a GPU and there is none.
        const messages = page.messages.filter((each) => each !== 'No available adapters.');
        assert.deepEqual([...page.errors, ...messages], []);
        const [wide, screen] = await page.evaluate(
          () => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `the page is ${wide} px wide on a screen of ${screen}`);
      },
    });
  };
  return {open, url: site.url, browser: browser.browser, async close() {
    await browser.close();
    await site.close();
  }};
}
