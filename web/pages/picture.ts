// SPDX-License-Identifier: MIT
// Learns a picture as a function from position to color: the sample nerf-tiny (Fourier features of
// 8 frequencies, 32-64-64-64-3, relu and sigmoid, 1024 pixels per step, 64 x 64 pixels).
import {
  Linear, Module, compile, concat, cos, mse, mul, optim, relu, sigmoid, sin, type CompiledFunction,
  type Tensor,
} from 'tensorgrad';
import {
  Run, device, download, find, make, message, recovery, report, seed, settings,
} from './common.js';

class Field extends Module {
  first;
  second;
  third;
  color;
  constructor(readonly waves: number, width: number) {
    super();
    this.first = new Linear(4 * waves, width);
    this.second = new Linear(width, width);
    this.third = new Linear(width, width);
    this.color = new Linear(width, 3);
  }
  /** Positions [B, 2] in (-1, 1) -> colors [B, 3] in (0, 1). */
  forward(place: Tensor): Tensor {
    const features: Tensor[] = [];
    for (let k = 0; k < this.waves; ++k) {
      const phase = mul(place, Math.PI * 2 ** k);
      features.push(sin(phase), cos(phase));
    }
    let h = concat(features, 1);
    for (const layer of [this.first, this.second, this.third]) h = relu(layer.forward(h));
    return sigmoid(this.color.forward(h));
  }
}

/** Returns the centers of side x side pixels, row by row. */
function places(side: number): Float32Array {
  return Float32Array.from({ length: side * side * 2 }, (_, i) =>
    ((i % 2 ? Math.floor(i / 2 / side) : (i / 2) % side) + 0.5) / side * 2 - 1);
}

let painter: CompiledFunction<{ place: readonly [number, number] }, Tensor>;

const chosen = settings<{
  picture: string; side: number; width: number; waves: number; rate: number; zoom: number;
}>('#settings', (name) => {
  if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
  else if (name === 'picture') void choose(chosen().picture);
  else if (name) void run.rebuild();
});

let source: CanvasImageSource & { width: number; height: number } =
  chosen().picture === 'text' ? sample() : drawn();

const run = new Run({
  steps: 2000,
  every: 150,
  async build() {
    const { side, width, waves, rate, zoom } = chosen(), pixels = side * side;
    const trainer = await compile({
      model: new Field(waves, width), loss: (net, { place, color }) => mse(net.forward(place), color),
      dataset: { place: [pixels, 2], color: [pixels, 3] }, batch: 1024,
      optimizer: optim.adam({ lr: rate }), seed, device, recovery });
    await trainer.uploadData('place', places(side));
    await trainer.uploadData('color', target());
    painter = await trainer.attach({
      forward: (net, { place }) => net.forward(place), inputs: { place: [pixels * zoom ** 2, 2] } });
    return trainer;
  },
  step: (trainer) => trainer.run(5),
  state: {
    get: () => ({ picture: find<HTMLCanvasElement>('#target').toDataURL() }),
    async set(saved) {
      source = Object.assign(new Image(), { src: saved.picture });
      await (source as HTMLImageElement).decode();
      await run.trainer!.uploadData('color', target());
    },
  },
  async show() {
    const { side, zoom } = chosen();
    const colors = await painter.call({ place: places(side * zoom) });
    const canvas = find<HTMLCanvasElement>('#learned');
    canvas.width = canvas.height = side * zoom;
    const image = new ImageData(side * zoom, side * zoom);
    for (let i = 0; i < image.data.length; ++i)
      image.data[i] = i % 4 === 3 ? 255 : colors[Math.floor(i / 4) * 3 + i % 4]! * 255 + 0.5;
    canvas.getContext('2d')!.putImageData(image, 0, 0);
    const wanted = target();
    let error = 0;
    for (let i = 0; i < wanted.length; ++i) {
      const pixel = Math.floor(i / 3), x = pixel % side, y = Math.floor(pixel / side);
      const middle = Math.floor(zoom / 2);
      const at = ((y * zoom + middle) * side * zoom + x * zoom + middle) * 3 + i % 3;
      error += (colors[at]! - wanted[i]!) ** 2 / wanted.length;
    }
    find('#quality').textContent = (-10 * Math.log10(error)).toFixed(1);
  },
});

