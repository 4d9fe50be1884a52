// SPDX-License-Identifier: MIT
// Common parts of the pages: the panel with buttons, numbers and the plot of the loss; settings;
// colors.
import { checkSupport, type Recovery, type SaveOptions } from 'tensorgrad';
import uPlot from 'uplot';
import { described, descriptionOf } from './checkpoint.js';

/** The part of a trainer that the panel needs. */
export interface Trains {
  readonly device: string;
  readonly deviceKind: string;
  reset(): Promise<void>;
  free(): Promise<void>;
  save(options?: SaveOptions): Promise<Uint8Array>;
  load(bytes: Uint8Array): Promise<void>;
  counters(): Promise<{ steps: number }>;
}

/** The training of a page. */
export interface Spec<T extends Trains> {
  /** Compiles the model with the current settings. */
  build(): Promise<T>;
  /** Runs one step, or a few, and returns their losses. */
  step(trainer: T): Promise<number | ArrayLike<number>>;
  /** Shows the current model. Called a few times a second, and after each single step. */
  show?(trainer: T): Promise<void> | void;
  /** Called before a reset, to reset the page's own state. */
  reset?(): void;
  /** Number of steps after which training pauses. `?steps=N` in the address overrides it. */
  steps: number;
  /** True if `step` may be called again before it completes, so that the worker never waits. */
  overlap?: boolean;
  /** Time between two calls of `show`, in milliseconds (default 100). */
  every?: number;
  /** State of the page that the next steps depend on, besides trainer and settings. */
  state: { get(): object; set(state: any): void | Promise<void> };
  /** The plotted value (default: the loss, on a logarithmic axis). */
  plot?: { label: string; log: boolean };
}

const parameters = new URLSearchParams(location.search);

/** Returns a number from the address of the page, for example `?steps=100`. */
export function parameter(name: string, otherwise: number): number {
  const value = Number(parameters.get(name) ?? otherwise);
  return Number.isFinite(value) ? value : otherwise;
}

/** Seed of initial values and data: `?seed=N`. */
export const seed = parameter('seed', 1);

/** Device of compile(): `?device=cpu` or `?device=webgpu`; by default the best one. */
export const device = {
  kind: parameters.get('device') ?? 'auto', allowSoftware: parameters.get('device') === 'webgpu',
};

/** Option of compile(): the page reports a lost GPU, and training continues. */
export const recovery = {
  onRecovery: ({ snapshotStep, repeatedSteps }: Recovery) => message(
    `The GPU was lost and has come back. Repeated ${repeatedSteps} steps from step ${snapshotStep}.`, 'note'),
};

/** Uniform random numbers in [0, 1). `state` can be saved to continue the sequence. */
export interface Random { (): number; state: number }

/** Returns random numbers that depend only on the seed. */
export function random(from: number): Random {
  const next = Object.assign(() => {  // mulberry32
    const state = (next.state = (next.state + 0x6d2b79f5) >>> 0);
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }, { state: from >>> 0 });
  return next;
}

/** Returns the index of the largest value. */
export function argmax(values: ArrayLike<number>): number {
  let at = 0;
  for (let i = 1; i < values.length; ++i) if (values[i]! > values[at]!) at = i;
  return at;
}

/** Returns the element for a selector. Throws if the page has none. */
export function find<E extends Element = HTMLElement>(selector: string, within: ParentNode = document): E {
  const found = within.querySelector<E>(selector);
  if (!found) throw new Error(`the page has no ${selector}`);
  return found;
}

/** Creates an element with properties, for example `make('p', { textContent: 'text' })`. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, properties: Partial<HTMLElementTagNameMap[K]> = {}, ...children: (Node | string)[]) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Shows a message at the top of the page, or hides it. */
export function message(text: string, kind: 'note' | 'error' = 'error'): void {
  const box = find('#message');
  box.textContent = text;
  box.className = kind;
  box.hidden = !text;
}

/** Shows an error. Explains errors of full storage. */
export function report(error: unknown): void {
  const { name, message: text } = error as Error;
  if (name === 'AbortedError') return;
  message(name === 'QuotaExceededError'
    ? 'The storage of this browser is full. Delete stored data, or download the model where you can.'
    : `${text}`);
}

