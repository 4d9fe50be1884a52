// SPDX-License-Identifier: MIT
// Inspects the program of another page: its launches on a timeline and as a table, the WGSL of each
// next to the line of TypeScript that it comes from, and its memory. The other page runs in a
// hidden frame: from the checkpoint that it wrote before it opened this one, or from its beginning.
import type { Profile, ProfileResult, Trainer } from 'tensorgrad';
import { download, find, make, message, report } from './common.js';
import { sourceOf } from './source_map.js';

type AnyTrainer = Trainer<any, any, any>;
type Launch = Profile['launches'][number];

const frame = find<HTMLIFrameElement>('#frame');
const select = find<HTMLSelectElement>('[name=model]');
const again = find<HTMLButtonElement>('#again');
const asked = new URLSearchParams(location.search);
let trainer: AnyTrainer | undefined;
let inputs: any;  // of the last step
let result: ProfileResult | undefined;
let files: { [name: string]: string } = {};
let chosen = 0, sorted = 'order';

const kib = (bytes: number) => bytes < 1024 ? `${bytes} B`
  : bytes < 1 << 20 ? `${(bytes / 1024).toPrecision(3)} KiB` : `${(bytes / (1 << 20)).toPrecision(3)} MiB`;
// Clocks of pages tick every 5 µs.
const time = (us: number) => (us === 0 ? '< 5 µs' : us < 1000 ? `${us.toPrecision(3)} µs` : `${(us / 1000).toPrecision(3)} ms`);

/** Lists the pages that train, as index.html does. */
async function listPages(): Promise<void> {
  const index = new DOMParser().parseFromString(await (await fetch('index.html')).text(), 'text/html');
  for (const link of index.querySelectorAll<HTMLAnchorElement>('.pages a')) {
    const name = link.getAttribute('href')!.replace('.html', '');
    if (!['inside', 'samples'].includes(name)) select.add(new Option(link.querySelector('h2')!.textContent!, name));
  }
  const wanted = asked.get('model') ?? 'kan';
  select.value = [...select.options].some(({ value }) => value === wanted) ? wanted : select.options[0]!.value;
}

/** Opens a page in the frame and waits until its model is compiled. */
async function open(name: string): Promise<void> {
  busy(true);
  try {
    const query = new URLSearchParams({ device: asked.get('device') ?? 'auto' });
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
    frame.src = `${name}.html?${query}`;
    await loaded;
    while (!(frame.contentWindow as any).run) await new Promise((resolve) => setTimeout(resolve, 50));
    const { run } = frame.contentWindow as any, its = frame.contentDocument!;
    if (asked.has('run') && name === asked.get('model')) await run.openKept();
    const speed = its.querySelector<HTMLSelectElement>('[name=speed]');
    if (speed) speed.value = 'full';  // instead of one step a frame
    find('#steps').textContent = `${run.steps}`;
    await run.step();  // after the model is compiled
    const found: AnyTrainer | undefined = run.trainer;
    const problem = its.querySelector('#message.error:not(:empty)')?.textContent;
    if (!found || problem) throw new Error(problem ?? `${name} has no model`);
    // Runs another step to capture its inputs.
    const step = found.step;
    found.step = function (...all: any[]) {
      inputs = all[0];
      return step.apply(found, all as any);
    } as typeof step;
    inputs = undefined;
    await run.step();
    trainer = found;
    files = await found.dump();
    await profile();
    const times = result!.profile.launches.map(({ microseconds }) => microseconds);
    await showLaunch(times.indexOf(Math.max(...times)));
  } catch (error) {
    report(error);
  }
  busy(false);
}

/** Times the launches of 10 steps. */
async function profile(): Promise<void> {
  result = await trainer!.profile(inputs, { steps: 10 });
  const { launches, device, peakBytes } = result.profile;
  const { milliseconds, passes } = await trainer!.report();
  const all = launches.reduce((sum, each) => sum + each.microseconds, 0);
  const values = { device: device.replace(/^\w+ \((.*)\)$/, '$1').replace(', WASM', ''), launches: launches.length, step: time(all),
    memory: kib(peakBytes), compiled: `${milliseconds.toFixed(0)} ms` };
  for (const [name, value] of Object.entries(values)) find(`#${name}`).textContent = `${value}`;
  find('#device').title = device;
  showTimeline(launches);
  showTable(launches);
  showPasses(passes);
  showMemory();
  await showLaunch(Math.min(chosen, launches.length - 1));
}

function showTimeline(launches: readonly Launch[]): void {
  find('#timeline').replaceChildren(...launches.map((each, i) => {
    const bar = make('button', { type: 'button', tabIndex: -1, title: `${i} ${each.name}: ${time(each.microseconds)}`,
      onclick: () => void showLaunch(i) }, make('span', { textContent: each.name }));
    bar.style.flexGrow = `${Math.max(each.microseconds, 0.01)}`;
    return bar;
  }));
}

const speed = ({ flops, microseconds }: Launch) => (microseconds ? flops / microseconds / 1e3 : 0);
const columns: { name: string; of: (launch: Launch, i: number) => number | string; show?: (launch: Launch) => string }[] = [
  { name: 'order', of: (_, i) => i },
  { name: 'kernel', of: ({ name }) => name },
  { name: 'time', of: ({ microseconds }) => microseconds, show: ({ microseconds }) => time(microseconds) },
  { name: 'kind', of: ({ kind }) => kind, show: ({ kind, domain }) => `${kind} ${domain}` },
  { name: 'bytes', of: ({ bytes }) => bytes, show: ({ bytes }) => kib(bytes) },
  { name: 'GFLOP/s', of: speed, show: (launch) => (speed(launch) ? speed(launch).toPrecision(3) : '–') },
];

