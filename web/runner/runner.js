// SPDX-License-Identifier: MIT
/**
 * Runs a function that tensorgrad has exported for pages (CompiledFunction::export_web(),
 * tg export --web), on WebGPU and without any other file:
 *
 *   import {load} from './model/runner.js';
 *   const model = await load('model/');
 *   const {probs} = await model.run({x: new Float32Array(784)});
 *
 * load() reads model.json and its weights, checks what the browser has, and compiles all kernels at
 * the same time. run() takes a typed array for each input, row-major, and returns one for each
 * output. Calls need not wait for each other: they run in the order in which they are made.
 * States (of recurrent models) keep their values from run to run until reset().
 * Errors are TensorgradErrors, whose `code` says what happened; runner.d.ts lists the codes.
 *
 * It works in pages and workers of a secure context (https or localhost).
 */

const FORMAT = 'tensorgrad-web';
const VERSION = 1;
const ARRAYS = {
  f32: Float32Array, f16: Float32Array, i32: Int32Array, u32: Uint32Array, bool: Uint8Array,
};
const ROW_BYTES = 256;  // of the run-time scalars

export class TensorgradError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = 'TensorgradError';
    this.code = code;
  }
}

/** Loads the exported folder `source`, or {manifest, weights} that the page has read itself. */
export async function load(source, options = {}) {
  if (source?.manifest) return Model.create(source.manifest, source.weights, options);
  const here = globalThis.document?.baseURI ?? globalThis.location?.href;
  const folder = new URL(String(source).replace(/\/*$/, '/'), here);
  const text = new TextDecoder().decode(await read(new URL('model.json', folder), 'no-cache'));
  let manifest;
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    const why = `${folder}model.json is not JSON: ${cause.message}`;
    throw new TensorgradError('format', why, {cause});
  }
  check(manifest);
  // The checksum in the address keeps a cache from returning the weights of an earlier export.
  const weights = read(new URL(`${manifest.weights.file}?${manifest.weights.checksum}`, folder));
  weights.catch(() => {});  // reported where it is awaited
  return Model.create(manifest, weights, options);
}

async function read(url, cache = 'default') {
  try {
    const response = await fetch(url, {cache});
    if (response.ok) return await response.arrayBuffer();
    throw new Error(`${response.status} ${response.statusText}`);
  } catch (cause) {
    throw new TensorgradError('load', `cannot load ${url}: ${cause.message}`, {cause});
  }
}

function check(manifest) {
  if (manifest?.format !== FORMAT) {
    throw new TensorgradError('format', `the manifest is not of the format ${FORMAT}`);
  }
  if (manifest.version !== VERSION) {
    throw new TensorgradError('version', `the model has format version ${manifest.version}, this ` +
      `runner reads version ${VERSION}; use the runner.js that was exported with the model`);
  }
}

// A device with all that the model needs, or what is missing.
async function open(manifest, gpu) {
  if (!gpu) {
    throw new TensorgradError('no-webgpu', globalThis.isSecureContext === false
      ? 'WebGPU needs a secure context: https, or http on localhost'
      : 'this browser has no WebGPU (navigator.gpu)');
  }
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new TensorgradError('no-adapter', 'WebGPU finds no GPU that it can use');
  checkDevice(manifest, adapter);
  try {
    return await adapter.requestDevice({
      requiredFeatures: manifest.features, requiredLimits: manifest.limits,
    });
  } catch (cause) {
    throw new TensorgradError('no-adapter', `the GPU cannot be opened: ${cause.message}`, {cause});
  }
}

// `on` is an adapter or a device.
function checkDevice(manifest, on) {
  for (const feature of manifest.features) {
    if (!on.features.has(feature)) {
      throw new TensorgradError('unsupported', `the model needs ${feature}, which this GPU lacks`);
    }
  }
  for (const [name, needed] of Object.entries(manifest.limits)) {
    if (on.limits[name] < needed) {
      throw new TensorgradError('unsupported',
        `the model needs ${name} = ${needed}, this GPU has ${on.limits[name]}`);
    }
  }
}

const count = shape => shape.reduce((product, size) => product * size, 1);
const text = shape => `[${shape.join(',')}]`;
const outOf = names => names.length ? names.join(', ') : 'none';

// The elements of an input as they are on the device: whole words.
function stored(array, dtype, f16) {
  if (dtype !== 'f16') return array;
  const halves = new (halfArray())(array.length + (f16 ? array.length % 2 : 0));
  halves.set(array);
  return f16 ? halves : Float32Array.from(halves);
}

function halfArray() {
  if (globalThis.Float16Array) return Float16Array;
  throw new TensorgradError('unsupported',
    'the model has f16 values, but this browser has no Float16Array');
}

export class Model {
  #manifest;
  #device;
  #ownsDevice;
  #lost = null;      // GPUDeviceLostInfo
  #destroyed = false;
  #buffers = [];
  #states = [];      // {buffer, bytes: initial contents}
  #row;              // uniform buffer of the run-time scalars
  #programs = [];
  #staging = [];     // not in use
  #seed;
  #runs = 0;

  /** Used by load(). */
  static async create(manifest, weights, {device, gpu = globalThis.navigator?.gpu, seed} = {}) {
    check(manifest);
    if (device) checkDevice(manifest, device);
    const model = new Model();
    model.#manifest = manifest;
    model.#ownsDevice = !device;
    model.#seed = seed;
    model.#device = device ?? await open(manifest, gpu);
    model.#device.lost.then(info => { model.#lost = info; });
    try {
      await model.#prepare(weights);
    } catch (error) {
      const lost = model.#lost ? model.#lostError() : error;
      model.destroy();
      throw lost;
    }
    return model;
  }

  get name() { return this.#manifest.name; }
  get doc() { return this.#manifest.doc; }
  get device() { return this.#device; }
  /** Sizes of the dynamic dimension that were exported; empty if there is none. */
  get sizes() { return this.#programs.map(each => each.size).filter(size => size !== undefined); }
  get inputs() { return this.#describe('inputs'); }
  get outputs() { return this.#describe('outputs'); }

  // Names, types and shapes; sizes that differ between the programs are null.
  #describe(side) {
    const all = this.#manifest.programs.map(program => program[side]);
    const same = (i, d, size) => all.every(each => each[i].shape[d] === size);
    return all[0].map(({name, dtype, shape}, i) => (
      {name, dtype, shape: shape.map((size, d) => same(i, d, size) ? size : null)}));
  }

  async #prepare(weights) {
    const device = this.#device, {buffers, kernels, programs} = this.#manifest;
    const layouts = new Map();  // by the modes of the bindings
    const layout = modes => {
      if (!layouts.has(modes)) {
        const types = {r: 'read-only-storage', w: 'storage', u: 'uniform'};
        const entries = [...modes].map((mode, binding) =>
          ({binding, visibility: GPUShaderStage.COMPUTE, buffer: {type: types[mode]}}));
        layouts.set(modes, device.createBindGroupLayout({entries}));
      }
      return layouts.get(modes);
    };
    const compiled = Promise.all(kernels.map(kernel => this.#compile(kernel, layout)));
    compiled.catch(() => {});  // reported below
    device.pushErrorScope('out-of-memory');
    device.pushErrorScope('validation');
    const {STORAGE, UNIFORM, COPY_SRC, COPY_DST} = GPUBufferUsage;
    this.#buffers = buffers.map(({name, bytes}) =>
      device.createBuffer({label: name, size: bytes, usage: STORAGE | COPY_SRC | COPY_DST}));
    this.#row = device.createBuffer({size: ROW_BYTES, usage: UNIFORM | COPY_DST});
    const rowGroup = device.createBindGroup({
      layout: layout('u'), entries: [{binding: 0, resource: {buffer: this.#row}}]});
    const groups = programs.map(({launches}) => launches.map(({kernel, bindings}) =>
      device.createBindGroup({
        layout: layout(kernels[kernel].modes),
        entries: bindings.map(([buffer, offset, size], binding) =>
          ({binding, resource: {buffer: this.#buffers[buffer], offset, size}})),
      })));
    const [invalid, full] = await Promise.all([device.popErrorScope(), device.popErrorScope()]);
    if (full) {
      const total = buffers.reduce((sum, {bytes}) => sum + bytes, 0);
      throw new TensorgradError('memory', `the GPU has no room for the model's ${total} bytes`);
    }
    if (invalid) {
      throw new TensorgradError('kernel', `the buffers were rejected: ${invalid.message}`);
    }
    this.#fill(await weights);
    const pipelines = await compiled;
    this.#programs = programs.map((program, p) => ({
      ...program,
      row: Uint32Array.from(program.row),
      steps: program.launches.map(({kernel, groups: [x, y]}, i) => ({
        pipeline: pipelines[kernel], group: groups[p][i], x, y,
        rowGroup: kernels[kernel].scalars ? rowGroup : null,
      })),
      checked: false,  // has run once without an error
    }));
  }

  async #compile({name, code, modes, scalars}, layout) {
    const device = this.#device;
    const bindGroupLayouts = scalars ? [layout(modes), layout('u')] : [layout(modes)];
    device.pushErrorScope('validation');
    const module = device.createShaderModule({label: name, code});
    device.popErrorScope().catch(() => {});  // the pipeline reports it
    try {
      return await device.createComputePipelineAsync({
        label: name, compute: {module, entryPoint: 'main'},
        layout: device.createPipelineLayout({bindGroupLayouts}),
      });
    } catch (cause) {
      const {messages} = await module.getCompilationInfo();
      const first = messages.find(({type}) => type === 'error');
      const why = first ? `${first.message} (line ${first.lineNum} of its WGSL)` : cause.message;
      throw new TensorgradError('kernel', `the kernel ${name} was rejected: ${why}`, {cause});
    }
  }

  // Buffers are zero at first; those with contents have them in the weights.
  #fill(weights) {
    const {file, bytes} = this.#manifest.weights;
    const kind = Object.prototype.toString.call(weights);  // also of another frame
    if (kind !== '[object ArrayBuffer]' || weights.byteLength !== bytes) {
      throw new TensorgradError('format', `${file} has ${weights?.byteLength} bytes, expected ` +
        `${bytes}; it is damaged, or belongs to another model.json`);
    }
    this.#manifest.buffers.forEach(({data, state}, i) => {
      const contents = data && new Uint8Array(weights, data[0], data[1]);
      if (contents) this.#device.queue.writeBuffer(this.#buffers[i], 0, contents);
      if (state) this.#states.push({buffer: this.#buffers[i], contents: contents?.slice()});
    });
  }

  /** Sets all states to their exported values, and starts the random numbers anew. */
  reset() {
    this.#alive();
    const encoder = this.#device.createCommandEncoder();
    for (const {buffer} of this.#states) encoder.clearBuffer(buffer);
    this.#device.queue.submit([encoder.finish()]);
    for (const {buffer, contents} of this.#states) {
      if (contents) this.#device.queue.writeBuffer(buffer, 0, contents);
    }
    this.#runs = 0;
  }

  /** Runs the function; `inputs` and the result are typed arrays by name. */
  async run(inputs = {}) {
    this.#alive();
    const device = this.#device, program = this.#pick(inputs), {row, seed, step} = program;
    const arrays = program.inputs.map(
      ({name, dtype}) => stored(inputs[name], dtype, this.#manifest.f16));
    program.inputs.forEach(({buffer}, i) => {
      device.queue.writeBuffer(this.#buffers[buffer], 0, arrays[i]);
    });
    if (seed !== undefined && this.#seed !== undefined) row[seed] = this.#seed;
    if (step !== undefined) row[step] = this.#runs;
    this.#runs += 1;
    device.queue.writeBuffer(this.#row, 0, row);
    if (!program.checked) device.pushErrorScope('validation');
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const {pipeline, group, rowGroup, x, y} of program.steps) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      if (rowGroup) pass.setBindGroup(1, rowGroup);
      pass.dispatchWorkgroups(x, y);
    }
    pass.end();
    const staging = this.#stage(program.bytes);
    for (const {buffer, offset, bytes, at} of program.outputs) {
      encoder.copyBufferToBuffer(this.#buffers[buffer], offset, staging, at, bytes);
    }
    device.queue.submit([encoder.finish()]);
    const rejected = program.checked ? null : device.popErrorScope();
    try {
      await staging.mapAsync(GPUMapMode.READ, 0, program.bytes);
    } catch (cause) {
      staging.destroy();
      throw await this.#failure(cause);
    }
    const error = await rejected;
    if (error) throw new TensorgradError('kernel', `a run was rejected: ${error.message}`);
    program.checked = true;
    const mapped = staging.getMappedRange(0, program.bytes);
    const outputs = Object.fromEntries(program.outputs.map(
      output => [output.name, this.#elements(output, mapped)]));
    staging.unmap();
    this.#destroyed ? staging.destroy() : this.#staging.push(staging);
    return outputs;
  }

  #elements({dtype, shape, at}, mapped) {
    const length = count(shape), f16 = dtype === 'f16' && this.#manifest.f16;
    const Words = f16 ? halfArray() : dtype === 'bool' ? Uint32Array : ARRAYS[dtype];
    return ARRAYS[dtype].from(new Words(mapped, at, length));
  }

  #stage(bytes) {
    const free = this.#staging.findIndex(each => each.size >= bytes);
    if (free >= 0) return this.#staging.splice(free, 1)[0];
    const {MAP_READ, COPY_DST} = GPUBufferUsage;
    return this.#device.createBuffer({size: bytes, usage: MAP_READ | COPY_DST});
  }

  // The program for these inputs; throws if there is none.
  #pick(inputs) {
    const wrong = message => { throw new TensorgradError('input', message); };
    const all = this.#manifest.programs, known = all[0].inputs;
    for (const name of Object.keys(inputs)) {
      if (known.some(each => each.name === name)) continue;
      wrong(`unknown input '${name}'; available: ${outOf(known.map(each => each.name))}`);
    }
    for (const {name, dtype} of known) {
      const array = inputs[name], wanted = ARRAYS[dtype].name;
      if (array === undefined) wrong(`input '${name}' is missing`);
      const given = array?.[Symbol.toStringTag] ?? array?.constructor?.name ?? String(array);
      if (given !== wanted) wrong(`input '${name}': expected a ${wanted}, got ${given}`);
    }
    const program = this.#programs.find(
      each => each.inputs.every(({name, shape}) => inputs[name].length === count(shape)));
    if (program) {
      for (const input of program.inputs) checkIndices(input, inputs[input.name], wrong);
      return program;
    }
    known.forEach(({name}, i) => {
      const shapes = all.map(each => each.inputs[i].shape), given = inputs[name].length;
      if (shapes.some(shape => count(shape) === given)) return;
      const choices = new Set(shapes.map(shape => `${count(shape)} elements ${text(shape)}`));
      wrong(`input '${name}': expected ${[...choices].join(' or ')}, got ${given}`);
    });
    return wrong(`the inputs have different dynamic sizes; exported: ${this.sizes.join(', ')}`);
  }

  #alive() {
    if (this.#destroyed) throw new TensorgradError('destroyed', 'the model was destroyed');
    if (this.#lost) throw this.#lostError();
  }

  #lostError() {
    return new TensorgradError('device-lost',
      `the GPU was lost: ${this.#lost.message || this.#lost.reason}; load the model again`);
  }

  // Why results could not be read. A lost device rejects that before it is known to be lost.
  async #failure(cause) {
    if (this.#destroyed) return new TensorgradError('destroyed', 'the model was destroyed');
    await Promise.race([this.#device.lost, new Promise(resolve => setTimeout(resolve, 1000))]);
    if (this.#lost) return this.#lostError();
    return new TensorgradError('kernel', `the results cannot be read: ${cause.message}`, {cause});
  }

  /** Frees the GPU's memory, and the device if load() opened it. */
  destroy() {
    this.#destroyed = true;
    for (const each of [...this.#buffers, ...this.#staging, this.#row]) each?.destroy();
    if (this.#ownsDevice) this.#device.destroy();
  }
}

// Elements that the function uses as indices, as natively.
function checkIndices({name, indices = []}, array, wrong) {
  for (const {size, op, columns, row, except} of indices) {
    const bad = i => (array[i] < 0 || array[i] >= size) && array[i] !== except;
    const refuse = i => wrong(`input '${name}': element ${i} is ${array[i]}, which ${op} uses as ` +
      `an index in [0, ${size})`);
    if (!columns) array.forEach((_, i) => bad(i) && refuse(i));
    for (let first = 0; columns && first < array.length; first += row) {
      for (const column of columns) if (bad(first + column)) refuse(first + column);
    }
  }
}