/** Draws the selected picture at the training size, cropped to a square, and returns its colors. */
function target(): Float32Array {
  const { side } = chosen(), canvas = find<HTMLCanvasElement>('#target');
  canvas.width = canvas.height = side;
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const square = Math.min(source.width, source.height);
  context.imageSmoothingQuality = 'high';
  context.drawImage(source, (source.width - square) / 2, (source.height - square) / 2, square, square,
                    0, 0, side, side);
  const { data } = context.getImageData(0, 0, side, side);
  return Float32Array.from({ length: side * side * 3 }, (_, i) => data[Math.floor(i / 3) * 4 + i % 3]! / 255);
}

/** Continues training with another picture. */
async function take(next: typeof source): Promise<void> {
  source = next;
  await run.between(async (trainer) => trainer.uploadData('color', target()));
  if (run.trainer) await run.step();
}

async function choose(name: string): Promise<void> {
  if (name === 'own') find<HTMLInputElement>('#file').click();
  else await take(name === 'text' ? sample() : drawn());
}

async function open(file: File | undefined): Promise<void> {
  if (!file) return;
  try {
    const image = await createImageBitmap(file).catch(() => {
      throw new Error(`${file.name} is not a picture that this browser can read. Use PNG, JPEG, WebP or GIF.`);
    });
    message('');
    find<HTMLSelectElement>('[name=picture]').value = 'own';
    await take(image);
  } catch (error) {
    report(error);
  }
}

/** A landscape. */
function drawn(): HTMLCanvasElement {
  const canvas = make('canvas', { width: 256, height: 256 }), context = canvas.getContext('2d')!;
  const sky = context.createLinearGradient(0, 0, 0, 256);
  for (const [at, color] of [[0, '#16325c'], [0.45, '#c7617a'], [0.62, '#f7c272']] as const) sky.addColorStop(at, color);
  context.fillStyle = sky;
  context.fillRect(0, 0, 256, 256);
  context.fillStyle = '#fff1cf';
  context.beginPath();
  context.arc(168, 118, 26, 0, 2 * Math.PI);
  context.fill();
  for (const [color, base, high, wave] of [['#7d4a6b', 150, 34, 46], ['#4a3358', 178, 26, 31], ['#22203c', 210, 18, 23]] as const) {
    context.fillStyle = color;
    context.beginPath();
    context.moveTo(0, 256);
    for (let x = 0; x <= 256; x += 2)
      context.lineTo(x, base - high * Math.abs(Math.sin(x / wave + base)) - 6 * Math.sin(x / 9));
    context.lineTo(256, 256);
    context.fill();
  }
  return canvas;
}

/** The picture of the sample: a radial gradient with a text. */
function sample(): HTMLCanvasElement {
  const canvas = make('canvas', { width: 256, height: 256 }), context = canvas.getContext('2d')!;
  const glow = context.createRadialGradient(128, 128, 8, 128, 128, 180);
  for (const [at, color] of [[0, '#ffd27a'], [0.5, '#e0527a'], [1, '#26184a']] as const) glow.addColorStop(at, color);
  context.fillStyle = glow;
  context.fillRect(0, 0, 256, 256);
  Object.assign(context, { fillStyle: 'white', font: 'bold 88px system-ui, sans-serif', textAlign: 'center', textBaseline: 'middle' });
  context.fillText('grad', 128, 128);
  return canvas;
}

find<HTMLInputElement>('#file').onchange = ({ target: input }) =>
  void open((input as HTMLInputElement).files?.[0]);
find('#open').onclick = () => find<HTMLInputElement>('#file').click();
find('#save').onclick = () => find<HTMLCanvasElement>('#learned').toBlob(async (blob) => {
  if (blob) download('picture.png', new Uint8Array(await blob.arrayBuffer()), 'image/png');
});
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  void open(event.dataTransfer?.files[0]);
});
addEventListener('paste', (event) => void open(event.clipboardData?.files[0]));
