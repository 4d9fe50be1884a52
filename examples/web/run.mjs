// SPDX-License-Identifier: MIT
// Runs a sample in node: `node examples/web/run.mjs NAME [--steps N] [--seed N] [--data FILE]`.
// FILE has the names of makemore, one per line, or the text of char_gpt.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compileSamples, readDigits, samples } from './build.mjs';

const { values, positionals: [name] } = parseArgs({
  allowPositionals: true,
  options: { steps: { type: 'string' }, seed: { type: 'string' }, data: { type: 'string' } } });
if (!samples.includes(name)) {
  console.error(`unknown sample '${name ?? ''}'; available: ${samples.join(', ')}`);
  process.exit(2);
}
const folder = await compileSamples();
const { train } = await import(new URL(`${name}.js`, folder));
const text = values.data && readFileSync(values.data, 'utf8');
const start = performance.now();
const { parameters, losses } = await train({
  ...(values.steps && { steps: Number(values.steps) }),
  ...(values.seed && { seed: Number(values.seed) }),
  ...(text && { text, names: text.split(/\s+/) }),
  digits: readDigits(),
  log: console.log,
});
console.log(`${parameters} parameters, ${losses.length} steps in ${((performance.now() - start) / 1000).toFixed(1)} s`);
