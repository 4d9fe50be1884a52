// SPDX-License-Identifier: MIT
// Learns a curve from random points: the sample mlp-sin (1-64-64-1, relu, Adam, mean squared error).
import {
  Linear, Module, compile, gelu, mse, optim, relu, sin, tanh, type CompiledFunction, type Tensor,
} from 'tensorgrad';
import {
  Run, device, find, fit, onColors, palette, random, recovery, seed, settings,
} from './common.js';

const activations = { relu, tanh, gelu, sin };
const targets = {
  sine: Math.sin,
  square: (x: number) => (Math.sin(2 * x) > 0 ? 0.8 : -0.8),
  chirp: (x: number) => Math.sin((x + Math.PI) ** 2 / 2),
};

class Mlp extends Module {
  in: Linear;
  mid: Linear;
  out: Linear;
  constructor(width: number, readonly activation: keyof typeof activations) {
    super();
    this.in = new Linear(1, width);
    this.mid = new Linear(width, width);
    this.out = new Linear(width, 1);
  }
  forward(x: Tensor): Tensor {
    const act = activations[this.activation];
    return this.out.forward(act(this.mid.forward(act(this.in.forward(x)))));
  }
}

const points = 256;  // of the plotted curve
const grid = Float32Array.from({ length: points }, (_, i) => (i / (points - 1) * 2 - 1) * Math.PI);
let curve: ArrayLike<number> = [];
let predict: CompiledFunction<{ x: readonly [number, number] }, Tensor>;
let batch = { x: new Float32Array(), y: new Float32Array() };
let draw = random(seed);

const chosen = settings<{
  target: keyof typeof targets; rate: number; batch: number; width: number;
  activation: keyof typeof activations;
}>('#settings', (name) => {
  if (name === 'target') paint();
  else if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
  else void run.rebuild();
});

const run = new Run({
  steps: 2000,
  every: 40,
  overlap: true,
  async build() {
    const { batch: size, rate, width, activation } = chosen();
    const trainer = await compile({
      model: new Mlp(width, activation), loss: (net, { x, y }) => mse(net.forward(x), y),
      inputs: { x: [size, 1], y: [size, 1] }, optimizer: optim.adam({ lr: rate }), seed, device, recovery });
    predict = await trainer.attach({
      forward: (net, { x }) => net.forward(x), inputs: { x: [points, 1] } });
    start();
    return trainer;
  },
  async step(trainer) {
    const { batch: size, target } = chosen();
    const x = Float32Array.from({ length: size }, () => (draw() * 2 - 1) * Math.PI);
    batch = { x, y: x.map(targets[target]) };
    return (await trainer.step(batch)).loss;
  },
  async show() {
    curve = await predict.call({ x: grid });
    paint();
  },
  state: { get: () => ({ draw: draw.state }), set: (saved) => { draw.state = saved.draw; } },
  reset: start,
});

function start(): void {
  draw = random(seed);
  batch = { x: new Float32Array(), y: new Float32Array() };
}

function paint(): void {
  const { context, width, height } = fit(find<HTMLCanvasElement>('#curve'));
  const { accent, muted, line, text } = palette();
  const target = targets[chosen().target];
  const px = (x: number) => (x / Math.PI + 1) / 2 * (width - 16) + 8;
  const py = (y: number) => height / 2 - y * height * 0.38;
  const stroke = (color: string, thick: number, f: (i: number) => number) => {
    context.beginPath();
    grid.forEach((x, i) => context.lineTo(px(x), py(f(i))));
    Object.assign(context, { strokeStyle: color, lineWidth: thick, lineJoin: 'round' });
    context.stroke();
  };
  stroke(line, 1, () => 0);
  context.globalAlpha = 0.4;
  stroke(muted, 9, (i) => target(grid[i]!));
  context.globalAlpha = 1;
  if (!curve.length) return;
  stroke(accent, 3, (i) => curve[i]!);
  context.fillStyle = text;
  batch.x.subarray(0, 256).forEach((x, i) => context.fillRect(px(x) - 1, py(batch.y[i]!) - 1, 2, 2));
  const error = grid.reduce((sum, x, i) => sum + Math.abs(curve[i]! - target(x)), 0) / points;
  find('#error').textContent = error.toFixed(4);
}

onColors(paint);
addEventListener('resize', paint);