/**
 * Returns the settings of a form by the names of its elements; numeric texts become numbers. Values
 * in the address (`?rate=0.01`) override those of the page. `changed` is called after each change.
 */
export function settings<S extends { [name: string]: number | string }>(
  selector: string, changed: (name: keyof S & string) => void): () => S {
  const form = find<HTMLFormElement>(selector), fields = fieldsOf(selector);
  for (const each of fields) {
    const given = parameters.get(each.name);
    if (given !== null) choose(each, given);
  }
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', ({ target }) => {
    const { name } = target as HTMLInputElement;
    if (name) changed(name);
  });
  return () => Object.fromEntries(fields.map(({ name, value }) =>
    [name, value !== '' && Number.isFinite(Number(value)) ? Number(value) : value])) as S;
}

/** Returns colors of the style sheet, for canvases: `palette().accent`. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return { accent: color('accent'), soft: color('soft'), text: color('text'), muted: color('muted'),
    line: color('line'), card: color('card') };
}

/** Calls `redraw` when the colors of the page change. */
export function onColors(redraw: () => void): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

/** Fits a canvas to its size on the screen. Returns its context, in CSS pixels, and the size. */
export function fit(canvas: HTMLCanvasElement) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** A place on a canvas, in units of its size. */
export type Point = readonly [x: number, y: number];

/**
 * Calls `begin` when a mouse, a finger or a pen starts to draw on a canvas, and `extend` with the
 * points of the stroke. One pointer draws at a time. The page does not scroll meanwhile.
 */
export function onDrawing(canvas: HTMLCanvasElement, begin: () => void,
                          extend: (points: Point[]) => void): void {
  let pointer: number | undefined;
  canvas.classList.add('pad');
  const pass = (event: PointerEvent) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const all = event.getCoalescedEvents();  // since the last frame
    extend((all.length ? all : [event]).map(
      ({ clientX, clientY }) => [(clientX - left) / width, (clientY - top) / height]));
  };
  canvas.onpointerdown = (event) => {
    if (pointer !== undefined || event.button !== 0) return;
    pointer = event.pointerId;
    canvas.setPointerCapture(pointer);
    begin();
    pass(event);
  };
  canvas.onpointermove = (event) => { if (event.pointerId === pointer) pass(event); };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    if (event.pointerId === pointer) pointer = undefined;
  };
  canvas.oncontextmenu = (event) => event.preventDefault();  // of a finger that rests
}

/** Offers bytes as a download. */
export function download(name: string, content: Uint8Array<ArrayBuffer> | string,
                         type = 'application/octet-stream'): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Files that the browser keeps for this site (the origin-private file system). */
export const storage = {
  /** Writes a file. Throws QuotaExceededError if the storage is full. */
  async write(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const folder = await navigator.storage.getDirectory();
    const stream = await (await folder.getFileHandle(name, { create: true })).createWritable();
    try {
      await stream.write(bytes);
    } catch (error) {
      await stream.abort();
      throw error;
    }
    await stream.close();
  },
  /** Returns the bytes of a file, or nothing if there is none. */
  async read(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const folder = await navigator.storage.getDirectory();
      const bytes = await (await (await folder.getFileHandle(name)).getFile()).arrayBuffer();
      return bytes.byteLength ? new Uint8Array(bytes) : undefined;
    } catch {
      return undefined;
    }
  },
};

