// SPDX-License-Identifier: MIT
// Tokenizers, a language model that learns a text, and those of other libraries.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import test, { after } from 'node:test';
import { tg } from './support.mjs';

after(() => tg.close());
const {
  Embedder, Generator, LanguageModel, TextScorer, Tokenizer, compile, gpt2Config, loadLanguageModel, optim, saveLanguageModel,
} = tg;

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

test('tokenizers show their pieces, pad texts and return bytes', async () => {
  const bpe = await Tokenizer.train(['aab aab'], { vocabSize: 258, preTokenization: 'gpt2' });
  assert.deepEqual(await bpe.merges(), [['a', 'a'], ['aa', 'b']]);
  assert.equal(bpe.tokenCount, 258);
  assert.deepEqual(await bpe.preTokenize("it's 10 é"), ['it', "'s", ' 10', ' é']);
  const { rows, length, ids, mask, lengths } = await bpe.encodePadded(['aab', 'aab a'], {}, { left: true });
  const id = async (token) => bpe.tokenToId(token);
  assert.deepEqual([rows, length], [2, 3]);
  assert.deepEqual(ids, Int32Array.of(0, 0, await id('aab'), await id('aab'), await id('Ġ'), await id('a')));
  assert.deepEqual(mask, Float32Array.of(0, 0, 1, 1, 1, 1));
  assert.deepEqual(lengths, Int32Array.of(1, 3));
  const euro = await bpe.encode('€');
  assert.deepEqual(await bpe.decodeBytes(euro.slice(0, 2)), Uint8Array.of(0xe2, 0x82));
  assert.deepEqual(await bpe.decodeBytes(euro), new TextEncoder().encode('€'));
  await assert.rejects(bpe.decodeBytes([999]), { name: 'UserError', message: /999/ });
  await assert.rejects(bpe.encodePadded([]), { name: 'UserError' });
});

for (const engine of ['thread', 'worker']) {
  test(`tokens are added to a tokenizer in a ${engine}`, async () => {
    const tokenizer = await Tokenizer.bytes([], { engine });
    assert.deepEqual([tokenizer.vocabSize, tokenizer.bosId, tokenizer.padId], [256, undefined, undefined]);
    await tokenizer.addSpecialTokens(['<s>', '</s>']);
    await tokenizer.addTokens([{ content: 'tree', special: false, singleWord: true, id: 300 }]);
    assert.deepEqual([tokenizer.vocabSize, tokenizer.tokenCount], [301, 259]);
    await tokenizer.setBos('<s>');
    await tokenizer.setEos('</s>');
    await tokenizer.setPad('</s>');
    assert.deepEqual([tokenizer.bosId, tokenizer.eosId, tokenizer.padId], [256, 257, 257]);
    assert.deepEqual(await tokenizer.encode('a tree trees', { addBos: true, addEos: true }), Int32Array.of(
      256, 97, 32, 300, 32, ...new TextEncoder().encode('trees'), 257));
    const { ids } = await tokenizer.encodePadded(['a', 'ab']);
    assert.deepEqual(ids, Int32Array.of(97, 257, 97, 98));
    assert.deepEqual((await tokenizer.addedTokens()).map(({ content, id, special, singleWord }) =>
      [content, id, special, singleWord]),
                     [['<s>', 256, true, false], ['</s>', 257, true, false], ['tree', 300, false, true]]);
    const same = await Tokenizer.fromJson(await tokenizer.toJson(), { engine });
    assert.deepEqual(await same.encode('a tree'), await tokenizer.encode('a tree'));
    await assert.rejects(tokenizer.setBos('none'), { name: 'UserError', message: /none/ });
    await assert.rejects(tokenizer.addTokens([{ content: '' }]), { name: 'UserError' });
    await assert.rejects(tokenizer.addTokens([{ content: 'x', idd: 1 }]), { name: 'UserError', message: /idd/ });
    assert.equal(tokenizer.vocabSize, 301);
    for (const each of [same, tokenizer]) await each.free();
  });

  test(`texts are embedded in a ${engine}`, async () => {
    const config = { vocabSize: 12, dModel: 16, nLayer: 2, layers: ['attention', 'mlp'],
      heads: 2, attention: { maxLength: 24 } };
    const trainer = await compile({
      engine, model: new LanguageModel(config), loss: (net, { x }) => net.loss(x, x),
      inputs: { x: { shape: [1, 8], dtype: 'i32' } }, optimizer: optim.adam({ lr: 0.1 }) });
    const texts = [[1, 2, 3], Int32Array.of(4), [5, 6, 7, 8, 9], Array.from({ length: 20 }, (_, i) => i % 12)];
    const mean = await Embedder.attach(trainer, { batch: 2 });
    const last = await Embedder.attach(trainer, { pooling: 'last' });
    // The states of one text without padding, and their mean.
    const hidden = await trainer.attach({
      inputs: { x: { shape: [1, null], dtype: 'i32' } }, forward: (net, { x }) => net.hiddenStates(x) });
    const check = async (embedder, expected) => {
      const { shape, dtype, data } = await embedder.embed(texts);
      assert.deepEqual([dtype, shape], ['f32', [4, 16]]);
      for (const [i, x] of texts.entries()) {
        const states = await hidden.call({ x });
        for (let k = 0; k < 16; ++k) {
          const column = [...x].map((_, t) => states[16 * t + k]);
          assert.ok(Math.abs(data[16 * i + k] - expected(column)) < 1e-5, `${i}, ${k}`);
        }
      }
      return data;
    };
    const average = (column) => column.reduce((a, b) => a + b) / column.length;
    const before = await check(mean, average);
    await check(last, (column) => column.at(-1));
    await trainer.step({ x: [0, 1, 2, 3, 4, 5, 6, 7] });
    const after = await check(mean, average);
    assert.notDeepEqual(after, before);
    const loaded = await Embedder.load(await saveLanguageModel(trainer), { engine, batch: 2 });
    assert.deepEqual((await loaded.embed(texts)).data, after);
    await assert.rejects(mean.embed([]), { name: 'UserError', message: /at least 1 text/ });
    await assert.rejects(mean.embed([[1], []]), { name: 'UserError', message: /text 1: expected at least 1 token/ });
    await assert.rejects(mean.embed([Array(25).fill(1)]),
                         { name: 'UserError', message: /text 0: expected at most 24 tokens.* got 25/ });
    await assert.rejects(Embedder.attach(trainer, { batch: 0 }), { name: 'UserError', message: /batch/ });
    await trainer.replaceModel(new LanguageModel({ ...config, dModel: 8, attention: { maxLength: 40 } }));
    assert.deepEqual((await mean.embed([Array(30).fill(1)])).shape, [1, 8]);
    for (const each of [mean, last, hidden, loaded, trainer]) await each.free();
  });
}

