// SPDX-License-Identifier: MIT
// Makes the npm package: build.mjs MODULE_FOLDER THREADS_FOLDER OUTPUT_FOLDER
// The first two hold what the CMake target tensorgrad_web made, without threads and with them.
// Prints the sizes of the files.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'esbuild';

const web = dirname(fileURLToPath(import.meta.url));
const [module, threads, out] = process.argv.slice(2).map((each) => resolve(each));
const dist = join(out, 'dist');

rmSync(out, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '-p', web, '--outDir',
  join(dist, 'types')], { stdio: 'inherit' });

const common = {
  bundle: true, format: 'esm', target: 'es2022', minify: true, keepNames: false,
  legalComments: 'none', logLevel: 'warning', platform: 'neutral',
};
await build({ ...common, entryPoints: [join(web, 'src/index.ts')],
  outfile: join(dist, 'tensorgrad.js'), alias: { '#module': join(module, 'tensorgrad.mjs') } });
// These are loaded on demand. Those with threads import modules of node if they run there, and would
// make its Worker global, which other libraries take for a browser's.
for (const from of [join(module, 'full.mjs'), join(threads, 'threads.js'),
                    join(threads, 'full_threads.js')]) {
  await build({ ...common, entryPoints: [from], outfile: join(dist, `${parse(from).name}.js`),
                external: ['node:*'], define: { Worker: 'TheWorker', 'globalThis.Worker': 'TheWorker' },
                banner: { js: 'let TheWorker = globalThis.Worker;' } });
}
// The worker loads the library's file, so that it is downloaded once.
await build({ ...common, entryPoints: [join(web, 'src/worker.ts')],
  outfile: join(dist, 'worker.js'), plugins: [{
    name: 'library', setup: (b) => b.onResolve({ filter: /^\.\/index\.js$/ },
      () => ({ path: './tensorgrad.js', external: true })) }] });
for (const from of [join(module, 'tensorgrad.wasm'), join(module, 'full.wasm'),
                    join(threads, 'threads.wasm'), join(threads, 'full_threads.wasm')])
  copyFileSync(from, join(dist, basename(from)));
copyFileSync(join(web, 'README.md'), join(out, 'README.md'));
for (const name of ['LICENSE', 'THIRD_PARTY_LICENSES.md'])
  copyFileSync(join(web, '..', name), join(out, name));

const header = readFileSync(join(web, '../include/tensorgrad/version.h'), 'utf8');
const version = /VERSION_STRING "(.*)"/.exec(header)[1];
writeFileSync(join(out, 'package.json'), JSON.stringify({
  name: 'tensorgrad', version, type: 'module', license: 'MIT',
  description: 'Trains neural networks in the browser, on WebGPU and on the CPU',
  exports: {
    '.': { types: './dist/types/index.d.ts', default: './dist/tensorgrad.js' },
    './worker.js': './dist/worker.js', './tensorgrad.wasm': './dist/tensorgrad.wasm',
    './full.wasm': './dist/full.wasm', './threads.wasm': './dist/threads.wasm',
    './full_threads.wasm': './dist/full_threads.wasm',
  },
  types: './dist/types/index.d.ts', files: ['dist', 'THIRD_PARTY_LICENSES.md'],
  sideEffects: ['./dist/worker.js'], engines: { node: '>=20.16' },
}, null, 2) + '\n');

const sizes = {};
for (const name of ['tensorgrad.js', 'worker.js', 'tensorgrad.wasm', 'full.js', 'full.wasm',
                    'threads.js', 'threads.wasm', 'full_threads.js', 'full_threads.wasm']) {
  const content = readFileSync(join(dist, name));
  sizes[name] = brotliCompressSync(content, {
    params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }).length;
  console.log(`${name}: ${content.length} bytes, ${sizes[name]} with brotli`);
}
const library = sizes['tensorgrad.js'] + sizes['worker.js'];
console.log(`to train: ${library + sizes['tensorgrad.wasm']} bytes with brotli; ` +
  `everything: ${library + sizes['full.js'] + sizes['full.wasm']}`);
console.log(`on threads instead: ${library + sizes['threads.js'] + sizes['threads.wasm']}; ` +
  `everything: ${library + sizes['full_threads.js'] + sizes['full_threads.wasm']}`);
