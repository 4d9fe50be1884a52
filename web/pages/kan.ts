// SPDX-License-Identifier: MIT
// A Kolmogorov-Arnold network (Liu et al. 2024): every edge is its own curve. With the target
// sin(πx) and 4 nodes it is the sample kan-tiny (1-4-1, cubic B-splines on 8 knots plus silu).
import {
  Module, abs, add, arange, compile, div, flatten, init, linear, lt, mse, mul, optim, relu, reshape,
  silu, sub, unsqueeze, where, type CompiledFunction, type Tensor, type TensorLike,
} from 'tensorgrad';
import {
  Run, device, find, fit, onColors, palette, random, recovery, seed, settings,
} from './common.js';

const knots = 8, grid = 64, batch = 256;

// Returns the B-splines at x in [-1, 1]: [..., in] -> [..., in, 8].
function splines(x: TensorLike): Tensor {
  const u = abs(sub(unsqueeze(mul(add(x, 1), (knots - 1) / 2), -1), arange(knots, 'f32')));
  const square = mul(u, u), tail = relu(sub(2, u));
  return where(lt(u, 1), add(sub(mul(mul(square, u), 0.5), square), 2 / 3),
               div(mul(mul(tail, tail), tail), 6));
}

class KanLayer extends Module {
  curves;
  weight;
  constructor(readonly inputs: number, readonly outputs: number) {
    super();
    this.curves = this.param([outputs, inputs * knots], init.normal(0, 0.1));
    this.weight = this.param([outputs, inputs], init.normal(0, 0.5));
  }
  forward(x: Tensor): Tensor {
    return add(linear(flatten(splines(x), -2), this.curves), linear(silu(x), this.weight));
  }
  /** Returns the curves of all edges at points [G, 1]: [G, outputs * inputs]. */
  edges(x: Tensor): Tensor {
    const count = this.outputs * this.inputs;
    return add(linear(flatten(splines(x), -2), reshape(this.curves, [count, knots])),
               linear(silu(x), reshape(this.weight, [count, 1])));
  }
}

class Kan extends Module {
  first;
  second;
  constructor(inputs: number, hidden: number) {
    super();
    this.first = new KanLayer(inputs, hidden);
    this.second = new KanLayer(hidden, 1);
  }
  forward(x: Tensor): Tensor { return this.second.forward(this.first.forward(x)); }
}

const targets = {
  sine: { inputs: 1, f: (x: number) => Math.sin(Math.PI * x) },
  steps: { inputs: 1, f: (x: number) => Math.tanh(12 * x) * 0.5 + Math.tanh(12 * (x - 0.6)) * 0.4 },
  product: { inputs: 2, f: (x: number, y: number) => x * y },
  paper: { inputs: 2, f: (x: number, y: number) => Math.exp(Math.sin(Math.PI * x) + y * y) / 4 - 0.75 },
};

const cells = 32;  // per side, for a function of two inputs
let draw = random(seed);
let shown: CompiledFunction<any, { first: Tensor; second: Tensor; y: Tensor }>;
let edges: { first: ArrayLike<number>; second: ArrayLike<number>; y: ArrayLike<number> } | undefined;

const chosen = settings<{ target: keyof typeof targets; hidden: number; rate: number; speed: string }>(
  '#settings', (name) => {
    if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
    else if (name !== 'speed') void run.rebuild();
  });

const even = (count: number) => Float32Array.from({ length: count }, (_, i) => 2 * i / (count - 1) - 1);
const plane = Float32Array.from({ length: cells * cells * 2 }, (_, i) =>
  even(cells)[i % 2 ? cells - 1 - Math.floor(i / 2 / cells) : (i / 2) % cells]!);

const run = new Run({
  steps: 1000,
  every: 30,
  async build() {
    const { target, hidden, rate } = chosen(), { inputs } = targets[target];
    const trainer = await compile({
      model: new Kan(inputs, hidden), loss: (net, { x, y }) => mse(net.forward(x), y),
      inputs: { x: [batch, inputs], y: [batch, 1] }, optimizer: optim.adam({ lr: rate }), seed, device, recovery });
    const points = inputs === 1 ? grid : cells * cells;
    shown = await trainer.attach({
      forward: (net, { curve, at }) => ({
        first: net.first.edges(curve), second: net.second.edges(curve), y: net.forward(at) }),
      inputs: { curve: [grid, 1], at: [points, inputs] } });
    draw = random(seed);
    return trainer;
  },
  async step(trainer) {
    const { target, speed } = chosen(), { inputs, f } = targets[target];
    const x = Float32Array.from({ length: batch * inputs }, () => draw() * 2 - 1);
    const y = Float32Array.from({ length: batch }, (_, i) => f(x[i * inputs]!, x[i * inputs + 1]!));
    if (speed === 'watch') await new Promise(requestAnimationFrame);
    return (await trainer.step({ x, y })).loss;
  },
  async show() {
    const at = targets[chosen().target].inputs === 1 ? even(grid) : plane;
    const { first, second, y } = await shown.run({ curve: even(grid), at });
    edges = { first: first.data, second: second.data, y: y.data };
    paint();
  },
  state: { get: () => ({ draw: draw.state }), set: (saved) => { draw.state = saved.draw; } },
  reset() { draw = random(seed); },
});

