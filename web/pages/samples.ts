// SPDX-License-Identifier: MIT
// Runs the C++ samples of examples/, compiled to WebAssembly, in a worker. Shows what they print and
// the pictures that they write.
import { find, make, message, report } from './common.js';
import type { Job, Result } from './samples_worker.js';

/** A sample, as samples.mjs lists it. */
interface Sample { name: string; about: string; files: Job['files'] }

const output = find('#output'), pictures = find('#pictures'), state = find('[name=state]');
const start = find<HTMLButtonElement>('#start'), stop = find<HTMLButtonElement>('#stop');
const field = (name: string) => find<HTMLSelectElement>(`[name=${name}]`);
let samples: Sample[] = [];
let worker: Worker | undefined;

const chosen = () => samples.find(({ name }) => name === field('sample').value)!;

function show(text: string): void {
  state.textContent = text;
  start.disabled = worker !== undefined;
  stop.disabled = worker === undefined;
}

/** Ends the worker, and with it the program. */
function end(text: string): void {
  worker?.terminate();
  worker = undefined;
  show(text);
}

function showPicture(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  const type = name.endsWith('.svg') ? 'image/svg+xml' : 'image/png';
  pictures.append(make('img', { alt: name, src: URL.createObjectURL(new Blob([bytes], { type })) }));
  pictures.hidden = false;
}

function run(): void {
  message('');
  output.textContent = '';
  for (const each of pictures.querySelectorAll('img')) {
    URL.revokeObjectURL(each.src);
    each.remove();
  }
  pictures.hidden = true;
  worker = new Worker('samples_worker.js', { type: 'module' });
  worker.onerror = (event) => { report(event); end('failed'); };
  worker.onmessage = ({ data }: MessageEvent<Result>) => {
    if ('line' in data) {
      output.append(`${data.line}\n`);
      output.scrollTop = output.scrollHeight;
    } else if ('error' in data) {
      message(data.error);
      end('failed');
    } else {
      for (const { name, bytes } of data.pictures) showPicture(name, bytes);
      end(data.status === 0 ? 'done' : `ended with status ${data.status}`);
    }
  };
  const options = ['--device', field('device').value, '--allow-software', field('length').value];
  const job: Job = { name: chosen().name, files: chosen().files, options: options.filter(Boolean) };
  worker.postMessage(job);
  show('running');
}

async function load(): Promise<void> {
  const response = await fetch('samples/samples.json');
  samples = response.ok ? await response.json() : [];
  if (samples.length === 0) throw new Error('No samples are built. The command ./dev web builds them.');
  if (!('Suspending' in WebAssembly))
    throw new Error('This browser cannot suspend WebAssembly (JSPI). Chrome and Edge can, from version 137.');
  field('sample').append(...samples.map(({ name }) => new Option(name.replaceAll('_', ' '), name)));
  const given = new URLSearchParams(location.search);
  for (const name of ['sample', 'length', 'device']) if (given.has(name)) field(name).value = given.get(name)!;
  const describe = () => { find('#about').textContent = chosen().about; };
  field('sample').onchange = describe;
  describe();
  start.onclick = run;
  stop.onclick = () => end('stopped');
  show('ready');
}

load().catch((error) => { report(error); state.textContent = 'failed'; start.disabled = true; });
