// SPDX-License-Identifier: MIT
// Learns to add two-digit numbers: the sample transformer (12 symbols, width 64, 4 heads, 8 positions,
// relu, tied output, AdamW). The sample has 3 layers and batches of 128, which the settings offer; a
// CPU learns sooner with one layer.
import {
  LayerNorm, Linear, Module, add, capture, causalMask, compile, crossEntropy, div, embedding, init,
  linear, maskedSoftmax, matmul, narrow, optim, relu, reshape, schedule, softmax, transpose,
  type CompiledFunction, type HostTensor, type Tensor, type TensorLike,
} from 'tensorgrad';
import {
  Run, argmax, device, find, fit, make, onColors, palette, random, recovery, report, seed, settings,
} from './common.js';

const length = 8, symbols = '0123456789+=', heads = 4;
const first = 5;  // the position that predicts the first digit of the result

class Block extends Module {
  norm1: LayerNorm;
  norm2: LayerNorm;
  query: Linear;
  key: Linear;
  value: Linear;
  out: Linear;
  up: Linear;
  down: Linear;
  constructor(readonly width: number, readonly layer: number) {
    super();
    [this.norm1, this.norm2] = [new LayerNorm(width), new LayerNorm(width)];
    [this.query, this.key, this.value, this.out] =
      [0, 1, 2, 3].map(() => new Linear(width, width, false)) as [Linear, Linear, Linear, Linear];
    [this.up, this.down] = [new Linear(width, 4 * width), new Linear(4 * width, width)];
  }
  // [B, T, D] -> [B, H, T, D / H]
  private split(x: Tensor): Tensor {
    return transpose(reshape(x, [-1, length, heads, this.width / heads]), 1, 2);
  }
  private attention(x: Tensor): Tensor {
    const [q, k, v] = [this.query, this.key, this.value].map((each) => this.split(each.forward(x)));
    const scores = div(matmul(q!, transpose(k!)), Math.sqrt(this.width / heads));
    const weights = capture(`attention.${this.layer}`, maskedSoftmax(scores, causalMask(length, length)));
    return this.out.forward(reshape(transpose(matmul(weights, v!), 1, 2), [-1, length, this.width]));
  }
  forward(x: Tensor): Tensor {
    const h = add(x, this.attention(this.norm1.forward(x)));
    return add(h, this.down.forward(relu(this.up.forward(this.norm2.forward(h)))));
  }
}

class Adder extends Module {
  symbols;
  positions;
  blocks: Block[];
  last: LayerNorm;
  constructor(width: number, layers: number) {
    super();
    this.symbols = this.param([symbols.length, width], init.normal(0, 0.02));
    this.positions = this.param([length, width], init.normal(0, 0.02));
    this.blocks = Array.from({ length: layers }, (_, i) => new Block(width, i));
    this.last = new LayerNorm(width);
  }
  // Symbols i32 [B, T] -> logits [B, T, symbols].
  forward(text: TensorLike): Tensor {
    let x = add(embedding(text, this.symbols), this.positions);
    for (const block of this.blocks) x = block.forward(x);
    return linear(this.last.forward(x), this.symbols);
  }
}

// "ab+cd=" and the digits of the result, the last one first.
const textOf = (a: number, b: number) => [Math.floor(a / 10), a % 10, 10, Math.floor(b / 10), b % 10, 11,
  (a + b) % 10, Math.floor((a + b) / 10) % 10, Math.floor((a + b) / 100)];
const pairs = Array.from({ length: 10_000 }, (_, i) => [Math.floor(i / 100), i % 100] as const);
const isHeldOut = ([a, b]: readonly [number, number]) => ((100 * a + b) * 31 + 7) % 5 === 0;
const training = pairs.filter((each) => !isHeldOut(each));
const heldOut = pairs.filter(isHeldOut).filter((_, i) => i % 10 === 0);