function paint(): void {
  if (!edges) return;
  paintNetwork(edges.first, edges.second);
  paintFunction(edges.y);
}

function paintNetwork(first: ArrayLike<number>, second: ArrayLike<number>): void {
  const { target, hidden } = chosen(), { inputs } = targets[target];
  const canvas = find<HTMLCanvasElement>('#network');
  const box = inputs === 1 ? 64 : 44, gap = 10, nodeGap = 14;
  const group = inputs * (box + gap) + nodeGap;  // the edges into one hidden node
  canvas.style.height = `${hidden * group + 8}px`;
  const { context, width, height } = fit(canvas);
  const { accent, muted, line, text, card } = palette();
  const wide = Math.min(120, width * 0.26), columns = [14, width * 0.27, width * 0.52, width * 0.75, width - 14];
  const middle = (j: number) => j * group + group / 2;
  const inputAt = (i: number) => height * (i + 1) / (inputs + 1);
  const wire = (x0: number, y0: number, x1: number, y1: number, thick: number) => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
    Object.assign(context, { strokeStyle: muted, lineWidth: thick });
    context.stroke();
  };
  const node = (x: number, y: number) => {
    context.beginPath();
    context.arc(x, y, 6, 0, 2 * Math.PI);
    context.fillStyle = text;
    context.fill();
  };
  // Draws a curve in its box, with the wires to its nodes. Wires of curves that vary more are
  // thicker.
  const edge = (values: ArrayLike<number>, count: number, index: number, x: number, y: number,
                from: readonly [number, number], to: readonly [number, number], tall: number) => {
    const curve = Array.from({ length: grid }, (_, i) => values[i * count + index]!);
    const low = Math.min(...curve), range = Math.max(...curve) - low;
    const thick = Math.min(4, 0.6 + 1.6 * range);
    wire(...from, x - wide / 2, y, thick);
    wire(x + wide / 2, y, ...to, thick);
    context.beginPath();
    context.roundRect(x - wide / 2, y - tall / 2, wide, tall, 6);
    Object.assign(context, { fillStyle: card, strokeStyle: line, lineWidth: 1 });
    context.fill();
    context.stroke();
    context.beginPath();
    curve.forEach((v, i) => context.lineTo(
      x - wide / 2 + 6 + (wide - 12) * i / (grid - 1),
      y + (tall / 2 - 6) * (1 - 2 * (v - low) / Math.max(range, 0.05))));
    Object.assign(context, { strokeStyle: accent, lineWidth: 2.2, lineJoin: 'round' });
    context.stroke();
  };
  for (let j = 0; j < hidden; ++j) {
    for (let i = 0; i < inputs; ++i) {
      const y = middle(j) + (i - (inputs - 1) / 2) * (box + gap);
      edge(first, hidden * inputs, j * inputs + i, columns[1]!, y, [columns[0]!, inputAt(i)],
           [columns[2]!, middle(j)], box);
    }
    edge(second, hidden, j, columns[3]!, middle(j), [columns[2]!, middle(j)],
         [columns[4]!, height / 2], box);
    node(columns[2]!, middle(j));
  }
  for (let i = 0; i < inputs; ++i) node(columns[0]!, inputAt(i));
  node(columns[4]!, height / 2);
  Object.assign(context, { font: '13px system-ui', fillStyle: text });
  'xy'.slice(0, inputs).split('').forEach((name, i) => context.fillText(name, columns[0]! - 4, inputAt(i) - 12));
}

// Draws a function of one input as two curves, and a function of two inputs as two maps with the
// target on the left.
function paintFunction(y: ArrayLike<number>): void {
  const { inputs, f } = targets[chosen().target];
  const { context, width, height } = fit(find<HTMLCanvasElement>('#function'));
  const { accent, muted, card } = palette();
  const wanted = Array.from(y, (_, i) => inputs === 1 ? (f as (x: number) => number)(even(grid)[i]!)
    : f(plane[2 * i]!, plane[2 * i + 1]!));
  const worst = Math.max(...wanted.map((v, i) => Math.abs(v - y[i]!)));
  find('#worst').textContent = worst.toFixed(4);
  if (inputs === 1) {
    for (const [values, color, thick] of [[wanted, muted, 2], [y, accent, 3.5]] as const) {
      context.beginPath();
      Array.from(values).forEach((v, i) => context.lineTo(
        8 + (width - 16) * i / (grid - 1), height / 2 - v * height * 0.4));
      Object.assign(context, { strokeStyle: color, lineWidth: thick, lineJoin: 'round' });
      context.stroke();
    }
    return;
  }
  const low = Math.min(...wanted), high = Math.max(...wanted);
  const side = Math.min(height, (width - 16) / 2), left = (width - 2 * side - 16) / 2;
  [wanted, y].forEach((values, which) => {
    for (let i = 0; i < cells * cells; ++i) {
      const share = Math.max(0, Math.min(1, (values[i]! - low) / (high - low)));
      context.fillStyle = `color-mix(in oklab, ${accent} ${(100 * share).toFixed(0)}%, ${card})`;
      const x = left + which * (side + 16) + side * (i % cells) / cells;
      context.fillRect(x, side * Math.floor(i / cells) / cells, side / cells + 0.5, side / cells + 0.5);
    }
  });
}

onColors(paint);
addEventListener('resize', paint);
