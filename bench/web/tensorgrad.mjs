// SPDX-License-Identifier: MIT
// tensorgrad in the benchmark of web pages.
import {
  Conv2d, LanguageModel, LayerNorm, Linear, Module, add, compile, crossEntropy, embedding, flatten,
  gelu, init, linear, maxPool2d, mse, narrow, optim, relu, reshape, scaledDotProductAttention, transpose,
} from 'tensorgrad';
import { epsilon, inputs, learningRate, parameters } from './workloads.mjs';

class Mlp extends Module {
  constructor({ sizes }) {
    super();
    this.layers = sizes.slice(1).map((out, i) => new Linear(sizes[i], out));
  }
  loss(x, y) {
    for (const [i, layer] of this.layers.entries()) x = layer.forward(i ? relu(x) : x);
    return mse(x, y);
  }
}

class Cnn extends Module {
  constructor({ channels: [first, second], hidden }) {
    super();
    this.conv1 = new Conv2d(1, first, 3, { padding: 1 });
    this.conv2 = new Conv2d(first, second, 3, { padding: 1 });
    this.hidden = new Linear(49 * second, hidden);
    this.out = new Linear(hidden, 10);
  }
  loss(x, y) {
    for (const conv of [this.conv1, this.conv2]) x = maxPool2d(relu(conv.forward(x)), 2);
    return crossEntropy(this.out.forward(relu(this.hidden.forward(flatten(x, 1)))), y);
  }
}

class Block extends Module {
  constructor(shape) {
    super();
    const { width } = shape;
    this.shape = () => shape;
    this.norm1 = new LayerNorm(width);
    this.norm2 = new LayerNorm(width);
    for (const name of ['query', 'key', 'value', 'out']) this[name] = new Linear(width, width, false);
    this.up = new Linear(width, 4 * width);
    this.down = new Linear(4 * width, width);
  }
  forward(x) {
    const { width, length, heads, gelu: isGelu } = this.shape();
    const h = this.norm1.forward(x);
    const [q, k, v] = [this.query, this.key, this.value].map((each) =>
      transpose(reshape(each.forward(h), [-1, length, heads, width / heads]), 1, 2));
    const mixed = scaledDotProductAttention(q, k, v, { causal: true });
    x = add(x, this.out.forward(reshape(transpose(mixed, 1, 2), [-1, length, width])));
    const wide = this.up.forward(this.norm2.forward(x));
    return add(x, this.down.forward(isGelu ? gelu(wide) : relu(wide)));
  }
}

class Decoder extends Module {
  constructor(shape) {
    super();
    this.shape = () => shape;
    this.symbols = this.param([shape.symbols, shape.width], init.zeros());
    this.places = this.param([shape.length, shape.width], init.zeros());
    this.blocks = Array.from({ length: shape.layers }, () => new Block(shape));
    this.last = new LayerNorm(shape.width);
  }
  loss(text, next) {
    const { length, answers } = this.shape();
    let x = add(embedding(text, this.symbols), this.places);
    for (const block of this.blocks) x = block.forward(x);
    const asked = narrow(x, 1, length - answers, answers);
    return crossEntropy(linear(this.last.forward(asked), this.symbols), next);
  }
}

function model(shape) {
  if (shape.kind === 'mlp') return [new Mlp(shape), (net, { x, y }) => net.loss(x, y)];
  if (shape.kind === 'cnn') return [new Cnn(shape), (net, { x, y }) => net.loss(x, y)];
  if (shape.kind === 'decoder') return [new Decoder(shape), (net, { x, y }) => net.loss(x, y)];
  const net = new LanguageModel({ vocabSize: shape.symbols, dModel: shape.width, nLayer: shape.layers });
  return [net, (net, { x, y }) => net.loss(x, y)];
}

export const name = 'tensorgrad';

/** Resolves to {device, step, run, profile}; see page.mjs. */
export async function prepare(shape, device, { engine }) {
  const [net, loss] = model(shape);
  const options = { model: net, loss, optimizer: optim.adam({ lr: learningRate, eps: epsilon }), engine,
    device: { kind: device, allowSoftware: true, ...(device === 'cpu' ? { threads: 1 } : {}) } };
  const trainer = await compile({ ...options, inputs: inputs(shape) });
  await trainer.uploadParams(Object.fromEntries(
    Object.entries(parameters(shape)).map(([key, { data }]) => [key, data])));
  let onDevice;
  return {
    device: trainer.device,
    profile: async (batch) => (await trainer.profile(batch)).profile,
    step: async (batch) => (await trainer.step(batch)).loss,
    // The device draws the batches, and the page does nothing until the last step.
    run: async (steps, given) => {
      onDevice ??= await (async () => {
        const spec = inputs(shape), rows = given.length * shape.batch;
        const dataset = Object.fromEntries(Object.entries(spec).map(([key, { shape: [, ...row], dtype }]) =>
          [key, { shape: [rows, ...row], dtype }]));
        const made = await compile({ ...options, dataset, batch: shape.batch });
        for (const key of Object.keys(dataset)) {
          const values = given.map((each) => each[key]);
          const all = new values[0].constructor(values.length * values[0].length);
          values.forEach((each, i) => all.set(each, i * each.length));
          await made.uploadData(key, all);
        }
        return made;
      })();
      return (await onDevice.run(steps)).at(-1);
    },
  };
}

