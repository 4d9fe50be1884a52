// SPDX-License-Identifier: MIT
// Recognizes handwritten digits: the samples digit-canvas (the MLP) and mnist-cnn (the CNN). Like
// digit-canvas, uses compile, step, attach with a dynamic size, captures, singleFlight, setLR,
// replaceModel, reset, downloadParams, save and load.
import {
  Conv2d, Linear, Module, capture, compile, crossEntropy, dropout, maxPool2d, optim, relu, reshape,
  singleFlight, softmax, type CompiledFunction, type HostTensor, type Tensor, type Trainer,
} from 'tensorgrad';
import {
  Run, argmax, device, find, make, onDrawing, random, recovery, report, seed, settings, unpacked,
  type Point,
} from './common.js';

const side = 28, pixels = side * side, batch = 64, tests = 500;

abstract class Classifier extends Module { abstract forward(x: Tensor): Tensor; }

class Cnn extends Classifier {
  conv1: Conv2d;
  conv2: Conv2d;
  fc1: Linear;
  fc2 = new Linear(64, 10);
  constructor(channels: number) {
    super();
    this.conv1 = new Conv2d(1, channels, 3, { padding: 1 });
    this.conv2 = new Conv2d(channels, 2 * channels, 3, { padding: 1 });
    this.fc1 = new Linear(2 * channels * 7 * 7, 64);
  }
  forward(x: Tensor): Tensor {
    const h = capture('features', relu(this.conv1.forward(reshape(x, [x.shape[0]!, 1, side, side]))));
    const g = maxPool2d(relu(this.conv2.forward(maxPool2d(h, 2))), 2);
    return this.fc2.forward(relu(this.fc1.forward(reshape(g, [x.shape[0]!, -1]))));
  }
}

class Mlp extends Classifier {
  hidden: Linear;
  out: Linear;
  constructor(units: number) {
    super();
    this.hidden = new Linear(pixels, units);
    this.out = new Linear(units, 10);
  }
  forward(x: Tensor): Tensor {
    const h = capture('features', relu(this.hidden.forward(x)));
    return this.out.forward(dropout(h, 0.1));
  }
}

// Names of models in the settings are like 'cnn-8'.
function makeModel(name: string): Classifier {
  const [kind, size] = name.split('-');
  return kind === 'cnn' ? new Cnn(Number(size)) : new Mlp(Number(size));
}

// Labels, and images with values 0 to 255. The last 1000 are held out for tests.
interface Digits { labels: Uint8Array; images: Uint8Array; trained: number }
const digits: Promise<Digits> = unpacked('digits.gz').then((buffer) => {
  const count = new DataView(buffer).getUint32(0, true);
  return { labels: new Uint8Array(buffer, 4, count), images: new Uint8Array(buffer, 4 + count),
    trained: count - 1000 };
});
const image = ({ images }: Digits, i: number) =>
  Float32Array.from(images.subarray(i * pixels, (i + 1) * pixels), (v) => v / 255);

type Predict = CompiledFunction<{ x: readonly [null, number] }, Tensor>;
let predict: Predict;
let next = random(seed), shuffle = seed, order: number[] = [], example = 0;
let tested = -1;  // step of the last test

function begin(): void { [next, order, tested] = [random(seed), [], -1]; }

// Returns the index of the next training image. `shuffle` is the random state of the last shuffle.
function draw(count: number): number {
  if (!order.length) {
    shuffle = next.state;
    order = shuffled(count);
  }
  return order.pop()!;
}

const chosen = settings<{ model: string; rate: number }>('#settings', (name) => {
  void run.between(async (trainer) => {
    if (name === 'rate') return trainer.setLR(chosen().rate);
    await trainer.replaceModel(makeModel(chosen().model));  // `predict` uses the new model
    begin();
    await run.restart(0);
  });
});

