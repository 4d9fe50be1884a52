// SPDX-License-Identifier: MIT
// Tokenizers, and a language model that learns a text.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { tg } from './support.mjs';

after(() => tg.close());
const { Generator, LanguageModel, TextScorer, Tokenizer, compile, optim, saveLanguageModel } = tg;

const text = 'she sells sea shells by the sea shore. '.repeat(8);

test('tokenizers train, encode and decode', async () => {
  const phases = new Set();
  const bpe = await Tokenizer.train([text], {
    vocabSize: 280, specialTokens: ['<|end|>'], onProgress: ({ phase }) => phases.add(phase) });
  assert.equal(bpe.kind, 'byte-level BPE');
  assert.ok(bpe.vocabSize > 257 && bpe.vocabSize <= 280);
  assert.ok(phases.has('merging'));
  const ids = await bpe.encode('she sells é');
  assert.ok(ids instanceof Int32Array && ids.length < 12);
  assert.equal(await bpe.decode(ids), 'she sells é');
  const same = await Tokenizer.fromJson(await bpe.toJson());
  assert.deepEqual(await same.encode('she sells é'), ids);
  assert.equal(await bpe.tokenToId('<|end|>'), 0);
  assert.equal(await bpe.idToToken(0), '<|end|>');
  assert.equal(await bpe.tokenToId('no such token'), undefined);
  assert.deepEqual((await bpe.encodeBatch(['she', 'sea'])).map((each) => each.length > 0),
                   [true, true]);
  await assert.rejects(Tokenizer.fromJson('{'), { name: 'IoError' });
  await assert.rejects(Tokenizer.characters(['ab']), { name: 'IoError' });
});

for (const engine of ['thread', 'worker']) {
  test(`a language model learns a text in a ${engine}`, async () => {
    const symbols = [...new Set(text)].sort();
    const tokenizer = await Tokenizer.characters(symbols, [], { engine });
    const ids = await tokenizer.encode(text);
    const length = 48, tokens = { shape: [4, length], dtype: 'i32' };
    const trainer = await compile({
      engine, model: new LanguageModel({
        vocabSize: tokenizer.vocabSize, dModel: 32, nLayer: 2, layers: ['mamba1', 'mlp'] }),
      loss: (net, { x, y }) => net.loss(x, y), inputs: { x: tokens, y: tokens },
      optimizer: optim.adamw({ lr: 0.01 }) });
    let loss;
    for (let i = 0; i < 60; ++i) {
      const at = [0, 1, 2, 3].map((k) => (i * 13 + k * 57) % (ids.length - length - 1));
      const cut = (by) => Int32Array.from(at.flatMap((b) => [...ids.slice(b + by, b + by + length)]));
      ({ loss } = await trainer.step({ x: cut(0), y: cut(1) }));
    }
    assert.ok(loss < 0.3, `${loss}`);
    const generator = await Generator.attach(trainer, { tokenizer });
    let heard = '';
    const done = await generator.generate('she sells ', {
      maxTokens: 20, sampling: { temperature: 0 }, onText: (each) => { heard += each.text; } });
    assert.equal(done.finishReason, 'maxTokens');
    assert.equal(done.tokens.length, 20);
    assert.match(done.text, /^sea sh/);
    assert.equal(heard, done.text);
    assert.equal((await generator.times()).tokens, 20);
    const bytes = await saveLanguageModel(trainer, { tokenizer });
    const loaded = await Generator.load(bytes, { engine });
    const [again] = await loaded.generate(['she sells '], { maxTokens: 20, sampling: { temperature: 0 } });
    assert.equal(again.text, done.text);
    assert.deepEqual(await (await loaded.tokenizer()).encode('sea'), await tokenizer.encode('sea'));
    const scorer = await TextScorer.load(bytes, { engine, chunk: 16 });
    const score = await scorer.score(ids.slice(0, 100));
    assert.equal(score.tokens, 99);
    assert.ok(score.perplexity < 2, `${score.perplexity}`);
    for (const each of [generator, loaded, scorer, tokenizer, trainer]) await each.free();
  });
}