let predict: CompiledFunction<{ text: { shape: readonly [null, number]; dtype: 'i32' } }, Tensor>;
let draw = random(seed), tested = -1;
let maps: HostTensor[] = [], said: number[] = [], chosenHead = 0;

const chosen = settings<{ layers: number; width: number; batch: number; rate: number }>(
  '#settings', (name) => void (name === 'rate'
    ? run.between((trainer) => trainer.setLR(rate())) : run.rebuild()));
const rate = () => schedule.linear(chosen().rate, chosen().rate / 10, 1500);

const run = new Run({
  steps: 1500,
  every: 500,
  overlap: true,
  async build() {
    const { layers, width, batch } = chosen();
    const trainer = await compile({
      model: new Adder(width, layers),
      loss: (net, { text, digits }) =>
        crossEntropy(narrow(net.forward(text), 1, first, 3), digits),
      inputs: { text: { shape: [batch, length], dtype: 'i32' }, digits: { shape: [batch, 3], dtype: 'i32' } },
      optimizer: optim.adamw({ lr: rate(), weightDecay: 0.01 }), clipGradNorm: 1, seed, device, recovery });
    predict = await trainer.attach({
      forward: (net, { text }) => softmax(net.forward(text)),
      inputs: { text: { shape: [null, length], dtype: 'i32' } } });
    restart();
    return trainer;
  },
  async step(trainer) {
    const all = Array.from({ length: chosen().batch }, () =>
      textOf(...training[Math.floor(draw() * training.length)]!));
    return (await trainer.step({
      text: all.flatMap((each) => each.slice(0, length)),
      digits: all.flatMap((each) => each.slice(first + 1)) })).loss;
  },
  async show() {
    await answer();
    if (tested < 0 || run.done || run.steps - tested >= 100) await test();
  },
  state: { get: () => ({ draw: draw.state }), set: (saved) => { draw.state = saved.draw; } },
  reset: restart,
});

function restart(): void { [draw, tested] = [random(seed), -1]; }

// Returns the digits that the network predicts, one after another. Each becomes input for the next.
async function addUp(sums: readonly (readonly [number, number])[], captures: string[] = []) {
  const text = Int32Array.from(sums.flatMap((each) => textOf(...each).slice(0, first + 1).concat(0, 0)));
  const digits = sums.map((): number[] => []);
  let seen: { [name: string]: HostTensor } = {};
  for (let at = first; at < first + 3; ++at) {
    const last = at === first + 2;
    seen = await predict.run({ text }, { captures: last ? captures : [] });
    const { data } = seen['output']!;
    for (const [i, each] of digits.entries()) {
      const row = i * length + at;
      const digit = argmax(data.subarray(row * symbols.length, (row + 1) * symbols.length));
      each.push(digit);
      if (!last) text[i * length + at + 1] = digit;
    }
  }
  return { digits, seen };
}

async function test(): Promise<void> {
  tested = run.steps;
  const { digits } = await addUp(heldOut);
  const right = digits.filter((each, i) => `${each}` === `${textOf(...heldOut[i]!).slice(first + 1)}`);
  find('#accuracy').textContent = `${(100 * right.length / heldOut.length).toFixed(1)} %`;
}

// ---- The sum that is typed.

const form = find<HTMLFormElement>('#sum');
const fields = ['a', 'b'].map((name) => find<HTMLInputElement>(`[name=${name}]`, form));
form.onsubmit = (event) => event.preventDefault();
form.oninput = () => { if (run.trainer) void answer().catch(report); };