const run = new Run({
  steps: 1000,
  every: 400,
  overlap: true,
  async build() {
    await digits;
    const trainer = await compile({
      model: makeModel(chosen().model), loss: (net, { x, y }) => crossEntropy(net.forward(x), y),
      inputs: { x: [batch, pixels], y: { shape: [batch], dtype: 'i32' } },
      optimizer: optim.adamw({ lr: chosen().rate, weightDecay: 0.01 }), clipGradNorm: 1, seed, device, recovery });
    predict = await trainer.attach({
      forward: (net, { x }) => softmax(net.forward(x)), inputs: { x: [null, pixels] } });
    begin();
    return trainer;
  },
  async step(trainer) {
    const data = await digits;
    const x = new Float32Array(batch * pixels), y = new Int32Array(batch);
    for (let i = 0; i < batch; ++i) {
      const at = draw(data.trained);
      x.set(image(data, at), i * pixels);
      y[i] = data.labels[at]!;
    }
    return (await trainer.step({ x, y })).loss;
  },
  async show(trainer) {
    await read();
    const { weight } = first(await trainer.downloadParams());
    paintKernels(weight);
    if (tested < 0 || run.done || run.steps - tested >= 50 || run.steps < tested) await test();
  },
  state: {
    get: () => ({ draw: order.length ? shuffle : next.state, left: order.length }),
    async set({ draw, left }) {
      next.state = shuffle = draw;
      order = left ? shuffled((await digits).trained).slice(0, left) : [];
    },
  },
  reset: begin,
});

