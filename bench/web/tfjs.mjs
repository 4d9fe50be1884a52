// SPDX-License-Identifier: MIT
// TensorFlow.js in the benchmark of web pages: core and one backend, as a page of minimal size
// loads it, with its own Adam.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-core/dist/register_all_gradients.js';
import { epsilon, inputs, learningRate, parameters } from './workloads.mjs';

const times = (x, w) => {
  const rows = tf.reshape(x, [-1, x.shape.at(-1)]);
  return tf.reshape(tf.matMul(rows, w), [...x.shape.slice(0, -1), w.shape[1]]);
};
const linear = (p, name, x) => tf.add(times(x, p[`${name}.weight`]), p[`${name}.bias`]);

function crossEntropy(logits, y) {
  const picked = tf.mul(tf.logSoftmax(logits), tf.oneHot(y, logits.shape.at(-1)));
  return tf.mul(tf.sum(picked), -1 / y.size);
}

function layerNorm(p, name, x) {
  const centered = tf.sub(x, tf.mean(x, -1, true));
  const variance = tf.mean(tf.square(centered), -1, true);
  return tf.add(tf.mul(tf.mul(centered, tf.rsqrt(tf.add(variance, 1e-5))), p[`${name}.weight`]),
    p[`${name}.bias`]);
}

const rmsNorm = (weight, x) =>
  tf.mul(tf.mul(x, tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), 1e-5))), weight);

// The wasm backend has no gradient of a gather, but one of a product.
function embed(table, index) {
  if (tf.getBackend() === 'webgpu') return tf.gather(table, index);
  return times(tf.cast(tf.oneHot(index, table.shape[0]), 'float32'), table);
}

function mlp({ sizes }, p, { x, y }) {
  for (let i = 0; i + 1 < sizes.length; ++i) x = linear(p, `layers.${i}`, i ? tf.relu(x) : x);
  return tf.mean(tf.squaredDifference(x, y));
}

// Channels are last.
function cnn(shape, p, { x, y }) {
  x = tf.reshape(x, [-1, 28, 28, 1]);
  for (const name of ['conv1', 'conv2']) {
    x = tf.relu(tf.add(tf.conv2d(x, p[`${name}.weight`], 1, 'same'), p[`${name}.bias`]));
    x = tf.maxPool(x, 2, 2, 'valid');
  }
  x = tf.relu(linear(p, 'hidden', tf.reshape(x, [x.shape[0], -1])));
  return crossEntropy(linear(p, 'out', x), y);
}

function decoder({ width, heads, length, layers, answers, gelu }, p, { x: text, y }) {
  let x = tf.add(embed(p.symbols, text), p.places);
  const batch = x.shape[0], allowed = tf.linalg.bandPart(tf.ones([length, length]), -1, 0);
  const mask = tf.mul(tf.sub(1, allowed), -1e9);
  for (let i = 0; i < layers; ++i) {
    const block = `blocks.${i}`, h = layerNorm(p, `${block}.norm1`, x);
    const [q, k, v] = ['query', 'key', 'value'].map((each) => tf.transpose(tf.reshape(
      times(h, p[`${block}.${each}.weight`]), [batch, length, heads, width / heads]), [0, 2, 1, 3]));
    const scores = tf.mul(tf.matMul(q, k, false, true), Math.sqrt(heads / width));
    const mixed = tf.matMul(tf.softmax(tf.add(scores, mask)), v);
    x = tf.add(x, times(tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch, length, width]),
      p[`${block}.out.weight`]));
    const wide = linear(p, `${block}.up`, layerNorm(p, `${block}.norm2`, x));
    const active = gelu
      ? tf.mul(tf.mul(wide, 0.5), tf.add(tf.erf(tf.mul(wide, Math.SQRT1_2)), 1)) : tf.relu(wide);
    x = tf.add(x, linear(p, `${block}.down`, active));
  }
  x = layerNorm(p, 'last', tf.slice(x, [0, length - answers, 0], [batch, answers, width]));
  const logits = tf.matMul(tf.reshape(x, [-1, width]), p.symbols, false, true);
  return crossEntropy(tf.reshape(logits, [batch, answers, -1]), y);
}

const later = (x, steps, fill) => tf.pad(
  tf.slice(x, x.shape.map(() => 0), x.shape.map((size, i) => size - (i === 1 ? steps : 0))),
  x.shape.map((_, i) => [i === 1 ? steps : 0, 0]), fill);

