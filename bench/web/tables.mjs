// SPDX-License-Identifier: MIT
// Markdown tables of the measurements of run.mjs.
import fs from 'node:fs';

const none = '–';
const kilobytes = ({ raw, gzip, brotli }) =>
  [raw, gzip, brotli].map((bytes) => Math.round(bytes / 1000).toLocaleString('en')).join(' / ');

function milliseconds(ms) {
  if (!ms) return none;
  return ms < 10 ? ms.toFixed(2) : Math.round(ms).toLocaleString('en');
}

export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n') + '\n';

/** Returns the section of docs/benchmarks.md. Ratios are ours over the fastest peer. */
export function section({ date, cpu, cores, browser, versions, rounds, seconds, lines }) {
  const libraries = [...new Set(lines.map((line) => line.library))];
  const devices = [...new Set(lines.map((line) => line.device))];
  // Returns a row for each workload and device; `show` returns the cell of a line.
  const rows = (chosen, show, value) => [...new Set(chosen.map((line) => line.workload))].map((workload) => {
    const all = libraries.map((library) =>
      chosen.find((line) => line.workload === workload && line.library === library));
    const cells = all.map((line) => (line?.losses ? show(line) : none));
    const [ours, ...peers] = all.map((line) => (line?.losses && value(line)) || Infinity);
    const best = Math.min(...peers);
    return [workload, ...cells,
      Number.isFinite(ours) && Number.isFinite(best) ? (ours / best).toFixed(2) : none];
  });
  const parts = [`Measured ${date} on ${cores} cores of an ${cpu}, in ${browser}; jax-js ${
    versions['@jax-js/jax']}, TensorFlow.js ${versions['@tensorflow/tfjs-core']}. ${
    rounds === 1 ? '1 round' : `${rounds} rounds`} of ${seconds} s. Ratios are ours over the fastest peer.\n`];
  const add = (title, head, chosen, show, value) => {
    if (chosen.length)
      parts.push(`**${title}**\n`, table([head, ...libraries, 'ratio'], rows(chosen, show, value)));
  };
  for (const device of devices) {
    const chosen = lines.filter((line) => line.device === device);
    const where = device === 'cpu' ? 'CPU in WebAssembly, one thread' : 'WebGPU on SwiftShader';
    add(`${where}: milliseconds per step, each loss read`, 'workload', chosen,
      (line) => milliseconds(line.step_ms), (line) => line.step_ms);
    if (chosen.some((line) => line.run_ms)) {
      add(`${where}: milliseconds per step, ten steps per read`, 'workload', chosen,
        (line) => milliseconds(line.run_ms), (line) => line.run_ms);
    }
    add(`${where}: start of the page to the first loss, in milliseconds`, 'workload', chosen,
      (line) => milliseconds(line.first), (line) => line.first);
    if (chosen.some((line) => line.calls)) {
      add('Launches / submits / buffers written / bind groups made, per step', 'workload', chosen,
        ({ calls }) => (calls ? ['dispatchWorkgroups', 'submit', 'writeBuffer', 'createBindGroup']
          .map((name) => calls[name] ?? 0).join(' / ') : none), ({ calls }) => calls?.dispatchWorkgroups);
    }
    add(`${where}: kB that the page loads, raw / gzip / brotli`, 'workload', chosen.slice(0, libraries.length),
      ({ bytes }) => kilobytes(bytes), ({ bytes }) => bytes.brotli);
  }
  const missing = lines.filter((line) => line.why);
  if (missing.length) {
    parts.push('Not run:\n', ...missing.map(({ workload, device, library, why }) =>
      `- ${workload}, ${device}, ${library}: ${why}`), '');
  }
  return parts.join('\n');
}

/** Replaces the text between the lines `<!-- bench: NAME -->` and `<!-- bench end -->` of a file. */
export function update(file, name, text) {
  const before = fs.readFileSync(file, 'utf8'), start = `<!-- bench: ${name} -->\n`;
  const from = before.indexOf(start), to = before.indexOf('<!-- bench end -->', from);
  if (from < 0 || to < 0) throw new Error(`${file}: no section '${name}'`);
  fs.writeFileSync(file, before.slice(0, from + start.length) + '\n' + text + '\n' + before.slice(to));
}
