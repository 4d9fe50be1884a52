// SPDX-License-Identifier: MIT
// The tarball: its types, its size, and what it does in an empty project and through bundlers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import { launch, serve } from './page.mjs';
import { within } from '../../tests/web/browser.mjs';

const web = fileURLToPath(new URL('..', import.meta.url));
const built = process.env.TENSORGRAD_NPM
  ? fileURLToPath(process.env.TENSORGRAD_NPM) : join(web, '../build/npm');
const project = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
const run = (program, args, options = {}) =>
  execFileSync(program, args, { cwd: project, encoding: 'utf8', stdio: 'pipe', ...options });
const tool = (path) => join(web, 'node_modules', path);
// The example of the README, as anyone would copy it.
const example = /```js\n(.*?)```/s.exec(readFileSync(join(built, 'README.md'), 'utf8'))[1];
const guide = readFileSync(join(web, '../docs/guide/browser.md'), 'utf8');
// The example prints the loss of each step.
const trained = (text) => {
  const losses = text.trim().split('\n').map(Number);
  assert.equal(losses.length, 200, text);
  assert.ok(losses[0] > 0.1 && losses.at(-1) < 0.01, text);
};

before(() => {
  const tarball = run('npm', ['pack', '--silent', '--pack-destination', project], { cwd: built });
  writeFileSync(join(project, 'package.json'), '{"type": "module"}');
  run('npm', ['install', '--no-audit', '--no-fund', '--offline', `./${tarball.trim()}`]);
});
after(() => rmSync(project, { recursive: true, force: true }));

test('trains in an empty project, in ten lines', () => {
  writeFileSync(join(project, 'train.js'), example);
  assert.equal(example.trim().split('\n').length, 10);
  assert.ok(guide.includes(example), 'docs/guide/browser.md has another example');
  trained(run(process.execPath, ['train.js']));
});

test('trains through esbuild', () => {
  mkdirSync(join(project, 'bundle'));
  run(tool('.bin/esbuild'), ['train.js', '--bundle', '--format=esm', '--target=es2022',
    '--log-level=error', '--outfile=bundle/app.js']);
  const dist = join(project, 'node_modules/tensorgrad/dist');
  for (const name of ['tensorgrad.js', 'worker.js', 'tensorgrad.wasm', 'threads.js', 'threads.wasm'])
    cpSync(join(dist, name), join(project, 'bundle', name));
  trained(run(process.execPath, ['bundle/app.js']));
});

// Line 10 has the error. Types and the comment make the bundle's lines differ from those of the file.
const failing = `import {
  Linear, Module, compile, matmul, mean, optim, type Tensor,
} from 'tensorgrad';

interface Seen { file: string; line: number; message: string }
class Net extends Module {
  fc: Linear = new Linear(1, 4);
  forward(x: Tensor): Tensor {
    const hidden: Tensor = this.fc.forward(x);
    return matmul(hidden, hidden);
  }
}

try {
  await compile({
    model: new Net(), loss: (net, { x }) => mean(net.forward(x)), inputs: { x: [8, 1] },
    optimizer: optim.sgd({ lr: 1 }) });
} catch (error) {
  const { file, line, message } = error as Seen;
  console.log(JSON.stringify({ file, line, message }));
}
process.exit(0);
`;
const bundles = { external: ['--external:tensorgrad'], bundled: [], 'bundled and minified': ['--minify'] };
for (const [name, options] of Object.entries(bundles)) {
  test(`an error names its line of TypeScript through source maps: the package is ${name}`, () => {
    const out = join(project, `mapped-${name.replaceAll(' ', '-')}`);
    mkdirSync(out);
    writeFileSync(join(project, 'failing.ts'), failing);
    run(tool('.bin/esbuild'), ['failing.ts', '--bundle', '--format=esm', '--target=es2022', '--sourcemap',
      '--log-level=error', `--outfile=${join(out, 'app.js')}`, ...options]);
    for (const file of ['worker.js', 'tensorgrad.wasm', 'threads.js', 'threads.wasm'])
      cpSync(join(project, 'node_modules/tensorgrad/dist', file), join(out, file));
    const { file, line, message } =
      JSON.parse(run(process.execPath, ['--enable-source-maps', join(out, 'app.js')]));
    assert.match(file, /failing\.ts$/);
    assert.equal(line, 10, message);
    assert.match(message, /matmul: inner sizes differ.*failing\.ts:10/s);
  });
}

