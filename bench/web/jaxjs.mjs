// SPDX-License-Identifier: MIT
// jax-js in the benchmark of web pages: value, gradient and Adam in one jit. Each use consumes an
// array, so arrays that are used again are passed as `.ref`.
import { defaultDevice, init, jit, lax, nn, numpy as np, tree, valueAndGrad } from '@jax-js/jax';
import { epsilon, inputs, learningRate, parameters } from './workloads.mjs';

const times = (x, w) => np.matmul(x, w.ref);
const linear = (p, name, x) => times(x, p[`${name}.weight`]).add(p[`${name}.bias`].ref);

function crossEntropy(logits, y) {
  const classes = logits.shape.at(-1);
  const picked = nn.logSoftmax(logits, -1).mul(nn.oneHot(y, classes));
  return np.sum(picked).mul(-1 / y.shape.reduce((a, b) => a * b, 1));
}

function layerNorm(p, name, x) {
  const centered = x.ref.sub(np.mean(x, -1, { keepdims: true }));
  const variance = np.mean(np.square(centered.ref), -1, { keepdims: true });
  return centered.div(np.sqrt(variance.add(1e-5)))
    .mul(p[`${name}.weight`].ref).add(p[`${name}.bias`].ref);
}

function rmsNorm(weight, x) {
  const scale = np.sqrt(np.mean(np.square(x.ref), -1, { keepdims: true }).add(1e-5));
  return x.div(scale).mul(weight.ref);
}

const embed = (table, index) => np.matmul(nn.oneHot(index, table.shape[0]), table.ref);

function mlp({ sizes }, p, { x, y }) {
  for (let i = 0; i + 1 < sizes.length; ++i) x = linear(p, `layers.${i}`, i ? nn.relu(x) : x);
  return np.mean(np.square(x.sub(y)));
}

function cnn(shape, p, { x, y }) {
  for (const name of ['conv1', 'conv2']) {
    x = lax.convGeneralDilated(x, p[`${name}.weight`].ref, [1, 1], 'SAME');
    const [batch, channels, height, width] = x.shape;
    x = nn.relu(x.add(p[`${name}.bias`].ref.reshape([channels, 1, 1])));
    x = np.max(x.reshape([batch, channels, height / 2, 2, width / 2, 2]), [3, 5]);
  }
  x = nn.relu(linear(p, 'hidden', x.reshape([x.shape[0], -1])));
  return crossEntropy(linear(p, 'out', x), y);
}

function decoder({ width, heads, length, layers, answers, gelu }, p, { x: text, y }) {
  let x = embed(p.symbols, text).add(p.places.ref);
  const batch = x.shape[0], mask = np.tril(np.ones([length, length]));
  for (let i = 0; i < layers; ++i) {
    const block = `blocks.${i}`, h = layerNorm(p, `${block}.norm1`, x.ref);
    const [q, k, v] = ['query', 'key', 'value'].map((each) =>
      times(h.ref, p[`${block}.${each}.weight`]).reshape([batch, length, heads, width / heads])
        .transpose([0, 2, 1, 3]));
    const scores = np.matmul(q, k.transpose([0, 1, 3, 2])).mul(Math.sqrt(heads / width));
    const weights = nn.softmax(np.where(mask.ref.greater(0), scores, -1e9), -1);
    const mixed = np.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([batch, length, width]);
    x = x.add(times(mixed, p[`${block}.out.weight`]));
    const wide = linear(p, `${block}.up`, layerNorm(p, `${block}.norm2`, x.ref));
    x = x.add(linear(p, `${block}.down`, gelu ? nn.gelu(wide, { approximate: false }) : nn.relu(wide)));
  }
  x = layerNorm(p, 'last', x.slice([], [length - answers, length]));
  return crossEntropy(np.matmul(x, p.symbols.ref.transpose()), y);
}

// Shifts x [B, L, D] by `steps` along L, and fills with `fill`.
const later = (x, steps, fill) => {
  const { shape } = x;
  const before = np.full([shape[0], steps, ...shape.slice(2)], fill);
  return np.concatenate([before, x.slice([], [0, shape[1] - steps])], 1);
};

// Computes the states of all steps by doubling, because there is no lax.scan.
function scan(delta, u, b, c, rate) {
  let factor = np.exp(np.expandDims(delta.ref, -1).mul(rate));
  let term = np.expandDims(delta.mul(u), -1).mul(np.expandDims(b, 2));
  for (let steps = 1; steps < factor.shape[1]; steps *= 2) {
    term = factor.ref.mul(later(term.ref, steps, 0)).add(term);
    factor = factor.ref.mul(later(factor, steps, 1));
  }
  return np.sum(term.mul(np.expandDims(c, 2)), -1);
}