function showTable(launches: readonly Launch[]): void {
  const { of } = columns.find(({ name }) => name === sorted)!;
  const order = launches.map((launch, i) => ({ launch, i, key: of(launch, i) })).sort((a, b) =>
    typeof a.key === 'string' ? a.key.localeCompare(b.key as string) || a.i - b.i
      : sorted === 'order' ? a.i - b.i : (b.key as number) - a.key);
  const longest = Math.max(...launches.map(({ microseconds }) => microseconds));
  find('#heads').replaceChildren(...columns.map(({ name }) => make('th', { scope: 'col',
    ariaSort: name === sorted ? 'descending' : 'none' }, make('button', { type: 'button', textContent: name,
      onclick: () => { sorted = name; showTable(launches); mark(); } }))));
  find('#rows').replaceChildren(...order.map(({ launch, i }) => {
    const row = make('tr', { onclick: () => void showLaunch(i) }, ...columns.map(({ name, of: value, show }) =>
      name === 'kernel' ? make('th', { scope: 'row' }, make('button', { type: 'button', textContent: launch.name }))
        : make('td', { textContent: show?.(launch) ?? `${value(launch, i)}` })));
    row.dataset['launch'] = `${i}`;
    row.style.setProperty('--share', `${100 * launch.microseconds / longest}%`);
    return row;
  }));
}

function mark(): void {
  for (const row of find('#rows').querySelectorAll('tr')) {
    const on = row.dataset['launch'] === `${chosen}`;
    row.classList.toggle('chosen', on);
    row.querySelector('button')!.ariaPressed = `${on}`;
  }
  [...find('#timeline').children].forEach((bar, i) => bar.classList.toggle('chosen', i === chosen));
}

/** Returns the WGSL of a launch. A GPU may run several small launches as one, named "a | b". */
function kernelsOf(i: number): string[] {
  const parts = result!.profile.launches.map(({ name }) => name.split(' | ').length);
  const first = parts.slice(0, i).reduce((sum, count) => sum + count, 0);
  const all = Object.keys(files).filter((file) => file.startsWith('kernels/')).sort();
  return all.slice(first, first + parts[i]!).map((file) => files[file]!);
}

/** Shows the kernel of a launch, its ops and its lines. */
async function showLaunch(i: number): Promise<void> {
  const launch = result!.profile.launches[i];
  if (!launch) return;
  chosen = i;
  mark();
  find('#name').textContent = `${i} ${launch.name}`;
  find('#ops').replaceChildren(...launch.ops.map((op) => make('li', {}, make('code', { textContent: op }))));
  find('#kernel').textContent = kernelsOf(i).join('\n');
  find('#lines').replaceChildren(...launch.locations.map((at, j) => make('button', { type: 'button',
    textContent: at.replace(/.*\//, ''), onclick: () => void showLine(launch, j) })));
  await showLine(launch, 0);
}

async function showLine(launch: Launch, j: number): Promise<void> {
  const buttons = [...find('#lines').children] as HTMLButtonElement[];
  const places = await Promise.all(launch.locations.map(sourceOf));
  if (result!.profile.launches[chosen] !== launch) return;
  buttons.forEach((each, k) => {
    each.ariaPressed = `${k === j}`;
    each.textContent = places[k] ? `${places[k].file}:${places[k].line}` : each.textContent;
  });
  const place = places[j], box = find('#source');
  if (!place) {
    box.textContent = launch.locations[j] ?? 'The library made this launch.';
    return;
  }
  box.replaceChildren(...place.lines.map((text, k) => make('span',
    { className: k + 1 === place.line ? 'line here' : 'line', textContent: `${`${k + 1}`.padStart(4)}  ${text}\n` })));
  const here = box.querySelector<HTMLElement>('.here');
  if (here) box.scrollTop = here.offsetTop - box.offsetTop - box.clientHeight / 3;
}

function showPasses(passes: readonly (readonly [string, number])[]): void {
  find('#passes').replaceChildren(...passes.map(([name, milliseconds]) => {
    const bar = make('span', { title: `${name}: ${milliseconds.toFixed(2)} ms` }, make('span', { textContent: name }));
    bar.style.flexGrow = `${milliseconds}`;
    return bar;
  }));
  const graphs = Object.keys(files).filter((file) => file.endsWith('.ir') || file === '99_plan.txt').sort();
  const choice = find<HTMLSelectElement>('[name=graph]');
  choice.replaceChildren(...graphs.map((file) => new Option(file.replace(/\.\w+$/, '').replace('_', ' '), file)));
  choice.onchange = () => { find('#graph').textContent = files[choice.value]!; };
  choice.onchange(new Event('change'));
}

function showMemory(): void {
  const svg = new DOMParser().parseFromString(files['memory.svg'] ?? '', 'image/svg+xml').documentElement;
  const [width, height] = [Number(svg.getAttribute('width')), Number(svg.getAttribute('height'))];
  svg.setAttribute('viewBox', `0 36 ${width} ${height - 36}`);  // without its title
  find('#map').replaceChildren(svg);
}

function busy(on: boolean): void {
  find('main').ariaBusy = `${on}`;
  find('#again').textContent = on ? 'Compiling…' : 'Profile again';
  for (const each of [again, find<HTMLButtonElement>('#page'), find<HTMLButtonElement>('#trace')]) each.disabled = on;
  if (on) message('');
}

select.onchange = () => void open(select.value);
again.onclick = async () => {
  busy(true);
  await profile().catch(report);
  busy(false);
};
find('#page').onclick = () => download('profile.html', result!.html, 'text/html');
find('#trace').onclick = () => download('trace.json', result!.traceEvents, 'application/json');

await listPages();
await open(select.value);