/** Returns the content of a gzip file. */
export async function unpacked(url: string): Promise<ArrayBuffer> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return new Response(answer.body!.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

// The named fields of the settings, with their values as text.
function fieldsOf(selector: string): (HTMLInputElement | HTMLSelectElement)[] {
  return [...find<HTMLFormElement>(selector).elements].filter(
    (each): each is HTMLInputElement | HTMLSelectElement => 'name' in each && each.name !== '');
}

function choose(field: HTMLInputElement | HTMLSelectElement, value: string): void {
  if (field instanceof HTMLSelectElement && ![...field.options].some((each) => each.value === value))
    field.add(new Option(value, value));
  field.value = value;
}

// The checkpoint that the page "Inside" opens.
const insideFile = 'inside.safetensors';

type State = 'building' | 'paused' | 'running' | 'pausing' | 'done' | 'failed';

/**
 * Runs training: start, pause, step and reset, the plot of the loss, progress, device and speed.
 * Saves and opens checkpoints, and opens the page "Inside" with the current model. The panel fills
 * the element `#run`. All training is in the library's worker.
 */
export class Run<T extends Trains> {
  /** The trainer that `build` compiled. */
  trainer: T | undefined;
  /** Number of steps since the last reset. */
  steps = 0;
  private state: State = 'building';
  private models = 0;
  private goal: number;
  private loop: Promise<void> = Promise.resolve();
  private queue: Promise<void> = Promise.resolve();
  private readonly toggle = make('button', { className: 'primary', textContent: 'Start' });
  private readonly one = make('button', { textContent: 'Step' });
  private readonly again = make('button', { textContent: 'Reset' });
  private readonly save = make('button', { textContent: 'Save' });
  private readonly resume = make('button', { textContent: 'Resume', disabled: true });
  private readonly downloads = make('button', { textContent: 'Download' });
  private readonly opens = make('button', { textContent: 'Open…' });
  private readonly inside = make('button', { className: 'link', textContent: 'Look inside this model' });
  private readonly progress = make('progress', { max: 1, value: 0, ariaLabel: 'Progress' });
  private readonly pausesHidden = document.createElement('input');
  private held = false;  // paused because the page is hidden
  private readonly values = Object.fromEntries(['step', 'loss', 'steps per second', 'device'].map(
    (name) => [name, make('output', { name: name.replaceAll(' ', '-'), textContent: '–' })]));
  private readonly panel = find('#run');
  private readonly plot: LossPlot;
  private speed = 0;

  constructor(private readonly spec: Spec<T>) {
    this.goal = parameter('steps', spec.steps);
    const numbers = make('dl');
    for (const [name, value] of Object.entries(this.values))
      numbers.append(make('div', {}, make('dt', { textContent: name === 'loss' && spec.plot?.label || name }), make('dd', {}, value)));
    const figure = make('figure', { className: 'plot' });
    this.panel.append(make('div', { className: 'buttons' }, this.toggle, this.one, this.again),
      this.progress, numbers, figure, this.hidingChoice(), make('div', { className: 'buttons files' },
        this.save, this.resume, this.downloads, this.opens, this.fileInput()),
      make('p', { className: 'caption', textContent: 'Save keeps the run in this browser. Download makes it a file.' }),
      this.inside);
    this.plot = new LossPlot(figure, spec.plot ?? { label: 'loss', log: true });
    this.toggle.onclick = () => void (this.state === 'running' ? this.pause() : this.start());
    this.one.onclick = () => void this.step();
    document.addEventListener('visibilitychange', () => void this.look());
    this.again.onclick = () => void this.reset();
    this.save.onclick = () => void this.keep();
    this.resume.onclick = () => void this.bringBack();
    this.downloads.onclick = () => void this.between(async (trainer) =>
      download(this.file, await this.checkpoint(trainer)));
    this.inside.onclick = () => void this.lookInside();
    void storage.read(this.file).then((bytes) => { this.resume.disabled = !bytes; });
    (globalThis as { run?: unknown }).run = this;  // for inside.ts, which inspects other pages
    void this.rebuild();
  }

  /** Compiles again and starts at step 0. Resumes training if it was running. */
  rebuild(): Promise<void> {
    return this.inOrder(async () => {
      message('');
      await this.compiled();
      await this.spec.show?.(this.trainer!);
      this.enter('paused');
    });
  }

  private async compiled(): Promise<void> {
    this.enter('building');
    await this.trainer?.free();
    this.trainer = undefined;
    const support = await checkSupport(device);
    if (!support.device) throw new Error(support.message);
    this.trainer = await this.spec.build();
    this.panel.dataset['models'] = `${++this.models}`;
    this.describe(this.trainer.device);
    if (this.trainer.deviceKind === 'cpu' && device.kind !== 'cpu') message(support.message, 'note');
    this.clear();
  }

  /** Trains until the last step, or until pause(). */
  start(): void {
    if (!this.trainer || this.state === 'running' || this.state === 'pausing') return;
    if (this.steps >= this.goal) this.goal += parameter('steps', this.spec.steps);
    this.enter('running');
    this.loop = this.train(this.trainer);
  }

  /** Stops when the steps under way are done and counted. */
  async pause(): Promise<void> {
    if (this.state === 'running') this.enter('pausing');
    await this.loop;
    if (this.state === 'pausing') this.enter('paused');
  }

  private hidingChoice(): HTMLElement {
    this.pausesHidden.type = 'checkbox';
    this.pausesHidden.checked = parameters.get('hidden') === 'pause';
    const label: HTMLElement = document.createElement('label');
    label.className = 'check';
    label.append(this.pausesHidden, ' Pause while hidden');
    return label;
  }

  // Pauses a hidden page if requested, and resumes when it is visible again.
  private async look(): Promise<void> {
    if (document.hidden && this.pausesHidden.checked && this.state === 'running') {
      this.held = true;
      await this.pause();
    } else if (!document.hidden && this.held) {
      this.held = false;
      await this.pause();  // which may be under way
      if (this.state === 'paused') this.start();
    }
  }

  /** Runs one step. */
  step(): Promise<void> {
    return this.inOrder(async () => {
      if (!this.trainer) return;
      this.add(await this.spec.step(this.trainer));
      await this.spec.show?.(this.trainer);
    }, false);
  }

  /** True if the last step was run. */
  get done(): boolean { return this.state === 'done'; }

  /** Returns to the initial model. */
  reset(): Promise<void> {
    if (!this.trainer) return this.rebuild();
    return this.inOrder(async () => {
      message('');
      this.spec.reset?.();
      await this.trainer!.reset();
      this.clear();
      await this.spec.show?.(this.trainer!);
      this.enter('paused');
    }, false);
  }

  /** Continues at a step after a checkpoint was loaded or the model was replaced. */
  async restart(at: number): Promise<void> {
    this.clear();
    this.steps = at;
    while (this.goal <= at) this.goal += parameter('steps', this.spec.steps);
    this.update();
    if (this.trainer) await this.spec.show?.(this.trainer);
  }

  // The name of the page, and of its checkpoint.
  private get page(): string { return location.pathname.replace(/.*\/|\.html$/g, ''); }
  private get file(): string { return `${this.page}.safetensors`; }
  private get title(): string { return find('h1').textContent!; }

  private async checkpoint(trainer: T): Promise<Uint8Array<ArrayBuffer>> {
    const settings = Object.fromEntries(fieldsOf('#settings').map(({ name, value }) => [name, value]));
    const saved = { page: this.title, settings, state: this.spec.state.get() };
    return await trainer.save(described(saved)) as Uint8Array<ArrayBuffer>;
  }

  private keep(): Promise<void> {
    return this.between(async (trainer) => {
      await storage.write(this.file, await this.checkpoint(trainer));
      this.resume.disabled = false;
      message(`Saved at step ${this.steps}. Resume continues from here, even after a reload.`, 'note');
    });
  }

  private async bringBack(): Promise<void> {
    const bytes = await storage.read(this.file);
    if (bytes) await this.open(bytes, 'The saved run');
    else message('There is no saved run.');
  }

  private fileInput(): HTMLInputElement {
    const input = document.createElement('input');
    Object.assign(input, { type: 'file', name: 'checkpoint', accept: '.safetensors', hidden: true });
    input.onchange = async () => {
      const [file] = input.files!;
      if (file) await this.open(new Uint8Array(await file.arrayBuffer()), file.name);
      input.value = '';
    };
    this.opens.onclick = () => input.click();
    return input;
  }

  /**
   * Continues from a checkpoint: of this page, with its settings, or of a program with the same
   * model. Shows a message if it is neither; messages call it `file`.
   */
  open(bytes: Uint8Array, file: string): Promise<void> {
    return this.inOrder(async () => {
      message('');
      try {
        const saved = await descriptionOf(bytes, file, this.title);
        for (const each of saved ? fieldsOf('#settings') : [])
          choose(each, saved!.settings[each.name] ?? each.value);
        if (saved || !this.trainer) await this.compiled();
        await this.trainer!.load(bytes);
        if (saved) await this.spec.state.set(saved.state);
        else this.spec.reset?.();
        await this.restart((await this.trainer!.counters()).steps);
      } catch (error) {
        report(error);
      }
      this.enter(this.trainer ? 'paused' : 'failed');
    });
  }

  /** Continues from the checkpoint that lookInside() wrote. For the page "Inside". */
  async openKept(): Promise<void> {
    const bytes = await storage.read(insideFile);
    if (bytes) await this.open(bytes, 'The checkpoint of the page');
  }

  // Pauses, and opens the page "Inside" with the checkpoint.
  private async lookInside(): Promise<void> {
    await this.pause();
    await this.between(async (trainer) => {
      await storage.write(insideFile, await this.checkpoint(trainer));
      const address = `inside.html?model=${this.page}&device=${device.kind}&run=kept`;
      if (!window.open(address)) location.href = address;
    });
  }

  /** Calls `f` between two steps, then resumes training if it was running. Shows errors. */
  between(f: (trainer: T) => Promise<void>): Promise<void> {
    return this.inOrder(async () => {
      if (!this.trainer) return;
      try {
        message('');
        await f(this.trainer);
      } catch (error) {
        report(error);
      }
    });
  }

  // Pauses, and calls `f` after all previous calls are done.
  private inOrder(f: () => Promise<void>, resume = true): Promise<void> {
    const before = this.queue;
    return (this.queue = (async () => {
      await before;
      const goOn = this.state === 'running' && resume;
      await this.pause();
      try {
        await f();
        if (goOn) this.start();
      } catch (error) {
        this.fail(error);
      }
    })());
  }

  private async train(trainer: T): Promise<void> {
    try {
      let shown = 0, since = performance.now(), counted = 0, burst = 1;
      while (this.state === 'running') {
        const began = performance.now(), count = Math.max(1, Math.min(burst, this.goal - this.steps));
        const all = await Promise.all(Array.from({ length: count }, () => this.spec.step(trainer)));
        for (const each of all) counted += this.add(each);
        const now = performance.now();
        if (this.spec.overlap)
          burst = now - began < 20 ? Math.min(16, 2 * burst) : now - began > 80 ? Math.max(1, burst >> 1) : burst;
        const short = !this.speed && this.steps >= this.goal && now > since;  // ended earlier
        if (now - since > 500 || short) {
          this.speed = counted * 1000 / (now - since);
          [since, counted] = [now, 0];
        }
        if (this.steps >= this.goal && this.state === 'running') this.enter('done');
        if (now - shown > (this.spec.every ?? 100) || this.state !== 'running') {
          shown = now;
          this.update();
          await this.spec.show?.(trainer);
        }
      }
    } catch (error) {
      this.fail(error);
    }
  }

  private add(losses: number | ArrayLike<number>): number {
    const all = typeof losses === 'number' ? [losses] : Array.from(losses);
    for (const loss of all) this.plot.add(++this.steps, loss);
    this.update();
    return all.length;
  }

  private clear(): void {
    this.steps = 0;
    this.speed = 0;
    this.goal = parameter('steps', this.spec.steps);
    this.plot.clear();
    this.update();
  }

  private update(): void {
    const { step, loss } = this.values, last = this.plot.last;
    step!.textContent = `${this.steps}`;
    loss!.textContent = last === undefined ? '–' : last.toPrecision(3);
    this.values['steps per second']!.textContent = this.speed ? this.speed.toPrecision(3) : '–';
    this.progress.value = Math.min(1, this.steps / this.goal);
    this.plot.draw();
  }

  private enter(state: State): void {
    this.state = state;
    this.panel.dataset['state'] = state;
    this.toggle.textContent =
      { running: 'Pause', pausing: 'Pausing…', building: 'Compiling…' }[state as string] ?? 'Start';
    for (const each of [this.toggle, this.one, this.again, this.save, this.downloads, this.opens, this.inside])
      each.disabled = state === 'building' ||
        (state === 'failed' && each !== this.again && each !== this.opens);
    if (state === 'pausing') this.toggle.disabled = true;
  }

  private fail(error: unknown): void {
    if ((error as Error).name === 'AbortedError') return;
    this.enter('failed');
    report(error);
  }

  // Shows the short name in "webgpu (NAME); reason" or "cpu (CPU, 2 threads, WASM); reason".
  private describe(text: string): void {
    const [, kind, name = ''] = /^(\w+) \(([^)]*)\)/.exec(text) ?? ['', text];
    const cpu = kind === 'cpu';
    const output = this.values['device']!;
    output.textContent = cpu ? `CPU, ${/\d+ threads?/.exec(name)?.[0] ?? '1 thread'}` : name || text;
    output.title = text;
  }
}

