// SPDX-License-Identifier: MIT
// A run crosses between the package and the native tool, in both directions: state, losses, text.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import * as native from './native.mjs';
import { tg } from './support.mjs';

const { DataLoader, Generator, LanguageModel, compile, loadLanguageModel, optim, saveLanguageModel, schedule } = tg;
const { skip } = native;
const folder = mkdtempSync(join(tmpdir(), 'tensorgrad-'));
after(() => rmSync(folder, { recursive: true }));
const read = (...path) => new Uint8Array(readFileSync(join(folder, ...path)));

const text = 'she sells sea shells by the sea shore. '.repeat(60);
writeFileSync(join(folder, 'rhyme.txt'), text);
const batch = 4, length = 32, steps = 45, warmup = 5, seed = 3, holdout = 0.1;
const options = {
  '--width': 32, '--layers': 1, '--steps': steps, '--batch': batch, '--length': length, '--warmup': warmup,
  '--lr': 0.01, '--seed': seed, '--holdout': holdout, '--eval-every': steps, '--eval-windows': 4 };
const train = (arch, name, target, ...more) => native.tg(folder, [
  'lm', 'train', 'rhyme.txt', '--arch', arch, '--no-samples', '--out', name,
  ...Object.entries(options).flat().map(String), ...more], target);

// Returns the losses of a run by step.
function lossesOf(name) {
  const lines = readFileSync(join(folder, name, 'metrics.jsonl'), 'utf8').trim().split('\n').map(JSON.parse);
  return Object.fromEntries(lines.filter(({ kind }) => kind === 'step').map(({ step, loss }) => [step, loss]));
}

// std::seed_seq of two words, which generates one.
function seedWord(words) {
  const mixed = (x) => x ^ (x >>> 27);
  let word = 0x8b8b8b8b;
  for (const add of [words.length, ...words])
    word = Math.imul(1664525, mixed(word)) + add | 0;  // word ^ word ^ word
  return Math.imul(1566083941, mixed(Math.imul(3, word))) >>> 0;
}

// Trains in the package as `tg lm train` does: the same windows, in the same order.
async function compileAlike({ config, tokenizer }) {
  const all = await tokenizer.encode(text);
  const tokens = Int32Array.of(...all.slice(0, all.length - Math.floor(all.length * holdout)), tokenizer.eosId);
  const count = Math.ceil(tokens.length / (length * batch)) * batch;
  const distance = Math.floor(tokens.length / count), more = tokens.length % count;
  const loader = new DataLoader(count, (index, epoch) => {
    const begin = seedWord([seed, epoch]) % tokens.length + index * distance + Math.min(index, more);
    const window = (from) => Int32Array.from({ length }, (_, i) => tokens[(from + i) % tokens.length]);
    return { tokens: window(begin), next: window(begin + 1) };
  }, { batch, seed });
  const shape = [batch, length];
  const trainer = await compile({
    model: new LanguageModel(config), loss: (net, { tokens, next }) => net.loss(tokens, next),
    inputs: { tokens: { shape, dtype: 'i32' }, next: { shape, dtype: 'i32' } },
    optimizer: optim.adamw({
      lr: schedule.warmup(warmup, schedule.cosine(0.01, 0.001, steps - warmup)), beta1: 0.9, beta2: 0.95,
      weightDecay: 0.1 }),
    groups: [{ name: 'no_decay', weightDecay: 0, params: (name, { length: rank }) =>
      rank < 2 || name.endsWith('A_log') || name.endsWith('bias') }],
    clipGradNorm: 1, seed, device: { kind: 'cpu' } });
  await trainer.addLoader('text', loader);
  return {
    trainer,
    // Makes steps first, ..., last. Returns their losses by step.
    run: async (first, last) => {
      const losses = {};
      for (let step = first; step <= last; ++step)
        losses[step] = (await trainer.step((await loader.next()).fields)).loss;
      return losses;
    },
  };
}

