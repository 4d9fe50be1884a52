// SPDX-License-Identifier: MIT
// Flow matching (Lipman et al. 2023) of points: the network learns the velocity of straight lines
// from noise, at time 0, to the points of a shape, at time 1. New points follow it from noise.
import {
  Linear, Module, add, arange, compile, concat, cos, div, full, mse, mul, optim, rand, randn, silu,
  sin, stack, sub, type CompiledFunction, type Tensor, type TensorLike,
} from 'tensorgrad';
import {
  Run, device, find, fit, message, onColors, onDrawing, palette, random, recovery, seed, settings,
  type Point,
} from './common.js';

const batch = 512, count = 400, grid = 13, extent = 2.2;

class Velocity extends Module {
  layers;
  out;
  constructor(width: number) {
    super();
    this.layers = [new Linear(30, width), new Linear(width, width), new Linear(width, width)];
    this.out = new Linear(width, 2);
  }
  /** Points [B, 2] at times [B, 1] -> velocities [B, 2]. */
  forward(x: TensorLike, time: TensorLike): Tensor {
    const phase = mul(time, mul(add(arange(8, 'f32'), 1), Math.PI / 2));
    const features = [x, sin(phase), cos(phase)];
    for (const wave of [1, 2, 4]) features.push(sin(mul(x, wave)), cos(mul(x, wave)));
    let h = concat(features, 1);
    for (const layer of this.layers) h = silu(layer.forward(h));
    return this.out.forward(h);
  }
}

let draw = random(seed);
const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
const noise = Float32Array.from({ length: count * 2 }, normal);
const arrows = Float32Array.from({ length: grid * grid * 2 }, (_, i) =>
  ((i % 2 ? Math.floor(i / 2 / grid) : (i / 2) % grid) / (grid - 1) * 2 - 1) * extent * 0.93);

const shapes: { [name: string]: () => Point } = {
  spiral() {
    const turn = Math.sqrt(draw()) * 3.2 * Math.PI, far = turn / (3.2 * Math.PI) * 1.7;
    return [far * Math.cos(turn), far * Math.sin(turn)];
  },
  moons() {
    const turn = draw() * Math.PI, upper = draw() < 0.5 ? 1 : -1;
    return [1.1 * (Math.cos(turn) - 0.5) * upper, 1.1 * (Math.sin(turn) - 0.25) * upper];
  },
  rings() {
    const turn = draw() * 2 * Math.PI, far = draw() < 0.35 ? 0.7 : 1.6;
    return [far * Math.cos(turn), far * Math.sin(turn)];
  },
  squares() {
    for (;;) {
      const [x, y] = [draw() * 4, draw() * 4];
      if ((Math.floor(x) + Math.floor(y)) % 2 === 0) return [(x - 2) * 0.85, (y - 2) * 0.85];
    }
  },
};
/** The points to learn: of a shape, or drawn by the user. */
let points: Point[] = [];
let fresh = true;  // the user has not drawn yet
let path: ArrayLike<number> | undefined, field: ArrayLike<number> | undefined;
let sample: CompiledFunction<any, { path: Tensor; field: Tensor }>;

const chosen = settings<{ shape: string; width: number; rate: number; euler: number }>(
  '#settings', (name) => {
    if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
    else if (name === 'shape') shape();
    else void run.rebuild();
  });

const run = new Run({
  steps: 3000,
  every: 400,
  plot: { label: 'loss', log: false },
  async build() {
    const { width, rate, euler } = chosen();
    const trainer = await compile({
      model: new Velocity(width),
      loss: (net, { x }) => {
        const start = randn([batch, 2]), time = rand([batch, 1]), line = sub(x, start);
        return mse(net.forward(add(start, mul(time, line)), time), line);
      },
      inputs: { x: [batch, 2] }, optimizer: optim.adam({ lr: rate }), seed, device, recovery });
    sample = await trainer.attach({
      inputs: { start: [count, 2], at: [grid * grid, 2] },
      forward: (net, { start, at }) => {
        const path: Tensor[] = [start], field: Tensor[] = [];
        for (let step = 0; step < euler; ++step) {
          const here = path[step]!, time = step / euler;
          path.push(add(here, div(net.forward(here, full([count, 1], time)), euler)));
          field.push(net.forward(at, full([grid * grid, 1], time)));
        }
        return { path: stack(path, 0), field: stack(field, 0) };
      } });
    shape();
    return trainer;
  },
  async step(trainer) {
    const x = new Float32Array(batch * 2);
    for (let i = 0; i < batch; ++i) {
      const [a, b] = points[Math.floor(draw() * points.length)]!;
      x.set([a + 0.02 * normal(), b + 0.02 * normal()], 2 * i);
    }
    return (await trainer.step({ x })).loss;
  },
  async show() {
    const result = await sample.run({ start: noise, at: arrows });
    path = result.path.data;
    field = result.field.data;
    find('#distance').textContent = distance().toFixed(3);
    if (!playing) paint();
  },
  state: { get: () => ({ draw: draw.state, points }),
    set: (saved) => { [draw.state, points] = [saved.draw, saved.points]; } },
  reset: () => { draw = random(seed + 1); },
});

