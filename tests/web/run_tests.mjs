// SPDX-License-Identifier: MIT
// Runs a test program built for the web (build/web/tests/NAME_tests.js) in a page of headless
// Chromium, and prints its output:
//
//   node tests/web/run_tests.mjs [--worker] PROGRAM.js [ARGUMENT...]
import path from 'node:path';
import process from 'node:process';

import {launch, serve} from './browser.mjs';

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const given = process.argv.slice(2);
const inWorker = given[0] === '--worker';
if (inWorker) given.shift();
const [program, ...options] = given;
if (!program) {
  console.error('usage: node tests/web/run_tests.mjs [--worker] PROGRAM.js [ARGUMENT...]');
  process.exit(2);
}

const site = await serve({'/': here, '/program/': path.dirname(path.resolve(program))});
const browser = await launch({
  timeout: Number(process.env.TENSORGRAD_WEB_TIMEOUT ?? 1800) * 1000,
  log: (line) => console.log(line.replace(/^ {2}page: /, '')),
});
let status = 1;
try {
  const page = await browser.open(`${site.url}/run_tests.html`);
  status = await page.call(({url, options, inWorker}) => globalThis.runTests(url, options, inWorker),
    {url: `/program/${path.basename(program)}`, options, inWorker});
} catch (error) {
  console.error(String(error.message ?? error));
} finally {
  await browser.close();
  await site.close();
}
process.exit(status);
