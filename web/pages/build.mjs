// SPDX-License-Identifier: MIT
// Builds the pages: node web/pages/build.mjs [OUTPUT], by default build/pages. Takes the package
// from build/npm. Each NAME.html with its NAME.ts is a page; index.html lists them by the
// description and order in their <meta> tags, with the picture NAME.svg.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { packDigits } from './data.mjs';
import { collectSamples } from './samples.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, '..');
const dist = join(web, '../build/npm/dist');
const out = resolve(process.argv[2] ?? join(web, '../build/pages'));
const pages = readdirSync(here).filter((each) => each.endsWith('.html') && each !== 'index.html')
  .map((each) => each.replace('.html', ''));

const { status } = spawnSync(process.execPath,
  [join(web, 'node_modules/typescript/bin/tsc'), '-p', here], { stdio: 'inherit' });
if (status) process.exit(status);
mkdirSync(join(out, 'tensorgrad'), { recursive: true });
for (const name of readdirSync(dist).filter((each) => /\.(js|wasm)$/.test(each)))
  copyFileSync(join(dist, name), join(out, 'tensorgrad', name));
await build({
  entryPoints: [...[...pages, 'samples_worker'].map((name) => join(here, `${name}.ts`)), join(here, 'style.css')],
  outdir: out, bundle: true, format: 'esm', target: 'es2022', sourcemap: true, logLevel: 'warning',
  plugins: [{ name: 'package', setup: (b) => b.onResolve({ filter: /^tensorgrad$/ },
    () => ({ path: './tensorgrad/tensorgrad.js', external: true })) }],
});

const meta = (html, name) => new RegExp(`<meta name="${name}" content="([^"]*)"`).exec(html)?.[1];
const cards = pages.map((name) => {
  const html = readFileSync(join(here, `${name}.html`), 'utf8');
  writeFileSync(join(out, `${name}.html`), html);
  const title = /<h1>(.*)<\/h1>/.exec(html)[1];
  const picture = readFileSync(join(here, `${name}.svg`), 'utf8');
  return { order: Number(meta(html, 'order') ?? 99), html:
    `<a href="${name}.html">\n${picture}<h2>${title}</h2>\n<p>${meta(html, 'description')}</p>\n</a>` };
}).sort((a, b) => a.order - b.order);
writeFileSync(join(out, 'index.html'), readFileSync(join(here, 'index.html'), 'utf8')
  .replace('<!-- pages -->', () => cards.map((each) => each.html).join('\n')));
packDigits(join(out, 'digits.gz'));
collectSamples(out);