/** Returns the mean distance of a generated point from the shape. */
function distance(): number {
  const last = path!.length - count * 2;
  let sum = 0;
  for (let i = 0; i < count; ++i) {
    let least = Infinity;
    for (const [a, b] of points) least = Math.min(least, (path![last + 2 * i]! - a) ** 2 + (path![last + 2 * i + 1]! - b) ** 2);
    sum += Math.sqrt(least);
  }
  return sum / count;
}

function shape(): void {
  const { shape } = chosen();
  if (shape !== 'own') {
    fresh = true;
    points = Array.from({ length: 1500 }, shapes[shape]!);
  } else if (fresh) {
    points = [[0, 0]];
    message('Draw a shape in the square with the mouse or a finger.', 'note');
  }
  paint();
}

// Time in the motion from noise to shape. Pauses at the end before it restarts.
const slider = find<HTMLInputElement>('#time');
let playing = true, since = performance.now();
function animate(now: number): void {
  if (playing) {
    slider.value = `${Math.min(1, ((now - since) / 1000) % 4.5 / 3)}`;
    paint();
  }
  requestAnimationFrame(animate);
}
function play(on: boolean): void {
  playing = on;
  since = performance.now() - (Number(slider.value) < 1 ? Number(slider.value) * 3000 : 0);
  find('#play').textContent = on ? 'Hold' : 'Play';
}
slider.oninput = () => {
  play(false);
  paint();
};
find('#play').onclick = () => play(!playing);

const canvas = find<HTMLCanvasElement>('#plane');
function paint(): void {
  const { context, width, height } = fit(canvas);
  const { accent, muted, line } = palette();
  const px = (x: number) => (x / extent + 1) / 2 * width, py = (y: number) => (1 - (y / extent + 1) / 2) * height;
  context.fillStyle = muted;
  context.globalAlpha = 0.35;
  for (const [x, y] of points) context.fillRect(px(x) - 1, py(y) - 1, 2, 2);
  context.globalAlpha = 1;
  if (!path || !field) return;
  const euler = path.length / (count * 2) - 1, time = Number(slider.value) * euler;
  const now = Math.min(euler - 1, Math.floor(time)), part = time - now;
  context.beginPath();
  for (let i = 0; i < grid * grid; ++i) {
    const at = (now * grid * grid + i) * 2, x = px(arrows[2 * i]!), y = py(arrows[2 * i + 1]!);
    const [dx, dy] = [field[at]! * width / extent * 0.022, -field[at + 1]! * height / extent * 0.022];
    context.moveTo(x - dx, y - dy);
    context.lineTo(x + dx, y + dy);
    context.moveTo(x + dx * 0.3 - dy * 0.35, y + dy * 0.3 + dx * 0.35);
    context.lineTo(x + dx, y + dy);
    context.lineTo(x + dx * 0.3 + dy * 0.35, y + dy * 0.3 - dx * 0.35);
  }
  Object.assign(context, { strokeStyle: line, lineWidth: 1.3, lineCap: 'round' });
  context.stroke();
  context.fillStyle = accent;
  context.beginPath();
  for (let i = 0; i < count; ++i) {
    const from = (now * count + i) * 2, to = from + count * 2;
    const x = path[from]! + part * (path[to]! - path[from]!), y = path[from + 1]! + part * (path[to + 1]! - path[from + 1]!);
    context.moveTo(px(x), py(y));
    context.arc(px(x), py(y), 2.3, 0, 2 * Math.PI);
  }
  context.fill();
}

// Drawing a custom shape.
onDrawing(canvas, () => {
  find<HTMLSelectElement>('[name=shape]').value = 'own';
  if (fresh) points = [];
  fresh = false;
  message('');
}, (stroke) => {
  for (const [x, y] of stroke) points.push([(x * 2 - 1) * extent, (1 - y * 2) * extent]);
  if (points.length > 3000) points = points.slice(-3000);
  paint();
});

onColors(paint);
addEventListener('resize', paint);
requestAnimationFrame(animate);