// Computes the states of all steps by doubling.
function scan(delta, u, b, c, rate) {
  let factor = tf.exp(tf.mul(tf.expandDims(delta, -1), rate));
  let term = tf.mul(tf.expandDims(tf.mul(delta, u), -1), tf.expandDims(b, 2));
  for (let steps = 1; steps < factor.shape[1]; steps *= 2) {
    term = tf.add(tf.mul(factor, later(term, steps, 0)), term);
    factor = tf.mul(factor, later(factor, steps, 1));
  }
  return tf.sum(tf.mul(term, tf.expandDims(c, 2)), -1);
}

const silu = (x) => tf.mul(x, tf.sigmoid(x));

function mamba({ layers, width, states, rank }, p, { x: text, y: next }) {
  const inner = 2 * width, embedding = p['backbone.embedding.weight'];
  let x = embed(embedding, text);
  for (let i = 0; i < layers; ++i) {
    const of = (name) => p[`backbone.layers.${i}.${name}`];
    const both = times(rmsNorm(of('norm.weight'), x), of('mixer.in_proj.weight'));
    const [before, gate] = tf.split(both, 2, -1);
    let u = of('mixer.conv1d.bias');
    for (let k = 0; k < 4; ++k) {
      const taps = tf.reshape(tf.slice(of('mixer.conv1d.weight'), [0, 0, k], [inner, 1, 1]), [inner]);
      u = tf.add(tf.mul(k < 3 ? later(before, 3 - k, 0) : before, taps), u);
    }
    u = silu(u);
    const [low, b, c] = tf.split(times(u, of('mixer.x_proj.weight')), [rank, states, states], -1);
    const delta = tf.softplus(linear(p, `backbone.layers.${i}.mixer.dt_proj`, low));
    const y = scan(delta, u, b, c, tf.neg(tf.exp(of('mixer.A_log'))));
    const out = tf.mul(tf.add(y, tf.mul(u, of('mixer.D'))), silu(gate));
    x = tf.add(x, times(out, of('mixer.out_proj.weight')));
  }
  x = rmsNorm(p['backbone.norm_f.weight'], x);
  const logits = tf.matMul(tf.reshape(x, [-1, width]), embedding, false, true);
  return crossEntropy(tf.reshape(logits, [...next.shape, -1]), next);
}

const losses = { mlp, cnn, decoder, mamba };

// The layouts of TensorFlow.js: [inputs, outputs], [height, width, inputs, outputs], and channels
// last in the input of the layer after the convolutions.
function arranged(name, shape, data, kind) {
  if (kind === 'cnn' && name === 'hidden.weight') {
    const channels = shape[1] / 49;
    return tf.reshape(tf.transpose(tf.tensor(data, [shape[0], channels, 49]), [2, 1, 0]), [shape[1], shape[0]]);
  }
  const made = tf.tensor(data, shape);
  if (shape.length === 4) return tf.transpose(made, [2, 3, 1, 0]);
  const isLinear = shape.length === 2 && name.endsWith('.weight') && !name.includes('embedding');
  return isLinear ? tf.transpose(made) : made;
}

/** Resolves to {device, step, run}; see page.mjs. */
export async function prepareOn(backend, shape) {
  if (!await tf.setBackend(backend)) throw new Error(`cannot start the backend ${backend}`);
  const params = Object.fromEntries(Object.entries(parameters(shape)).map(([key, { shape: of, data }]) =>
    [key, tf.variable(arranged(key, of, data, shape.kind), true, key)]));
  const adam = tf.train.adam(learningRate, 0.9, 0.999, epsilon);
  const spec = inputs(shape);
  const upload = (key, values) =>
    tf.tensor(values, spec[key].shape, spec[key].dtype === 'i32' ? 'int32' : 'float32');
  const next = (x, y) => adam.minimize(() => losses[shape.kind](shape, params, { x, y }), true);
  let kept;
  return {
    device: `tfjs ${backend}`,
    step: async (batch) => {
      const [x, y] = ['x', 'y'].map((key) => upload(key, batch[key]));
      const value = next(x, y), read = (await value.data())[0];
      tf.dispose([x, y, value]);
      return read;
    },
    run: async (steps, given) => {
      kept ??= given.map((batch) => ['x', 'y'].map((key) => upload(key, batch[key])));
      let value;
      for (let i = 0; i < steps; ++i) {
        value?.dispose();
        value = next(...kept[i % kept.length]);
      }
      const read = (await value.data())[0];
      value.dispose();
      return read;
    },
  };
}