test('Vite finds the worker and the module, and its page trains in Chromium', async () => {
  writeFileSync(join(project, 'index.html'),
    '<link rel="icon" href="data:,"><script type="module" src="/train.js"></script>');
  symlinkSync(tool('vite'), join(project, 'node_modules/vite'));
  run(process.execPath, [tool('vite/bin/vite.js'), 'build', '--logLevel', 'error',
    '--outDir', 'vite']);
  const files = readdirSync(join(project, 'vite/assets')).sort().join(' ');
  assert.match(files, /index-.*\.js/);
  assert.match(files, /tensorgrad-.*\.wasm/);
  assert.match(files, /full-\S*\.wasm/);
  assert.match(files, /full-\S*\.js/);
  assert.match(files, /threads-\S*\.wasm/);
  assert.match(files, /threads-\S*\.js/);
  assert.match(files, /worker-.*\.js/);
  // One is bundled. The other is a copy, whose address is used if the package is of another origin.
  const workers = readdirSync(join(project, 'vite/assets')).filter((name) => /^worker-/.test(name))
    .map((name) => readFileSync(join(project, 'vite/assets', name), 'utf8'));
  assert.ok(workers.some((text) => !/['"]\.\/tensorgrad\.js['"]/.test(text)));
  // With isolation headers, the page loads the modules with threads, otherwise those without.
  for (const isolated of [false, true]) {
    const site = await serve(join(project, 'vite'), { isolated });
    const browser = await launch({ webgpu: false, log: () => {} });
    try {
      const page = await browser.open(site.url);
      await within(new Promise((resolve) => {
        const timer = setInterval(() => {
          if (page.messages.length < 200 && !page.errors.length) return;
          clearInterval(timer);
          resolve();
        }, 50);
      }), 60_000, `training in the page of Vite: ${page.messages.slice(-3)}`);
      assert.deepEqual(page.errors, []);
      trained(page.messages.filter((each) => each !== 'No available adapters.').join('\n'));
      const loaded = site.requests.filter(({ path }) => /wasm$/.test(path));
      assert.match(loaded.map(({ path }) => path).join(),
                   isolated ? /^\/assets\/threads-[^,]*$/ : /^\/assets\/tensorgrad-[^,]*$/);
      assert.ok(site.requests.some(({ path }) => /worker-/.test(path)), 'no worker was loaded');
      assert.deepEqual(site.requests.filter(({ status }) => status !== 200), []);
    } finally {
      await browser.close();
      await site.close();
    }
  }
});

test('types accept what is right and refuse what is wrong', () => {
  cpSync(join(web, 'tests/types.ts'), join(project, 'types.ts'));
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({
    compilerOptions: { strict: true, noEmit: true, target: 'es2022', module: 'nodenext', types: [],
      moduleResolution: 'nodenext', noUncheckedIndexedAccess: true }, files: ['types.ts'] }));
  try {
    run(process.execPath, [tool('typescript/bin/tsc'), '-p', '.']);
  } catch (error) {
    assert.fail(error.stdout);
  }
});

test('is small', async (t) => {
  const dist = join(built, 'dist');
  const size = async (name) =>
    (await promisify(brotliCompress)(readFileSync(join(dist, name)))).length;
  const names = ['tensorgrad.js', 'worker.js', 'tensorgrad.wasm', 'full.js', 'full.wasm',
    'threads.js', 'threads.wasm', 'full_threads.js', 'full_threads.wasm'];
  const sizes = await Promise.all(names.map(size));
  names.forEach((name, i) => t.diagnostic(`${name}: ${sizes[i]} bytes with brotli`));
  const [script, worker, core, fullScript, full, ...threads] = sizes;
  const toTrain = script + worker + core, everything = script + worker + fullScript + full;
  t.diagnostic(`to train: ${toTrain} bytes; everything: ${everything} bytes`);
  assert.ok(toTrain < 700_000, `${toTrain} bytes to train`);
  assert.ok(everything < 1_100_000, `${everything} bytes of everything`);
  // A page that trains on threads loads these instead.
  const onThreads = script + worker + threads[0] + threads[1];
  const everythingOnThreads = script + worker + threads[2] + threads[3];
  t.diagnostic(`on threads: ${onThreads} bytes; everything: ${everythingOnThreads} bytes`);
  assert.ok(onThreads < 700_000, `${onThreads} bytes to train on threads`);
  assert.ok(everythingOnThreads < 1_100_000, `${everythingOnThreads} bytes of everything on threads`);
});
