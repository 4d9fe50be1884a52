// SPDX-License-Identifier: MIT
// The workloads of `./dev bench web`: sizes, initial parameters and batches, the same for all
// libraries. Names and shapes of parameters are those of tensorgrad and PyTorch: weights of linear
// layers are [outputs, inputs], those of convolutions [outputs, inputs, height, width]. The
// optimizer is Adam.

/** Returns a generator of uniform numbers in [0, 1), the same on every machine. */
function generator(seed) {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

const linear = (name, inputs, outputs) => [
  { name: `${name}.weight`, shape: [outputs, inputs], bound: 1 / Math.sqrt(inputs) },
  { name: `${name}.bias`, shape: [outputs], bound: 1 / Math.sqrt(inputs) },
];
const product = (name, inputs, outputs) => linear(name, inputs, outputs).slice(0, 1);
const conv = (name, inputs, outputs, size) => [
  { name: `${name}.weight`, shape: [outputs, inputs, size, size], bound: 1 / Math.sqrt(inputs * size ** 2) },
  { name: `${name}.bias`, shape: [outputs], bound: 1 / Math.sqrt(inputs * size ** 2) },
];
const filled = (name, shape, value) => ({ name, shape, value: () => value });
const norm = (name, width) => [filled(`${name}.weight`, [width], 1), filled(`${name}.bias`, [width], 0)];

function decoderParameters({ symbols, width, layers, length }) {
  return [
    { name: 'symbols', shape: [symbols, width], bound: 0.05 },
    { name: 'places', shape: [length, width], bound: 0.05 },
    ...Array.from({ length: layers }, (_, i) => [
      ...norm(`blocks.${i}.norm1`, width), ...norm(`blocks.${i}.norm2`, width),
      ...['query', 'key', 'value', 'out'].flatMap((each) => product(`blocks.${i}.${each}`, width, width)),
      ...linear(`blocks.${i}.up`, width, 4 * width), ...linear(`blocks.${i}.down`, 4 * width, width),
    ]).flat(),
    ...norm('last', width),
  ];
}

function mambaParameters({ symbols, width, layers, states, rank }) {
  const inner = 2 * width;
  return [
    { name: 'backbone.embedding.weight', shape: [symbols, width], bound: 0.05 },
    ...Array.from({ length: layers }, (_, i) => [
      filled(`backbone.layers.${i}.norm.weight`, [width], 1),
      { name: `backbone.layers.${i}.mixer.A_log`, shape: [inner, states], value: (k) => Math.log(k % states + 1) },
      filled(`backbone.layers.${i}.mixer.D`, [inner], 1),
      ...product(`backbone.layers.${i}.mixer.in_proj`, width, 2 * inner),
      { name: `backbone.layers.${i}.mixer.conv1d.weight`, shape: [inner, 1, 4], bound: 0.5 },
      { name: `backbone.layers.${i}.mixer.conv1d.bias`, shape: [inner], bound: 0.5 },
      ...product(`backbone.layers.${i}.mixer.x_proj`, inner, rank + 2 * states),
      { name: `backbone.layers.${i}.mixer.dt_proj.weight`, shape: [inner, rank], bound: 1 / Math.sqrt(rank) },
      filled(`backbone.layers.${i}.mixer.dt_proj.bias`, [inner], Math.log(Math.expm1(0.01))),
      ...product(`backbone.layers.${i}.mixer.out_proj`, inner, width),
    ]).flat(),
    filled('backbone.norm_f.weight', [width], 1),
  ];
}

/** Workloads of bench/models.cpp, but with Adam, and without clipping, because not all libraries have it. */
export const workloads = {
  'mlp-sin': { kind: 'mlp', sizes: [1, 64, 64, 1], batch: 256 },
  addition: { kind: 'decoder', symbols: 12, width: 64, layers: 3, heads: 4, length: 8, batch: 128,
    answers: 3, gelu: false },
  cnn: { kind: 'cnn', channels: [16, 32], hidden: 64, batch: 64 },
  'char-gpt-small': { kind: 'decoder', symbols: 65, width: 128, layers: 4, heads: 4, length: 64, batch: 8,
    answers: 64, gelu: true },
  mamba1: { kind: 'mamba', symbols: 65, width: 128, layers: 2, length: 64, batch: 8, states: 16, rank: 8 },
};

export const learningRate = 1e-3;
export const epsilon = 1e-8;

function specs(shape) {
  switch (shape.kind) {
    case 'mlp':
      return shape.sizes.slice(1).flatMap((out, i) => linear(`layers.${i}`, shape.sizes[i], out));
    case 'cnn':
      return [...conv('conv1', 1, shape.channels[0], 3), ...conv('conv2', ...shape.channels, 3),
        ...linear('hidden', 49 * shape.channels[1], shape.hidden), ...linear('out', shape.hidden, 10)];
    case 'decoder':
      return decoderParameters(shape);
    default:
      return mambaParameters(shape);
  }
}

/** Returns {name: {shape, data}}, in the order of the model. */
export function parameters(shape) {
  const draw = generator(1);
  return Object.fromEntries(specs(shape).map((spec) => {
    const data = new Float32Array(spec.shape.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; ++i)
      data[i] = spec.value ? spec.value(i) : spec.bound * (2 * draw() - 1);
    return [spec.name, { shape: spec.shape, data }];
  }));
}

/** Returns the shapes and types of the inputs `x` and `y`. */
export function inputs({ kind, sizes, batch, length, answers }) {
  if (kind === 'mlp')
    return { x: { shape: [batch, sizes[0]], dtype: 'f32' }, y: { shape: [batch, 1], dtype: 'f32' } };
  if (kind === 'cnn')
    return { x: { shape: [batch, 1, 28, 28], dtype: 'f32' }, y: { shape: [batch], dtype: 'i32' } };
  return { x: { shape: [batch, length], dtype: 'i32' },
    y: { shape: [batch, answers ?? length], dtype: 'i32' } };
}

/** Returns `count` batches {x, y} as typed arrays. */
export function batches(shape, count) {
  const draw = generator(2), { x, y } = inputs(shape);
  const whole = (size, of) => Int32Array.from({ length: size }, () => Math.floor(of * draw()));
  const real = (size) => Float32Array.from({ length: size }, draw);
  const size = (each) => each.shape.reduce((a, b) => a * b, 1);
  return Array.from({ length: count }, () => {
    if (shape.kind === 'mlp') {
      const values = real(size(x)).map((each) => 2 * Math.PI * each - Math.PI);
      return { x: values, y: values.map(Math.sin) };
    }
    if (shape.kind === 'cnn') return { x: real(size(x)), y: whole(size(y), 10) };
    return { x: whole(size(x), shape.symbols), y: whole(size(y), shape.symbols) };
  });
}