// Returns the grid lines of a logarithmic axis: powers of ten, with 2 and 5 between them if there
// is room.
function visible({ scales }: uPlot, all: readonly (number | null)[]): (number | null)[] {
  const { min, max } = scales['y']!, wide = max! / min! > 100;
  return all.map((v) => {
    const mantissa = v === null ? 0 : Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
    return mantissa === 1 || (!wide && (mantissa === 2 || mantissa === 5)) ? v : null;
  });
}

/** Plot of the loss. Thins out long runs, so that drawing stays fast. */
class LossPlot {
  last: number | undefined;
  private steps: number[] = [];
  private losses: number[] = [];
  private stride = 1;
  private sum = 0;
  private count = 0;
  private drawn = 0;
  private waiting: number | undefined;
  private readonly plot: uPlot;

  constructor(private readonly host: HTMLElement, { label, log }: { label: string; log: boolean }) {
    const axis = { stroke: () => palette().muted, grid: { stroke: () => palette().line, width: 1 },
      ticks: { show: false }, font: '12px system-ui' };
    this.plot = new uPlot({
      width: 300, height: 170, padding: [8, 12, 0, 0], legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: log ? { distr: 3 } : {} },
      series: [{}, { label, stroke: () => palette().accent, width: 1.5, points: { show: false } }],
      axes: [{ ...axis, size: 28, space: 45 }, { ...axis, size: 52,
        grid: { ...axis.grid, filter: (u, all) => (log ? visible(u, all) : all) },
        filter: (u, all) => (log ? visible(u, all) : all),
        values: (_, all) => all.map((v) => (v === null ? '' :
          v !== 0 && Math.abs(v) < 1e-3 ? v.toExponential(0) : `${+v.toPrecision(3)}`)) }],
    }, [[], []], host);
    new ResizeObserver(() => this.resize()).observe(host);
    onColors(() => this.plot.redraw());
    host.prepend(make('figcaption', { textContent: label }));
  }

  add(step: number, loss: number): void {
    this.last = loss;
    this.sum += loss;
    if (++this.count < this.stride) return;
    this.steps.push(step);
    this.losses.push(this.sum / this.count);
    this.sum = this.count = 0;
    if (this.steps.length < 1000) return;
    // Merges neighbors: each point covers twice as many steps.
    this.steps = this.steps.filter((_, i) => i % 2 === 1);
    this.losses = this.steps.map((_, i) => (this.losses[2 * i]! + this.losses[2 * i + 1]!) / 2);
    this.stride *= 2;
  }

  clear(): void {
    this.steps = [];
    this.losses = [];
    this.stride = 1;
    this.sum = this.count = this.drawn = 0;
    this.last = undefined;
    this.draw();
  }

  // Draws at most every 50 ms, and the last values at the latest after this time.
  draw(): void {
    const wait = this.steps.length ? this.drawn + 50 - performance.now() : 0;
    if (wait > 0) {
      this.waiting ??= setTimeout(() => {
        this.waiting = undefined;
        this.draw();
      }, wait);
      return;
    }
    this.drawn = performance.now();
    this.plot.setData([this.steps, this.losses]);
  }

  private resize(): void {
    this.plot.setSize({ width: Math.max(200, this.host.clientWidth), height: 170 });
  }
}
