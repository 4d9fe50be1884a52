// SPDX-License-Identifier: MIT
// Flow matching of handwritten digits: the sample flow-matching-tiny (convolutions 1-32-32-32-1, a
// vector for each of 101 times, 64 images per step, Adam at 2e-4, gradients clipped to 1, 25 Euler
// steps). The network is small: it learns strokes rather than digits.
import {
  Conv2d, Embedding, Linear, Module, add, cast, compile, div, mse, mul, optim, randn, relu, reshape, sub,
  type CompiledFunction, type Tensor,
} from 'tensorgrad';
import {
  Run, device, find, make, onColors, palette, random, recovery, seed, settings, unpacked,
} from './common.js';

const side = 28, pixels = side * side, times = 100, shown = 9;

class Velocity extends Module {
  time = new Embedding(times + 1, 32);
  mix = new Linear(32, 32);
  first = new Conv2d(1, 32, 3, { padding: 1 });
  second = new Conv2d(32, 32, 3, { padding: 1 });
  third = new Conv2d(32, 32, 3, { padding: 1 });
  out = new Conv2d(32, 1, 3, { padding: 1 });
  /** Images [B, 1, 28, 28] at times i32 [B] from 0 to 100 -> velocities. */
  forward(x: Tensor, t: Tensor): Tensor {
    const when = reshape(this.mix.forward(this.time.forward(t)), [t.shape[0]!, 32, 1, 1]);
    const h = relu(add(this.first.forward(x), when));
    return this.out.forward(relu(this.third.forward(relu(this.second.forward(h)))));
  }
}

const bytes = unpacked('digits.gz').then((buffer) => {
  const count = new DataView(buffer).getUint32(0, true);
  return new Uint8Array(buffer, 4 + count);
});
let draw = random(seed);
let flow: CompiledFunction<any, Tensor>;
let noise = randomImages();

const chosen = settings<{ batch: number; rate: number; euler: number }>('#settings', (name) => {
  if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
  else void run.rebuild();
});

const run = new Run({
  steps: 3000,
  every: 6000,
  plot: { label: 'loss', log: false },
  async build() {
    const { batch, rate, euler } = chosen(), shape = [batch, 1, side, side];
    const trainer = await compile({
      model: new Velocity(),
      loss: (net, { image, time }) => {
        const start = randn(shape), line = sub(image, start);
        const part = reshape(div(cast(time, 'f32'), times), [batch, 1, 1, 1]);
        return mse(net.forward(add(start, mul(part, line)), time), line);
      },
      inputs: { image: shape, time: { shape: [batch], dtype: 'i32' } },
      optimizer: optim.adam({ lr: rate }), clipGradNorm: 1, seed, device, recovery });
    flow = await trainer.attach({
      inputs: { x: [shown, 1, side, side], time: { shape: [shown], dtype: 'i32' } },
      forward: (net, { x, time }) => add(x, div(net.forward(x, time), euler)) });
    draw = random(seed);
    return trainer;
  },
  async step(trainer) {
    const { batch } = chosen(), all = await bytes;
    const image = new Float32Array(batch * pixels);
    const time = Int32Array.from({ length: batch }, () => 1 + Math.floor(draw() * times));
    for (let i = 0; i < batch; ++i) {
      const from = Math.floor(draw() * all.length / pixels) * pixels;
      for (let p = 0; p < pixels; ++p) image[i * pixels + p] = all[from + p]! / 127.5 - 1;
    }
    return (await trainer.step({ image, time })).loss;
  },
  show: generate,
  state: { get: () => ({ draw: draw.state }), set: (saved) => { draw.state = saved.draw; } },
  reset() { draw = random(seed); },
});

function randomImages(): Float32Array {
  return Float32Array.from({ length: shown * pixels }, () =>
    Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw()));
}

/** Generates images from noise and shows each step. */
async function generate(): Promise<void> {
  const { euler } = chosen();
  let x: Float32Array = Float32Array.from(noise);
  for (let step = 0; step < euler; ++step) {
    const time = new Int32Array(shown).fill(Math.round(step / euler * times));
    x = await flow.call({ x, time });
    paint(x);
  }
  const share = (all: ArrayLike<number>, above: number) =>
    `${(100 * Array.from(all).filter((v) => v > above).length / all.length).toFixed(0)} %`;
  find('#ink').textContent = share(x, 0);
  find('#usual').textContent = share((await bytes).subarray(0, 500 * pixels), 127);
}

let last: ArrayLike<number> = noise;
function paint(x = last): void {
  last = x;
  const { text, card } = palette();
  const rgb = (color: string) => {
    const context = make('canvas', { width: 1, height: 1 }).getContext('2d')!;
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };
  const dark = rgb(text), light = rgb(card);
  find('#images').querySelectorAll('canvas').forEach((canvas, i) => {
    const image = new ImageData(side, side);
    for (let p = 0; p < pixels; ++p) {
      const share = Math.max(0, Math.min(1, (x[i * pixels + p]! + 1) / 2));
      for (let c = 0; c < 4; ++c) image.data[4 * p + c] = light[c]! + share * (dark[c]! - light[c]!);
    }
    canvas.getContext('2d')!.putImageData(image, 0, 0);
  });
}

find('#images').append(...Array.from({ length: shown }, () => make('canvas', { width: side, height: side })));
find('#new').onclick = () => {
  noise = randomImages();
  void run.between(generate);
};
onColors(paint);