async function answer(): Promise<void> {
  const [a, b] = fields.map(({ value }) => (/^\d{1,2}$/.test(value.trim()) ? Number(value) : -1)) as [number, number];
  if (a < 0 || b < 0) {
    find('#answer').textContent = '–';
    find('#verdict').textContent = 'Type two numbers from 0 to 99.';
    return;
  }
  const layers = Array.from({ length: chosen().layers }, (_, i) => `attention.${i}`);
  const { digits, seen } = await addUp([[a, b]], layers);
  said = digits[0]!;
  const value = said.toReversed().map((digit) => symbols[digit]).join('').replace(/^0+(?=\d)/, '');
  find('#answer').textContent = value;
  find('#verdict').textContent = `${value === `${a + b}` ? 'Right.' : `Wrong: it is ${a + b}.`} ` +
    `This sum is ${isHeldOut([a, b]) ? 'held out' : 'trained on'}.`;
  maps = layers.map((name) => seen[name]!);
  paint([...textOf(a, b).slice(0, first + 1), ...said]);
}

// ---- Attention: small maps to choose from, and the selected one with its labels.

let text: number[] = [];

function paint(of = text): void {
  text = of;
  const box = find('#maps'), count = maps.length * heads;
  if (!count) return;
  if (box.childElementCount !== count) {
    chosenHead = Math.min(chosenHead, count - 1);
    box.replaceChildren(...Array.from({ length: count }, (_, i) => make('button', {
      ariaLabel: `Layer ${Math.floor(i / heads) + 1}, head ${i % heads + 1}`,
      onclick: () => { chosenHead = i; paint(); },
    }, make('canvas'))));
  }
  box.classList.toggle('single', maps.length === 1);
  const { accent, card } = palette();
  [...box.children].forEach((button, i) => {
    button.setAttribute('aria-pressed', `${i === chosenHead}`);
    const canvas = find<HTMLCanvasElement>('canvas', button);
    [canvas.width, canvas.height] = [length, length];
    const context = canvas.getContext('2d')!;
    Object.assign(context, { fillStyle: card });
    context.fillRect(0, 0, length, length);
    cells(i, (row, column, weight) => {
      Object.assign(context, { globalAlpha: weight, fillStyle: accent });
      context.fillRect(column, row, 1, 1);
    });
  });
  paintLarge();
}

function cells(head: number, f: (row: number, column: number, weight: number) => void): void {
  const data = maps[Math.floor(head / heads)]!.data.subarray(head % heads * length * length);
  for (let row = 0; row < length; ++row)
    for (let column = 0; column <= row; ++column) f(row, column, data[row * length + column]!);
}

function paintLarge(): void {
  const { context, width } = fit(find<HTMLCanvasElement>('#large'));
  const { accent, line, muted, text: ink } = palette();
  const margin = width * 0.1, cell = (width - 2 * margin) / length;
  Object.assign(context, { font: `${Math.round(cell * 0.45)}px system-ui`, textAlign: 'center', textBaseline: 'middle' });
  for (let i = 0; i < length; ++i) {
    const at = margin + (i + 0.5) * cell, label = symbols[text[i]!]!;
    Object.assign(context, { globalAlpha: 1, fillStyle: i > first ? accent : ink });
    context.fillText(label, at, margin * 0.5);
    context.fillText(label, margin * 0.5, at);
    if (i < first) continue;
    context.fillStyle = accent;  // the prediction of this position
    context.fillText(`→ ${symbols[text[i + 1]!]}`, width - margin * 0.45, at);
  }
  cells(chosenHead, (row, column, weight) => {
    const [x, y] = [margin + column * cell, margin + row * cell];
    Object.assign(context, { globalAlpha: 1, fillStyle: line });
    context.fillRect(x + 1, y + 1, cell - 2, cell - 2);
    Object.assign(context, { globalAlpha: weight, fillStyle: accent });
    context.fillRect(x + 1, y + 1, cell - 2, cell - 2);
    if (weight < 0.2) return;
    Object.assign(context, { globalAlpha: 1, fillStyle: weight > 0.6 ? palette().card : muted });
    context.save();
    context.font = `${Math.round(cell * 0.26)}px system-ui`;
    context.fillText(weight.toFixed(2), x + cell / 2, y + cell / 2);
    context.restore();
  });
}

onColors(() => paint());
addEventListener('resize', () => paint());
