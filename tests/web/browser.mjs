// SPDX-License-Identifier: MIT
// Headless Chromium with WebGPU for tests: a static file server, and pages whose console is
// forwarded to the terminal.
//
//   const site = await serve({'/': 'tests/web', '/models/': folder}, {isolated: true});
//   const browser = await launch({args: ['--enable-features=X']});
//   const page = await browser.open(`${site.url}/page.html`);  // a Playwright page
//   console.log(await page.call(async name => (await import(name)).answer(), './answer.mjs'));
//   await browser.close();
//   await site.close();
//
// Playwright is a package of package.json, which CMake installs into build/_deps/web;
// TENSORGRAD_WEB_PACKAGES names another folder. CHROMIUM names another browser.
import fs from 'node:fs';
import http from 'node:http';
import {createRequire} from 'node:module';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const packages = process.env.TENSORGRAD_WEB_PACKAGES ?? path.join(here, '../../build/_deps/web');

const types = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.mjs': 'text/javascript',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};

const browsers = [
  '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome',
];

// Uses SwiftShader, because test machines have no GPU.
const flags = [
  '--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--disable-quic',
  '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
];

/** Resolves like `promise`, but throws an error that names `what` after `milliseconds`. */
export async function within(promise, milliseconds, what) {
  let timer;
  const late = new Promise((_, reject) => {
    const error = new Error(`${what}: no result after ${milliseconds / 1000} s`);
    timer = setTimeout(() => reject(error), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Serves files on `port` of localhost (0: a free port). `roots` is a folder, or maps path prefixes
 * ('/', '/models/') to folders; the longest matching prefix is used.
 *
 * `isolated` sends the headers that make pages cross-origin isolated, which threads need.
 * Returns `{url, requests, close}`. `requests` lists all responses as {path, bytes, status}, except
 * for a missing favicon.
 */
export async function serve(roots, {isolated = false, port = 0} = {}) {
  if (typeof roots === 'string') roots = {'/': roots};
  const prefixes = Object.keys(roots).sort((a, b) => b.length - a.length);
  const requests = [];
  const headers = isolated ? {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  } : {};
  const find = where => {
    const prefix = prefixes.find(each => where.startsWith(each));
    if (prefix === undefined) return undefined;
    const root = path.resolve(roots[prefix]);
    const file = path.join(root, where.slice(prefix.length));
    const inside = file === root || file.startsWith(root + path.sep);
    if (!inside || !fs.existsSync(file)) return undefined;
    if (!fs.statSync(file).isDirectory()) return file;
    const index = path.join(file, 'index.html');
    return fs.existsSync(index) ? index : undefined;
  };
  const server = http.createServer((request, response) => {
    const where = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const file = find(where);
    const body = file ? fs.readFileSync(file) : `no file ${where}\n`;
    const status = file ? 200 : where === '/favicon.ico' ? 204 : 404;
    if (status !== 204) requests.push({path: where, bytes: body.length, status});
    response.writeHead(status, {
      'content-type': types[file ? path.extname(file) : '.txt'] ?? 'application/octet-stream',
      'cache-control': 'no-store',
      ...headers,
    });
    response.end(body);
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    close: () => new Promise(resolve => {
      server.close(resolve);
      server.closeAllConnections();
    }),
  };
}

function executable() {
  const asked = process.env.CHROMIUM;
  const found = (asked ? [asked] : browsers).find(each => fs.existsSync(each));
  if (found) return found;
  throw new Error(`no Chromium: ${asked ?? browsers.join(', ')} not found; ` +
    'install the package chromium (./dev setup), or name a browser in CHROMIUM');
}

function playwright() {
  try {
    return createRequire(path.join(path.resolve(packages), 'package.json'))('playwright-core');
  } catch (error) {
    throw new Error(`no playwright-core in ${packages} (${error.code ?? error.message}); ` +
      'configure with CMake, or run npm ci there with tests/web/package.json');
  }
}

/**
 * Starts the browser. Without `webgpu`, navigator.gpu has no adapter. `log` receives each line of a
 * page's console. `timeout` is the limit of each waiting call, in milliseconds.
 *
 * Returns `{open, close, browser}`. `open(url)` returns a Playwright page with
 * - `call(function, argument)`: evaluate() with the time limit, whose errors include the page's last
 *   messages;
 * - `messages`: the lines of its console;
 * - `errors`: its uncaught errors.
 */
export async function launch(
  {args = [], webgpu = true, timeout = 120_000, log = console.log} = {}) {
  const {chromium} = playwright();
  const used = webgpu ? flags : flags.filter(each => !each.includes('webgpu'));
  const browser = await chromium.launch({
    executablePath: executable(), headless: true, args: [...used, ...args], timeout,
  });
  const open = async (url, options = {}) => {
    const page = await browser.newPage(options);
    page.setDefaultTimeout(timeout);
    page.messages = [];
    page.errors = [];
    const crashed = new Promise((_, reject) => {
      page.on('crash', () => reject(new Error(`${url}: the page crashed`)));
    });
    crashed.catch(() => {});
    const note = line => {
      page.messages.push(line);
      log(`  page: ${line}`);
    };
    page.on('console', message => note(message.text()));
    page.on('pageerror', error => {
      page.errors.push(error);
      note(`uncaught ${error.stack ?? error}`);
    });
    page.call = async (body, argument) => {
      try {
        return await within(Promise.race([page.evaluate(body, argument), crashed]), timeout, url);
      } catch (error) {
        error.message += page.messages.slice(-5).map(line => `\n  page: ${line}`).join('');
        throw error;
      }
    };
    const response = await page.goto(url, {timeout});
    if (!response.ok()) throw new Error(`${url}: ${response.status()} ${response.statusText()}`);
    return page;
  };
  return {open, close: () => browser.close(), browser};
}