// Requires equal losses: to the bit if nothing fuses products and sums, else to rounding.
function alike(losses, expected, target) {
  assert.ok(Object.keys(losses).length > 0);
  for (const [step, loss] of Object.entries(losses)) {
    const of = expected[step], most = target ? 0 : 1e-5 * of;
    assert.ok(Math.abs(loss - of) <= most, `step ${step}: ${loss}, expected ${of}, target ${target || 'any'}`);
  }
}
const written = async (source) => {
  const generator = await Generator.load(source);
  const { text: done } = await generator.generate('she ', { maxTokens: 40, sampling: { temperature: 0 } });
  return done;
};
const writtenNatively = (source, target) => JSON.parse(native.tg(folder, [
  'lm', 'generate', source, '--prompt', 'she ', '--max-tokens', '40', '--temperature', '0', '--json',
  '--quiet'], target)).text;

for (const arch of ['mamba1', 'mamba2', 'gpt']) {
  for (const target of new Set([native.target, ''])) {
    test(`${arch}, ${target || 'any instruction set'}: a native run continues in the package and returns`,
         { skip }, async () => {
      const run = `${arch}${target}`, whole = `${run}-whole`;
      train(arch, whole, target);
      const expected = lossesOf(whole);
      train(arch, run, target, '--stop-after', '15');
      const { trainer, run: steps15 } = await compileAlike(await loadLanguageModel(read(run, 'model.safetensors')));
      const state = read(run, 'checkpoint.safetensors');
      await trainer.load(state);
      assert.deepEqual(await trainer.save(), state);
      alike(await steps15(16, 30), expected, target);
      writeFileSync(join(folder, run, 'checkpoint.safetensors'), await trainer.save());
      const { tensors } = native.readTensors(await trainer.save());
      await trainer.free();
      native.tg(folder, ['lm', 'train', '--resume', run], target);
      const returned = lossesOf(run);
      assert.equal(Object.keys(returned).length, 30);  // those of the package are not in its file
      alike(returned, expected, target);
      assert.notDeepEqual(native.readTensors(read(run, 'checkpoint.safetensors')).tensors, tensors);
      if (target)
        assert.deepEqual(read(run, 'checkpoint.safetensors'), read(whole, 'checkpoint.safetensors'));
      assert.equal(await written(read(run, 'model.safetensors')), writtenNatively(run, target));
    });
  }

  test(`${arch}: a run that begins in the package continues natively`, { skip }, async () => {
    const { target } = native, run = `${arch}-begun`;
    train(arch, run, target, '--stop-after', '1');
    const saved = await loadLanguageModel(read(run, 'model.safetensors'));
    const { trainer, run: from } = await compileAlike(saved);
    alike({ 1: (await from(1, 1))[1] }, lossesOf(run), target);
    if (target) assert.deepEqual(await trainer.save(), read(run, 'checkpoint.safetensors'));
    await from(2, 20);
    writeFileSync(join(folder, 'page.safetensors'),
                  await saveLanguageModel(trainer, { tokenizer: saved.tokenizer }));
    assert.equal(writtenNatively('page.safetensors', target), await written(read('page.safetensors')));
    writeFileSync(join(folder, run, 'checkpoint.safetensors'), await trainer.save());
    native.tg(folder, ['lm', 'train', '--resume', run], target);
    alike(await from(21, steps), lossesOf(run), target);
    if (target) assert.deepEqual(await trainer.save(), read(run, 'checkpoint.safetensors'));
    await trainer.free();
  });
}

test('a damaged checkpoint is refused by both', { skip }, async () => {
  train('gpt', 'damaged', '', '--stop-after', '1');
  const { trainer } = await compileAlike(await loadLanguageModel(read('damaged', 'model.safetensors')));
  const bytes = await trainer.save();
  bytes[bytes.length - 5] ^= 1;
  writeFileSync(join(folder, 'damaged', 'checkpoint.safetensors'), bytes);
  assert.throws(() => native.tg(folder, ['lm', 'train', '--resume', 'damaged']), /checksum/);
  await assert.rejects(trainer.load(bytes), /checksum/);
});