function shuffled(count: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; --i) {
    const j = Math.floor(next() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

// Computes the accuracy on held-out digits.
async function test(): Promise<void> {
  tested = run.steps;
  const data = await digits, x = new Float32Array(tests * pixels);
  for (let i = 0; i < tests; ++i) x.set(image(data, data.trained + i), i * pixels);
  const p = await predict.call({ x });
  let right = 0;
  for (let i = 0; i < tests; ++i)
    right += Number(argmax(p.subarray(10 * i, 10 * i + 10)) === data.labels[data.trained + i]);
  find('#accuracy').textContent = `${(100 * right / tests).toFixed(1)} %`;
}

// ---- The drawing: strokes, or an example of the data.

const pad = find<HTMLCanvasElement>('#pad');
let strokes: Point[][] = [], shown = new Float32Array(pixels), features: HostTensor | undefined;

onDrawing(pad, () => strokes.push([]), (points) => {
  strokes.at(-1)?.push(...points);
  shown = centered(strokes);
  paintPad();
  void latest().catch(report);
});

find('#clear').onclick = () => {
  [strokes, shown] = [[], new Float32Array(pixels)];
  paintPad();
  void latest().catch(report);
};
find('#example').onclick = async () => {
  const data = await digits;
  [strokes, shown] = [[], image(data, data.trained + tests + example++ % tests)];
  paintPad();
  void latest().catch(report);
};

function strokePath(context: CanvasRenderingContext2D, all: Point[][], map: (p: Point) => Point, thick: number) {
  Object.assign(context, { strokeStyle: '#fff', lineWidth: thick, lineCap: 'round', lineJoin: 'round' });
  for (const stroke of all) {
    context.beginPath();
    for (const point of stroke) context.lineTo(...map(point));
    if (stroke.length === 1) context.lineTo(...map(stroke[0]!));
    context.stroke();
  }
}

// Scales strokes as in MNIST: the longer side is 20 pixels, and the center of mass is in the
// middle.
function centered(all: Point[][]): Float32Array<ArrayBuffer> {
  const points = all.flat(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [left, right, top, bottom] =
    [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = 18 / Math.max(right - left, bottom - top, 0.15);
  const render = (dx: number, dy: number) => {
    const context = make('canvas', { width: side, height: side }).getContext('2d')!;
    strokePath(context, all, ([x, y]) => [
      (x - (left + right) / 2) * scale + side / 2 + dx,
      (y - (top + bottom) / 2) * scale + side / 2 + dy], 2.4);
    const { data } = context.getImageData(0, 0, side, side);
    return Float32Array.from({ length: pixels }, (_, i) => data[4 * i + 3]! / 255);
  };
  const once = render(0, 0);
  const mass = once.reduce((sum, v) => sum + v, 0) || 1;
  const middle = (f: (i: number) => number) => once.reduce((sum, v, i) => sum + v * (f(i) + 0.5), 0) / mass;
  return render(side / 2 - middle((i) => i % side), side / 2 - middle((i) => Math.floor(i / side)));
}

function paintPad(): void {
  const context = pad.getContext('2d')!;
  context.clearRect(0, 0, pad.width, pad.height);
  if (strokes.length) {
    strokePath(context, strokes, ([x, y]) => [x * pad.width, y * pad.height], 20);
  } else if (shown.some((v) => v > 0)) {
    context.imageSmoothingEnabled = false;
    context.drawImage(picture(make('canvas'), shown, side, 0, 1), 0, 0, pad.width, pad.height);
  } else {
    Object.assign(context, { fillStyle: '#8a929c', font: '16px system-ui', textAlign: 'center' });
    context.fillText('Draw a digit', pad.width / 2, pad.height / 2);
  }
}

const bars = find('#bars');
bars.append(...Array.from({ length: 10 }, (_, digit) =>
  make('li', {}, `${digit}`, make('i'), make('span', { textContent: '–' }))));

async function read(): Promise<void> {
  if (!shown.some((v) => v > 0)) features = undefined;
  const { output: { data: p }, features: seen } =
    await predict.run({ x: shown }, { captures: ['features'] });
  const empty = !shown.some((v) => v > 0);
  features = empty ? undefined : seen;
  const top = argmax(p);
  find('#guess').textContent = empty ? '–' : `${top}`;
  find('#reading').hidden = empty;
  [...bars.children].forEach((row, digit) => {
    row.className = !empty && digit === top ? 'best' : '';
    find<HTMLElement>('i', row).style.transform = `scaleX(${empty ? 0 : Math.max(p[digit]!, 0.004)})`;
    find('span', row).textContent = empty ? '–' : `${(100 * p[digit]!).toFixed(0)} %`;
  });
}
// While the model is busy, only the latest state of the drawing waits.
const latest = singleFlight(async () => { if (run.trainer) await read(); });

// ---- The first layer: each kernel, and its features of the drawing for a CNN.

const first = (params: { [name: string]: HostTensor }) =>
  ({ weight: (params['conv1.weight'] ?? params['hidden.weight'])! });

// Draws values as an image; `low` to `high` is dark to bright.
function picture(canvas: HTMLCanvasElement, values: ArrayLike<number>, size: number, low: number, high: number) {
  [canvas.width, canvas.height] = [size, size];
  const context = canvas.getContext('2d')!, pixels = context.createImageData(size, size);
  for (let i = 0; i < size * size; ++i) {
    const v = Math.max(0, Math.min(1, (values[i]! - low) / (high - low)));
    pixels.data.set([16 + 229 * v, 18 + 230 * v, 20 + 225 * v, 255], 4 * i);
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function paintKernels({ shape, data }: HostTensor): void {
  const box = find('#kernels'), conv = shape.length === 4, count = Math.min(shape[0]!, 64);
  const size = conv ? shape[2]! : side, each = size * size;
  if (box.childElementCount !== count || box.classList.contains('single') === conv) {
    box.classList.toggle('single', !conv);
    box.replaceChildren(...Array.from({ length: count }, () =>
      make('div', {}, ...Array.from({ length: conv ? 2 : 1 }, () => make('canvas')))));
    find('#about-kernels').textContent = conv
      ? 'Each pair: a kernel of the first convolution, and what it finds in your drawing.'
      : 'Weights of the hidden units, one for each pixel. Bright pixels excite, dark ones inhibit.';
  }
  const largest = (values: ArrayLike<number>) =>
    Array.from(values).reduce((max, v) => Math.max(max, Math.abs(v)), 1e-6);
  const most = largest(data), strongest = largest(features?.data ?? []);
  [...box.children].forEach((pair, i) => {
    const [kernel, map] = pair.children as unknown as HTMLCanvasElement[];
    picture(kernel!, data.subarray(i * each, (i + 1) * each), size, -most, most);
    if (map) {
      picture(map, features?.data.subarray(i * pixels, (i + 1) * pixels) ?? new Float32Array(pixels),
              side, 0, strongest);
    }
  });
}

paintPad();