function mamba({ layers, width, states, rank }, p, { x: text, y: next }) {
  const inner = 2 * width, embedding = p['backbone.embedding.weight'];
  let x = embed(embedding, text);
  for (let i = 0; i < layers; ++i) {
    const of = (name) => p[`backbone.layers.${i}.${name}`];
    const both = times(rmsNorm(of('norm.weight'), x.ref), of('mixer.in_proj.weight'));
    const before = both.ref.slice([], [], [0, inner]), gate = both.slice([], [], [inner, 2 * inner]);
    let u = of('mixer.conv1d.bias').ref;
    for (let k = 0; k < 4; ++k) {
      const moved = k < 3 ? later(before.ref, 3 - k, 0) : before.ref;
      u = moved.mul(of('mixer.conv1d.weight').ref.slice([], 0, k)).add(u);
    }
    u = nn.silu(u);
    const made = times(u.ref, of('mixer.x_proj.weight'));
    const part = (start, end) => made.ref.slice([], [], [start, end]);
    const delta = nn.softplus(linear(p, `backbone.layers.${i}.mixer.dt_proj`, part(0, rank)));
    const y = scan(delta, u.ref, part(rank, rank + states), part(rank + states, rank + 2 * states),
                   np.exp(of('mixer.A_log').ref).neg());
    const out = y.add(u.mul(of('mixer.D').ref)).mul(nn.silu(gate));
    x = x.add(times(out, of('mixer.out_proj.weight')));
  }
  x = rmsNorm(p['backbone.norm_f.weight'], x);
  return crossEntropy(np.matmul(x, embedding.ref.transpose()), next);
}

const losses = { mlp, cnn, decoder, mamba };

// Weights of linear layers are [inputs, outputs], so that no step transposes them.
const isLinear = (name, shape) => shape.length === 2 && name.endsWith('.weight') &&
  !name.includes('embedding');

export const name = 'jax-js';

/** Resolves to {device, step, run}; see page.mjs. */
export async function prepare(shape, device) {
  const wanted = device === 'cpu' ? 'wasm' : 'webgpu';
  await init(wanted);
  defaultDevice(wanted);
  const params = Object.fromEntries(Object.entries(parameters(shape)).map(([key, { shape: of, data }]) => {
    const made = np.array(data, { shape: of });
    return [key, isLinear(key, of) ? made.transpose() : made];
  }));
  const zeros = () => Object.fromEntries(
    Object.entries(params).map(([key, each]) => [key, np.zeros(each.shape)]));
  const loss = (p, x, y) => losses[shape.kind](shape, p, { x, y });
  const update = jit((p, m, v, x, y, correct1, correct2) => {
    const [value, gradients] = valueAndGrad(loss)(tree.ref(p), x, y);
    const [newP, newM, newV] = [{}, {}, {}];
    for (const [key, gradient] of Object.entries(gradients)) {
      const mean = m[key].mul(0.9).add(gradient.ref.mul(0.1));
      const square = v[key].mul(0.999).add(np.square(gradient).mul(0.001));
      const scale = np.sqrt(square.ref.mul(correct2.ref)).add(epsilon);
      newP[key] = p[key].sub(mean.ref.mul(correct1.ref).div(scale).mul(learningRate));
      [newM[key], newV[key]] = [mean, square];
    }
    return [newP, newM, newV, value];
  });
  const spec = inputs(shape);
  const upload = (key, values) => np.array(values,
    { shape: spec[key].shape, dtype: spec[key].dtype === 'i32' ? np.int32 : np.float32 });
  let state = [params, zeros(), zeros()], done = 0, kept;
  const next = (x, y) => {
    const result = update(...state, x, y, np.array(1 / (1 - 0.9 ** ++done)),
      np.array(1 / (1 - 0.999 ** done)));
    state = result.slice(0, 3);
    return result[3];
  };
  return {
    device: `jax-js ${wanted}`,
    step: async ({ x, y }) => (await next(upload('x', x), upload('y', y)).data())[0],
    // Reads only the last loss; the batches are on the device.
    run: async (steps, given) => {
      kept ??= given.map(({ x, y }) => [upload('x', x), upload('y', y)]);
      let value;
      for (let i = 0; i < steps; ++i) {
        value?.dispose();
        value = next(...kept[i % kept.length].map((each) => each.ref));
      }
      return (await value.data())[0];
    },
  };
}
