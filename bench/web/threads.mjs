// SPDX-License-Identifier: MIT
// `./dev bench web threads`: steps of tg_bench's workloads on the CPU as WebAssembly in node, on one
// thread and on several, alternately.
//
//   node bench/web/threads.mjs [--only fashion-cnn,char-gpt-small] [--threads 2] [--rounds 3]
//     [--seconds 1] [--update bench/results/web.md]
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { table, update } from './tables.mjs';

const top = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const { values: options } = parseArgs({ options: {
  only: { type: 'string', default: 'mlp-sin,fashion-mlp,fashion-cnn,addition,char-gpt-small,mamba1' },
  threads: { type: 'string', default: '2' },
  rounds: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '1' },
  update: { type: 'string' },
} });

// The modules without threads and with them. As in native.mjs, V8 optimizes kernels first.
const programs = [['web', '1'], ['web-threads', '1'], ['web-threads', options.threads]];
const measure = ([tree, threads], workload) => {
  const text = execFileSync(process.execPath, [
    '--no-liftoff', '--import', path.join(top, 'web/tests/jspi.mjs'),
    path.join(top, `build/${tree}/web/cpu_steps.js`), threads, options.seconds, '0', workload],
  { encoding: 'utf8' });
  return text.trim().split('\n').map(JSON.parse).find((line) => line.us_per_step).us_per_step;
};

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const rows = options.only.split(',').map((workload) => {
  const times = programs.map(() => []);
  for (let round = 0; round < Number(options.rounds); ++round)
    programs.forEach((program, i) => times[i].push(measure(program, workload)));
  const [plain, one, several] = times.map(median);
  return [workload, ...[plain, one, several].map((us) => us.toPrecision(3)),
    (one / several).toFixed(2)];
});
const text = table(['workload', 'without threads, us', 'one thread, us', `${options.threads} threads, us`,
  'gain'], rows);
console.log(text);
if (options.update) update(options.update, 'web-threads', text);
