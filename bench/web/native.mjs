// SPDX-License-Identifier: MIT
// `./dev bench web native`: steps of tg_bench's workloads on the CPU, natively and as WebAssembly
// in node, alternately.
//
//   node bench/web/native.mjs [--only mlp-sin,fashion-cnn] [--threads 1] [--rounds 3] [--seconds 1]
//     [--launches] [--update bench/results/web.md]
//
// With --launches, also prints the slowest launches of each workload.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { table, update } from './tables.mjs';

const top = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const { values: options } = parseArgs({ options: {
  only: { type: 'string', default: 'mlp-sin,fashion-mlp,fashion-cnn,addition,char-gpt-small,mamba1' },
  threads: { type: 'string', default: '1' },
  rounds: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '1' },
  launches: { type: 'boolean', default: false },
  update: { type: 'string' },
} });
const { threads, seconds } = options;

// Lets V8 optimize a kernel before its first call, as it has in a page that has warmed up.
const programs = {
  native: (name) => [path.join(top, 'build/release/tg_bench'), '--device', 'cpu', '--modes', 'step',
    '--threads', threads, '--seconds', seconds, ...(options.launches ? ['--profile'] : []), '--only', name],
  wasm: (name) => [process.execPath, '--no-liftoff', '--import', path.join(top, 'web/tests/jspi.mjs'),
    path.join(top, 'build/web/web/cpu_steps.js'), threads, seconds, options.launches ? '1' : '0', name],
};

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const steps = new Map(), launches = new Map();
const keep = (map, key, who, us) => {
  if (!map.has(key)) map.set(key, { native: [], wasm: [] });
  map.get(key)[who].push(us);
};
for (let round = 0; round < Number(options.rounds); ++round) {
  for (const name of options.only.split(',')) {
    for (const [who, program] of Object.entries(programs)) {
      const [file, ...args] = program(name);
      const seen = {};
      for (const text of execFileSync(file, args, { encoding: 'utf8' }).trim().split('\n')) {
        const line = JSON.parse(text);
        if (line.us_per_step) keep(steps, name, who, line.us_per_step);
        if (!line.launch) continue;
        const what = `${line.workload}: ${line.launch.slice(0, 60)} ${line.domain}`;
        seen[what] = (seen[what] ?? 0) + 1;
        keep(launches, `${what} (${seen[what]})`, who, line.us);
      }
    }
  }
}

const rows = (map) => [...map].map(([name, { native, wasm }]) => [name, median(native), median(wasm)]);
const cells = (all) => all.map(([name, native, wasm]) =>
  [name, native.toPrecision(3), wasm.toPrecision(3), (wasm / native).toFixed(2)]);
const text = table(['workload', 'native, us', 'WebAssembly, us', 'ratio'], cells(rows(steps)));
console.log(text);
if (options.launches) {
  const slowest = rows(launches).sort((a, b) => b[2] - a[2]).slice(0, 40);
  console.log(table(['launch', 'native, us', 'WebAssembly, us', 'ratio'], cells(slowest)));
}
if (options.update) update(options.update, 'web-cpu', text);