test('tokenizers of SentencePiece and BERT are read', async () => {
  const corpus = new URL('../../tests/fuzz/corpus/tokenizer/', import.meta.url);
  const pieces = await Tokenizer.fromSentencePiece(readFileSync(new URL('bpe.model', corpus)));
  assert.equal(pieces.kind, 'character BPE');
  assert.equal(await pieces.decode(await pieces.encode('ab a##')), 'ab a##');
  await assert.rejects(Tokenizer.fromSentencePiece(new Uint8Array([10, 200])), { name: 'IoError' });
  const words = readFileSync(new URL('bert.txt', corpus), 'utf8');
  const bert = await Tokenizer.fromWordPiece(words);
  assert.deepEqual([...await bert.encode('AB')], [1, 6, 2]);
  const cased = await Tokenizer.fromWordPiece(words, { lowercase: false });
  assert.deepEqual([...await cased.encode('AB')], [1, 0, 2]);
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

test('a generator follows its trainer to another model', async () => {
  class Text extends tg.Module {
    constructor(dModel, count = 1) {
      super();
      this.models = Array.from({ length: count }, () => new LanguageModel({
        vocabSize: 8, dModel, nLayer: 1, layers: ['mamba2'], mamba2: { dState: 4, headDim: 8 } }));
    }
  }
  const tokenizer = await Tokenizer.characters([...'abcdefgh']);
  const trainer = await compile({
    model: new Text(16), loss: (net, { x }) => net.models[0].loss(x, x),
    inputs: { x: { shape: [1, 8], dtype: 'i32' } }, optimizer: optim.adam({ lr: 0.1 }) });
  const generator = await Generator.attach(trainer, { tokenizer });
  const text = async (from = generator) => (await from.generate('abc', { maxTokens: 12,
    sampling: { temperature: 0 } })).text;
  const step = (...x) => trainer.step({ x: Int32Array.from(x) });
  await step(0, 1, 2, 3, 4, 5, 6, 7);
  await text();
  // One is attached while the model is replaced.
  const [late] = await Promise.all([Generator.attach(trainer, { tokenizer }),
                                    trainer.replaceModel(new Text(24))]);
  for (let i = 0; i < 5; ++i) {
    await step(7, 6, 5, 4, 3, 2, 1, 0);
    const fresh = await Generator.attach(trainer, { tokenizer });
    assert.equal(await text(), await text(fresh));
    assert.equal(await text(late), await text(fresh));
    await fresh.free();
  }
  const before = await text();
  await assert.rejects(trainer.replaceModel(new Text(16, 2)),
                       { name: 'UserError', message: /expected one LanguageModel in the model, got 2/ });
  assert.equal(await text(), before);
  await generator.free();
  await trainer.replaceModel(new Text(32));
  assert.notEqual(await text(late), undefined);
  const foreign = new LanguageModel({ vocabSize: 8, dModel: 8, nLayer: 1, layers: ['mlp'] });
  await assert.rejects(Generator.attach(trainer, { tokenizer, layer: foreign }),
                       { name: 'UserError', message: /the layer is not in the model/ });
  for (const each of [late, tokenizer, trainer]) await each.free();
});

const golden = new URL('../../tests/golden/', import.meta.url);
const bytesOf = (path) => new Uint8Array(readFileSync(new URL(path, golden)));

// Returns the tensors of a safetensors file: i32 and f32.
function tensorsOf(bytes) {
  const size = Number(new DataView(bytes.buffer).getBigUint64(0, true)), data = bytes.slice(8 + size);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  return Object.fromEntries(Object.entries(header).map(([name, { dtype, shape, data_offsets }]) => [
    name, { shape, data: new (dtype === 'I32' ? Int32Array : Float32Array)(data.slice(...data_offsets).buffer) }]));
}

test('language models of transformers and llama.cpp load, and train further', async () => {
  const folder = (name) => Object.fromEntries(readdirSync(new URL(`pretrained/${name}`, golden))
    .filter((file) => file !== 'expected.safetensors')
    .map((file) => [file, bytesOf(`pretrained/${name}/${file}`)]));
  const sources = [
    ...['llama', 'gpt2', 'gpt2_odd', 'mamba2'].map((name) =>
      [name, folder(name), `pretrained/${name}/expected.safetensors`, 1e-4]),
    ['llama.gguf', bytesOf('gguf/llama.gguf'), 'gguf/llama.safetensors', 1e-4],
    ['gpt2.gguf', bytesOf('gguf/gpt2.gguf'), 'gguf/gpt2.safetensors', 1e-2]];  // as in C++
  for (const [name, source, expected, tolerance] of sources) {
    const { tokens, logits } = tensorsOf(bytesOf(expected));
    const { config, weights, tokenizer } = await loadLanguageModel(source);
    const inputs = { x: { shape: tokens.shape.length === 1 ? [1, ...tokens.shape] : tokens.shape, dtype: 'i32' } };
    const trainer = await compile({ model: new LanguageModel(config), inputs,
      loss: (net, { x }) => net.loss(x, x), optimizer: optim.sgd({ lr: 0.1 }) });
    await trainer.loadParams(weights);
    const forward = await trainer.attach({ forward: (net, { x }) => net.forward(x), inputs });
    const output = await forward.call({ x: tokens.data });
    output.forEach((each, i) => assert.ok(Math.abs(each - logits.data[i]) <= tolerance,
                                               `${name}, ${i}: ${each} ${logits.data[i]}`));
    const first = (await trainer.step({ x: tokens.data })).loss;
    assert.ok((await trainer.step({ x: tokens.data })).loss < first, name);

    const scorer = await TextScorer.load(source, { chunk: 13 }), length = tokens.shape.at(-1);
    const { nats } = await scorer.score(tokens.data.slice(0, length));
    const row = (i) => [...logits.data.slice(i * config.vocabSize, (i + 1) * config.vocabSize)];
    let wanted = 0;
    for (let i = 0; i + 1 < length; ++i) {
      const at = row(i);
      wanted += Math.log(at.reduce((sum, each) => sum + Math.exp(each), 0)) - at[tokens.data[i + 1]];
    }
    assert.ok(Math.abs(nats - wanted) <= 2 * tolerance * length, `${name}: ${nats} ${wanted}`);
    if (tokenizer) {
      const ids = JSON.parse(readFileSync(new URL('gguf/ids.json', golden), 'utf8'))[name.split('.')[0]];
      for (const [words, wantedIds] of Object.entries(ids))
        assert.deepEqual([...await tokenizer.encode(words)], wantedIds, words);
      const generator = await Generator.load(source);
      const { tokens: generated } = await generator.generate('a', { maxTokens: 3, sampling: { temperature: 0 } });
      assert.ok(generated.length > 0);
      await generator.free();
    }
    for (const each of [trainer, scorer]) await each.free();
  }
  const { config } = await loadLanguageModel(folder('gpt2'));
  assert.deepEqual(await gpt2Config({ vocabSize: config.vocabSize, dModel: config.dModel,
    blocks: config.nLayer / 2, heads: config.heads, nPositions: config.nPositions }), config);
});

test('files that hold no language model are refused', async () => {
  const config = new TextEncoder().encode('{"model_type": "unknown"}');
  await assert.rejects(loadLanguageModel({ 'config.json': config }), { name: 'IoError', message: /unknown/ });
  await assert.rejects(loadLanguageModel({}), { name: 'IoError', message: /config\.json/ });
  for (const load of [loadLanguageModel, Generator.load, TextScorer.load, Embedder.load]) {
    await assert.rejects(load(bytesOf('gguf/llama.gguf').subarray(0, 1000)), { name: 'IoError' });
    await assert.rejects(load(new Uint8Array(10)), { name: 'IoError' });
  }
});
