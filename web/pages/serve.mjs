// SPDX-License-Identifier: MIT
// Serves the pages on localhost and prints the address: node web/pages/serve.mjs [--port N] [FOLDER]
// The default is build/pages. The pages are cross-origin isolated, so that they may have threads.
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serve } from '../../tests/web/browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true, options: { port: { type: 'string', default: '8080' } } });
const folder = resolve(positionals[0] ?? join(here, '../../build/pages'));
if (!existsSync(join(folder, 'index.html'))) {
  console.error(`no pages in ${folder}; build them with node web/pages/build.mjs`);
  process.exit(1);
}
const site = await serve(folder, { isolated: true, port: Number(values.port) }).catch((error) => {
  console.error(error.code === 'EADDRINUSE' ? `port ${values.port} is in use; pass --port` : error.message);
  process.exit(1);
});
console.log(`pages: ${site.url}`);
console.log('Ctrl-C stops the server');
