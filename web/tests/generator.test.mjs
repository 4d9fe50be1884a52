// SPDX-License-Identifier: MIT
// What is added in C++ is in TypeScript without another line, or the generator says what is missing.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tg } from './support.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const venv = join(root, 'build/api-venv/bin/python');
const python = process.env.TENSORGRAD_API_PYTHON ?? (existsSync(venv) ? venv : 'python3');
const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
after(() => rmSync(folder, { recursive: true }));

const include = join(folder, 'include');
cpSync(join(root, 'include'), include, { recursive: true });
const describe = () => {
  const api = join(folder, 'api.json');
  const { status, stderr } =
    spawnSync(python, ['-B', join(root, 'tools/describe_api.py'), api, include], { encoding: 'utf8' });
  return { status, stderr, api: status === 0 ? JSON.parse(readFileSync(api, 'utf8')) : undefined };
};
const generate = (api) => {
  const path = join(folder, 'changed.json');
  writeFileSync(path, JSON.stringify(api));
  const out = join(folder, 'out');
  const { status, stderr } =
    spawnSync('python3', ['-B', join(root, 'web/generate.py'), path, out, out], { encoding: 'utf8' });
  return { status, stderr, read: (name) => readFileSync(join(out, name), 'utf8') };
};
const header = (name, text) => {
  const path = join(include, 'tensorgrad', name);
  const before = readFileSync(path, 'utf8');
  appendFileSync(path, `namespace tensorgrad::inline TENSORGRAD_ABI {\n${text}\n}\n`);
  return () => writeFileSync(path, before);
};
const { api } = describe();

test('a new op, layer and option are in C++ and TypeScript, with their comments', () => {
  const undo = [
    header('ops/linalg.h', `
/// Options of new_op().
struct NewOptions {
  std::int64_t first_axis = 3;  ///< Where it begins.
};
/// Returns something new of \`x\`, as new_op() does.
Tensor new_op(Tensor x, double how_much = 0.5, const NewOptions& options = {},
              Loc loc = Loc::current());`),
    header('nn/linear.h', `
namespace nn {
/// A new layer.
struct NewLayer {
  NewLayer(std::int64_t in, bool with_bias = true, Loc loc = Loc::current());
  Parameter weight;
  TG_MODULE(weight)
  /// Returns its output.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};
}`)];
  const changed = describe();
  assert.equal(changed.status, 0, changed.stderr);
  undo.forEach((each) => each());
  const { status, stderr, read } = generate(changed.api);
  assert.equal(status, 0, stderr);
  assert.match(read('ops.inc'),
               /tensorgrad::new_op\(c\.get<Tensor>\(0, "x"\), c\.get<double>\(1, "howMuch", 0\.5\)/);
  assert.match(read('ops.ts'), /something new of `x`, as newOp\(\) does\..*default: 0\.5/s);
  assert.match(read('ops.ts'),
               /function newOp\(x: TensorLike, howMuch\?: number, options\?: NewOptions\): Tensor;/);
  assert.match(read('types.ts'), /interface NewOptions \{.*Where it begins\..*firstAxis\?: number;/s);
  assert.match(read('structs.inc'), /visit\(std::string_view\("firstAxis"\), s\.first_axis\)/);
  assert.match(read('layers.ts'),
               /class NewLayer extends Layer .*constructor\(in_: number, withBias\?: boolean\)/s);
  assert.match(read('layer_calls.inc'), /"NewLayer\.forward".*c\.layer<nn::NewLayer>\(\)\(/);
});

test('a type that is not known stops the description, at its line', () => {
  const undo = header('ops/linalg.h', '/// New.\nTensor new_op(Tensor x, std::map<int, int> y);');
  const { status, stderr } = describe();
  undo();
  assert.notEqual(status, 0);
  assert.match(stderr, /tensorgrad\/ops\/linalg\.h:\d+: unknown type 'std::map/);
});

test('an op that takes a function must be in the list, and what is in the list must exist', () => {
  const op = api.functions.find((each) => each.name === 'softmax');
  const callback = { name: 'f', default: null, type: { kind: 'function', cpp: 'F' } };
  const added = { ...op, name: 'apply', parameters: [callback] };
  let { status, stderr } = generate({ ...api, functions: [...api.functions, added] });
  assert.notEqual(status, 0);
  assert.match(stderr, /op 'apply' takes a function: add it to OPS_BY_HAND/);
  ({ status, stderr } = generate({
    ...api, functions: api.functions.filter((each) => each.name !== 'checkpoint') }));
  assert.notEqual(status, 0);
  assert.match(stderr, /OPS_BY_HAND names what is not an op: checkpoint/);
  const options = structuredClone(api);
  options.structs['RopeOptions'].fields.push({ name: 'f', doc: '', default: null, type: callback.type });
  ({ status, stderr } = generate(options));
  assert.notEqual(status, 0);
  assert.match(stderr, /RopeOptions::f is a function: add it to FIELDS_BY_HAND/);
});

test('classes have the methods of C++', () => {
  const camel = (name) => name.replace(/_(\w)/g, (_, c) => c.toUpperCase());
  const has = (object) =>
    object ? [...Object.getOwnPropertyNames(object), ...has(Object.getPrototypeOf(object))] : [];
  const all = {
    Stepper: tg.Objective, TrainerBase: tg.TrainerBase, ModelTrainer: tg.Trainer,
    AnyMultiTrainer: Object.assign(() => {}, { objectives: 'a field' }),
    DataLoader: tg.DataLoader, 'optim::Update': tg.optim.Update,
    CompiledFunction: tg.CompiledFunction, Tokenizer: tg.Tokenizer, 'lm::Generator': tg.Generator,
    'lm::TextScorer': tg.TextScorer, 'lm::Embedder': tg.Embedder,
  };
  // Of other names in JavaScript, or without a counterpart, and why.
  const others = new Set([
    'parameter_names', 'set_lr', 'lr', 'steps', 'updates', 'epoch', 'batches_per_epoch',  // counters()
    'model', 'size',  // fields
    'replica', 'with_model',  // of C++ with threads; replaceModel()
    'DataLoader',  // its constructor
    'bind_input', 'bind_output', 'bind_data', 'host_times',  // WebGPU's own buffers
    'run_on_device',  // not yet
    'web_files',  // exportWeb()
    'save_bytes',  // save()
    'async', 'step_async', 'run_async', 'call_async', 'download_params_async', 'download_ema_async',
    'download_optimizer_async', 'download_grads_async',  // all calls are
    'save', 'from_file', 'from_folder', 'train_from_files',  // of tokenizers: files
    'from_sentencepiece', 'from_wordpiece',  // fromSentencePiece(), fromWordPiece()
    'generate_from', 'decoder',  // generators of text
    'per_update',  // of optimizers: called in the worker
  ]);
  const missing = [];
  for (const [name, methods] of Object.entries(api.classes)) {
    const known = new Set([...has(all[name]), ...has(all[name].prototype)]);
    missing.push(...methods.filter((each) => !known.has(camel(each)) && !others.has(each))
      .map((each) => `${name}::${each}`));
  }
  assert.deepEqual(missing, []);
  assert.ok(Object.keys(api.classes).length === Object.keys(all).length);
});
