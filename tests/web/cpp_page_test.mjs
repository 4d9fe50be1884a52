// SPDX-License-Identifier: MIT
// Pages in C++: the project examples/projects/web_page, built as a user would against the library
// of build/web, and cpp_page.cc. `./dev web` builds the library.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';

import {launch, serve} from './browser.mjs';

const top = path.join(import.meta.dirname, '../..');
const tools = path.join(top, 'build/wasm-tools/usr/share/emscripten');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tensorgrad-cpp-page-'));
const built = path.join(folder, 'build');
let site, browser;

function run(command, ...args) {
  try {
    return execFileSync(command, args, {cwd: folder, encoding: 'utf8', stdio: 'pipe'});
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}${error.stderr}`);
  }
}

before(async () => {
  const library = path.join(top, 'build/web/libtensorgrad.a');
  assert.ok(fs.existsSync(library), `${library} is missing: ./dev web builds it`);
  const prefix = path.join(folder, 'prefix');
  run('cmake', '--install', path.join(top, 'build/web'), '--prefix', prefix);
  fs.cpSync(path.join(top, 'examples/projects/web_page'), folder, {recursive: true});
  fs.copyFileSync(path.join(import.meta.dirname, 'cpp_page.cc'), path.join(folder, 'test.cc'));
  fs.appendFileSync(path.join(folder, 'CMakeLists.txt'), `
    add_executable(test test.cc)
    target_link_libraries(test PRIVATE tensorgrad::tensorgrad)`);
  // -O1 links in a tenth of the time of -O2.
  run(path.join(tools, 'emcmake'), 'cmake', '-G', 'Ninja', '-B', built,
    `-DCMAKE_FIND_ROOT_PATH=${prefix}`, '-DCMAKE_CXX_FLAGS=-O1 -fwasm-exceptions');
  run('cmake', '--build', built);
  const html = fs.readFileSync(path.join(built, 'index.html'), 'utf8');
  fs.writeFileSync(path.join(built, 'test.html'), html.replace('app.js', 'test.js'));
  site = await serve(built);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await site?.close();
  fs.rmSync(folder, {recursive: true});
});

// Waits until the page has printed `text`, and returns all its lines.
const lines = async (page, text) => {
  await page.waitForFunction(
    (end) => document.getElementById('output').textContent.includes(end), text);
  return (await page.textContent('#output')).trim().split('\n');
};

for (const device of ['webgpu', 'cpu']) {
  test(`a page of one's own trains on ${device}`, async () => {
    const page = await browser.open(`${site.url}/index.html?device=${device}`);
    await page.evaluate(() => {
      globalThis.ticks = 0;
      setInterval(() => ++globalThis.ticks, 1);
    });
    const printed = await lines(page, 'classes of three points');
    const losses = printed.map((line) => /^epoch \d+: loss (.*)$/.exec(line))
      .filter((match) => match).map((match) => Number(match[1]));
    assert.equal(losses.length, 15, printed.join('\n'));
    assert.ok(losses.at(-1) < 0.5 * losses[0], `losses ${losses}`);
    assert.equal(printed.at(-1), 'classes of three points: 1 1 0');
    assert.match(printed[0], new RegExp(`^device: ${device}`));
    // A timer of the page fired between the epochs.
    assert.ok(await page.evaluate(() => globalThis.ticks) >= 15);
    assert.deepEqual(page.errors, []);
  });
}

test('calls of a page wait for those that are suspended', async () => {
  const page = await browser.open(`${site.url}/test.html?device=webgpu`);
  await lines(page, 'endless');
  await page.evaluate(() => globalThis.Module._stop());
  await lines(page, 'stopped\nendless');
  await page.evaluate(() => globalThis.Module._leave());
  const printed = await lines(page, 'end\n');
  assert.deepEqual(printed.map((line) => /^(error|  at|wait)/.exec(line)?.[0] ?? line), [
    'main: 3 steps', 'queued: 5 losses', 'main ends', 'error', '  at', 'endless', 'wait',
    'stopped', 'endless', 'left', 'end',
  ]);
  assert.match(printed[3], /run.*-1/);
  assert.match(printed[4], /test\.cc:\d+$/);
  assert.match(printed[6], /co_await/);
  assert.deepEqual(page.errors, []);
});
