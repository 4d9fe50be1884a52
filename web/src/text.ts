// SPDX-License-Identifier: MIT
// Tokenizers, and text generation and scoring with language models.
import { ask, place, session, type Engine, type EngineKind } from './engine.js';
import { UserError } from './errors.js';
import { compileFunction, type CompiledFunction, type HostTensor } from './function.js';
import { LanguageModel } from './generated/layers.js';
import type {
  AddedToken, BpeOptions, BpeProgress, BpeTrainOptions, Completion, DecodeOptions, DecoderOptions,
  EmbedOptions, EncodeOptions, GenerateOptions, GenerationTimes, LanguageModelConfig, PadOptions,
  ScoreOptions, TokenBatch,
} from './generated/types.js';
import { userLocation } from './location.js';
import { entriesOf, type Module, type ModelEntries } from './module.js';
import type { Tensor } from './tensor.js';
import type { Trainer } from './trainer.js';

interface Where { engine?: EngineKind }
interface TokenizerInfo {
  id: number; kind: string; vocabSize: number; tokenCount: number;
  bosId?: number; eosId?: number; padId?: number; unkId?: number;
}

/** Tokenizer of byte-level BPE, SentencePiece, WordPiece, bytes or characters. */
export class Tokenizer {
  private readonly copies = new Map<Engine, Promise<TokenizerInfo>>();  // in other engines
  private constructor(/** @internal */ readonly owner: Engine, /** @internal */ private info:
  TokenizerInfo) {}

  private static async make(call: string, args: object, { engine }: Where): Promise<Tokenizer> {
    const at = userLocation(3);
    const own = (await session(engine, true)).engine;
    return new Tokenizer(own, await ask(own, `tokenizer.${call}`, at, args));
  }
  /** @internal */
  static of(owner: Engine, info: TokenizerInfo): Tokenizer { return new Tokenizer(owner, info); }

  /** Parses the content of a tokenizer.json. */
  static fromJson(json: string, where: Where = {}): Promise<Tokenizer> {
    return Tokenizer.make('fromJson', { json }, where);
  }
  /** Reads the bytes of a tiktoken file. */
  static fromTiktoken(bytes: Uint8Array, { engine, ...options }: BpeOptions & Where = {}):
  Promise<Tokenizer> {
    return Tokenizer.make('fromTiktoken', { bytes, options }, { engine: engine! });
  }
  /** Reads the bytes of a SentencePiece model (tokenizer.model), BPE or unigram. */
  static fromSentencePiece(bytes: Uint8Array, where: Where = {}): Promise<Tokenizer> {
    return Tokenizer.make('fromSentencePiece', { bytes }, where);
  }
  /** Reads the content of BERT's vocab.txt: a token of WordPiece on each line. */
  static fromWordPiece(vocab: string,
                       { engine, lowercase = true }: Where & { lowercase?: boolean } = {}):
  Promise<Tokenizer> {
    return Tokenizer.make('fromWordPiece', { vocab, lowercase }, { engine: engine! });
  }
  /** Reads the contents of vocab.json and merges.txt. */
  static fromVocabAndMerges(vocab: string, merges: string,
                            { engine, ...options }: BpeOptions & Where = {}): Promise<Tokenizer> {
    return Tokenizer.make('fromVocabAndMerges', { vocab, merges, options }, { engine: engine! });
  }
  /** Trains a byte-level BPE. Merges do not cross texts. */
  static async train(
    texts: readonly string[],
    { engine, onProgress, ...options }:
    BpeTrainOptions & Where & { onProgress?: (progress: BpeProgress) => void } = {}):
  Promise<Tokenizer> {
    const own = (await session(engine, true)).engine;
    const number = onProgress && own.listen(onProgress);
    try {
      return await Tokenizer.make('train', { texts, options, onProgress: number },
                                  { engine: engine! });
    } finally {
      if (number) own.forget(number);
    }
  }
  /** Returns a tokenizer of bytes. Special tokens follow from 256. */
  static bytes(special: readonly string[] = [], where: Where = {}): Promise<Tokenizer> {
    return Tokenizer.make('bytes', { special }, where);
  }
  /** Returns a tokenizer of characters. Symbol i is token i; special tokens follow. */
  static characters(symbols: readonly string[], special: readonly string[] = [],
                    where: Where = {}): Promise<Tokenizer> {
    return Tokenizer.make('characters', { symbols, special }, where);
  }

  private ask(call: string, args: object = {}): Promise<any> {
    return ask(this.owner, `tokenizer.${call}`, userLocation(3), { id: this.info.id, ...args });
  }
  private async change(call: string, args: object): Promise<void> {
    const at = userLocation(3);
    this.info = await ask(this.owner, `tokenizer.${call}`, at, { id: this.info.id, ...args });
    await this.freeCopies();
  }
  /** "byte-level BPE", "bytes", "characters", "character BPE", "unigram" or "WordPiece". */
  get kind(): string { return this.info.kind; }
  /** The largest id plus 1, which is the number of rows of an embedding. */
  get vocabSize(): number { return this.info.vocabSize; }
  /** The number of tokens. It is less than `vocabSize` if some ids are not used. */
  get tokenCount(): number { return this.info.tokenCount; }
  /** Ids of special tokens, if the tokenizer has them. */
  get bosId(): number | undefined { return this.info.bosId; }
  get eosId(): number | undefined { return this.info.eosId; }
  get padId(): number | undefined { return this.info.padId; }
  get unkId(): number | undefined { return this.info.unkId; }

  /** Returns the ids of a text. */
  encode(text: string, options: EncodeOptions = {}): Promise<Int32Array> {
    return this.ask('encode', { text, options });
  }
  /** Returns the ids of several texts. */
  encodeBatch(texts: readonly string[], options: EncodeOptions = {}): Promise<Int32Array[]> {
    return this.ask('encodeBatch', { texts, options });
  }
  /** Returns the padded ids of several texts. The padding is `padId`, or 0 if there is none. */
  encodePadded(texts: readonly string[], options: EncodeOptions = {}, pad: PadOptions = {}):
  Promise<TokenBatch> {
    return this.ask('encodePadded', { texts, options, pad });
  }
  /** Returns the pre-tokens of a text, after normalization. Added tokens are not searched for. */
  preTokenize(text: string): Promise<string[]> { return this.ask('preTokenize', { text }); }
  /**
   * Returns the bytes of ids. In byte-level BPE, they equal the encoded text in UTF-8, except for
   * normalization, white space that added tokens matched, and an added prefix space.
   */
  decodeBytes(ids: Int32Array | readonly number[], options: DecodeOptions = {}): Promise<Uint8Array> {
    return this.ask('decodeBytes', { ids, options });
  }
  /** Returns the text of ids; invalid UTF-8 becomes U+FFFD. */
  decode(ids: Int32Array | readonly number[], options: DecodeOptions = {}): Promise<string> {
    return this.ask('decode', { ids, options });
  }
  /** Returns the id of a token, if there is one. */
  tokenToId(token: string): Promise<number | undefined> { return this.ask('tokenToId', { token }); }
  /** Returns the token of an id, if there is one. */
  idToToken(token: number): Promise<string | undefined> { return this.ask('idToToken', { token }); }
  /** Returns the added tokens in the order of their ids. */
  addedTokens(): Promise<Required<AddedToken>[]> { return this.ask('addedTokens'); }
  /** Returns the pairs that are merged, in order of rank, written as for tokenToId(). */
  merges(): Promise<[string, string][]> { return this.ask('merges'); }
  /**
   * Adds tokens. A token in the vocabulary keeps its id. Generators that were made before do not
   * have them; neither do models, whose embedding has `vocabSize` rows.
   */
  addTokens(tokens: readonly AddedToken[]): Promise<void> { return this.change('addTokens', { tokens }); }
  /** Adds special tokens by their contents, as addTokens(). */
  addSpecialTokens(contents: readonly string[]): Promise<void> {
    return this.change('addTokens', { contents });
  }
  /** Sets the token that begins a text. */
  setBos(token: string): Promise<void> { return this.change('setToken', { role: 'bos', token }); }
  /** Sets the token that ends a text. */
  setEos(token: string): Promise<void> { return this.change('setToken', { role: 'eos', token }); }
  /** Sets the token of padding. */
  setPad(token: string): Promise<void> { return this.change('setToken', { role: 'pad', token }); }
  /** Returns the text of a tokenizer.json. */
  toJson(): Promise<string> { return this.ask('toJson'); }
  /** @internal Returns its number in an engine, into which it is copied if it is in another one. */
  async numberIn(engine: Engine): Promise<number> {
    if (engine === this.owner) return this.info.id;
    let copy = this.copies.get(engine);
    if (!copy) {
      copy = this.toJson().then((json) => ask(engine, 'tokenizer.fromJson', userLocation(3), { json }));
      this.copies.set(engine, copy);
    }
    return (await copy).id;
  }
  private async freeCopies(): Promise<void> {
    const copies = [...this.copies];
    this.copies.clear();
    for (const [engine, copy] of copies)
      await ask(engine, 'tokenizer.free', userLocation(3), { id: (await copy).id });
  }
  /** Frees the tokenizer. */
  async free(): Promise<void> {
    await this.freeCopies();
    return this.ask('free');
  }
}

/**
 * What a language model is loaded from:
 * - the bytes of a file of saveLanguageModel(), of `tg lm`, or of llama.cpp (GGUF), or
 * - the files of a folder of Hugging Face's transformers by their names: 'config.json',
 *   'model.safetensors' or its shards, and those of the tokenizer. The architectures are Mamba,
 *   Mamba-2, Llama, GPT-2, Bamba, Jamba and Zamba2.
 *
 * Quantized weights of GGUF, and f16 and bf16 weights, become f32.
 */
export type LanguageModelSource = Uint8Array | { readonly [file: string]: Uint8Array };

/** A language model that was read from files. */
export interface SavedLanguageModel {
  /** Options of the layer: `new LanguageModel(config)`. */
  config: LanguageModelConfig;
  /** Bytes for `trainer.loadParams()` of a trainer whose model is that layer. */
  weights: Uint8Array;
  tokenizer?: Tokenizer;
}

/**
 * Reads a language model to train it further:
 * ```ts
 * const { config, weights, tokenizer } = await loadLanguageModel(bytes);
 * const trainer = await compile({ model: new LanguageModel(config), loss, inputs, optimizer });
 * await trainer.loadParams(weights);
 * ```
 */
export async function loadLanguageModel(source: LanguageModelSource, { engine }: Where = {}):
Promise<SavedLanguageModel> {
  const at = userLocation(2), own = (await session(engine, true)).engine;
  const { tokenizer, ...model } = await ask(own, 'languageModel.load', at, { source });
  return { ...model, ...(tokenizer && { tokenizer: Tokenizer.of(own, tokenizer) }) };
}

/**
 * Returns the configuration of GPT-2 (Radford et al. 2019) with `blocks` blocks. A block is two
 * layers, attention and an MLP.
 */
export async function gpt2Config(
  sizes: { vocabSize: number; dModel: number; blocks: number; heads: number; nPositions: number },
  { engine }: Where = {}): Promise<LanguageModelConfig> {
  return ask((await session(engine, true)).engine, 'languageModel.gpt2Config', userLocation(2), sizes);
}

/** New text of one prompt, while it is generated. */
export interface GeneratedText { prompt: number; token: number; text: string }

// Returns the language models among the parts of a model, with their entries.
function languageModels({ numbers }: ModelEntries): [LanguageModel, number][] {
  return [...numbers].filter(
    (each): each is [LanguageModel, number] => each[0] instanceof LanguageModel);
}

// Returns the language model in a model and its entry: the only one, or the one at a place.
function languageModel(entries: ModelEntries, place?: number): [LanguageModel, number] {
  const all = languageModels(entries);
  if (place === undefined && all.length !== 1)
    throw new UserError(`expected one LanguageModel in the model, got ${all.length}`);
  const found = all[place ?? 0];
  if (!found)
    throw new UserError(`expected ${place! + 1} or more LanguageModels in the model, got ${all.length}`);
  return found;
}

// Returns the place of a layer among the language models of a trainer, or undefined for no layer.
function placeOf(layer: LanguageModel | undefined, trainer: Trainer<any, any, any>, call: string):
number | undefined {
  const place = layer && languageModels(trainer.entries).findIndex(([part]) => part === layer);
  if (place === -1) throw new UserError(`${call}: the layer is not in the model`);
  return place;
}

/** Generates text with a language model and a tokenizer. */
export class Generator {
  private constructor(private readonly engine: Engine, private readonly id: number,
                      private readonly onFree?: () => void) {}

  /**
   * Attaches a generator to the LanguageModel that a trainer trains. Each call uses the current
   * parameters. It follows replaceModel() until it is freed.
   */
  static async attach<M extends Module>(
    trainer: Trainer<M, any, any>,
    spec: DecoderOptions & { tokenizer: Tokenizer; layer?: LanguageModel }): Promise<Generator> {
    const { tokenizer, layer, ...options } = spec, { generation, own: { engine } } = trainer;
    const at = userLocation(2), number = await tokenizer.numberIn(engine);
    const place = placeOf(layer, trainer, 'Generator.attach');
    const requestFor = (entries: ModelEntries) =>
      ({ entry: languageModel(entries, place)[1], options, file: at[0], line: at[1] });
    const id: number = await ask(engine, 'generator.attach', at, {
      id: trainer.info.id, tokenizer: number, ...requestFor(trainer.entries) });
    if (generation !== trainer.generation) {  // the model was replaced meanwhile
      await ask(engine, 'generator.free', at, { id });
      return Generator.attach(trainer, spec);
    }
    trainer.generators.set(id, requestFor);
    return new Generator(engine, id, () => trainer.generators.delete(id));
  }
  /** Compiles a generator for a model in files. */
  static async load(source: LanguageModelSource, { engine, ...options }: DecoderOptions & Where = {}):
  Promise<Generator> {
    const at = userLocation(2);
    const { own, device, helpers } = await place(engine, true, options.device);
    return new Generator(own.engine, await ask(own.engine, 'generator.load', at, {
      source, options: device ? { ...options, device } : options }, helpers));
  }

  private ask(call: string, args: object = {}): Promise<any> {
    return ask(this.engine, `generator.${call}`, userLocation(3), { id: this.id, ...args });
  }
  /** Continues a prompt, or each of several. `onText` receives each piece of new text. */
  generate(prompt: string, options?: GenerateOptions & { onText?: (text: GeneratedText) => void }):
  Promise<Completion>;
  generate(prompts: readonly string[],
           options?: GenerateOptions & { onText?: (text: GeneratedText) => void }):
  Promise<Completion[]>;
  async generate(prompts: string | readonly string[], { onText, ...options }: any = {}):
  Promise<any> {
    const number = onText && this.engine.listen(onText);
    try {
      const list = typeof prompts === 'string' ? [prompts] : prompts;
      const all = await this.ask('generate', { prompts: list, options, onText: number });
      return typeof prompts === 'string' ? all[0] : all;
    } finally {
      if (number) this.engine.forget(number);
    }
  }
  /** Returns the times of the last call of generate(). */
  times(): Promise<GenerationTimes> { return this.ask('times'); }
  /** Returns the tokenizer. */
  async tokenizer(): Promise<Tokenizer> {
    return Tokenizer.of(this.engine, await this.ask('tokenizer'));
  }
  /** Stops generation. On the CPU in a worker, only after the texts are complete. */
  abort(): void { this.engine.abort(this.id); }
  /** Frees the generator. */
  free(): Promise<void> {
    this.onFree?.();
    return this.ask('free');
  }
}

/** Returns the bytes of a model file with the LanguageModel being trained. `tg lm` can read it. */
export async function saveLanguageModel<M extends LanguageModel>(
  trainer: Trainer<M, any, any>, { tokenizer }: { tokenizer?: Tokenizer } = {}): Promise<Uint8Array> {
  const at = userLocation(2), { engine } = trainer.own;
  return ask(engine, 'languageModel.save', at, {
    id: trainer.info.id, entry: languageModel(trainer.entries)[1], tokenizer: await tokenizer?.numberIn(engine) });
}

/** Score of a text. */
export interface Score { nats: number; tokens: number; loss: number; perplexity: number }

/** Scores texts under a language model. */
export class TextScorer {
  private constructor(private readonly engine: Engine, private readonly id: number) {}
  /** Compiles a scorer for a model in files. */
  static async load(source: LanguageModelSource, { engine, ...options }: ScoreOptions & Where = {}):
  Promise<TextScorer> {
    const at = userLocation(2);
    const { own, device, helpers } = await place(engine, true, options.device);
    return new TextScorer(own.engine, await ask(own.engine, 'scorer.load', at, {
      source, options: device ? { ...options, device } : options }, helpers));
  }
  /** Returns the score of all tokens but the first. */
  score(tokens: Int32Array | readonly number[]): Promise<Score> {
    return ask(this.engine, 'scorer.score', userLocation(2), { id: this.id, tokens });
  }
  /** Frees the scorer. */
  free(): Promise<void> { return ask(this.engine, 'scorer.free', userLocation(2), { id: this.id }); }
}

/** Computes the embeddings of texts with `LanguageModel.embed()`. */
export class Embedder {
  private constructor(
    private readonly engine: Engine,
    private readonly forward: CompiledFunction<ReturnType<typeof embedInputs>, Tensor>,
    private readonly batch: number, private readonly config: () => LanguageModelConfig) {}

  /** Compiles an embedder for a model in files. */
  static async load(source: LanguageModelSource,
                    { engine, device, pooling = 'mean', batch = 8 }: EmbedOptions & Where = {}):
  Promise<Embedder> {
    const inputs = embedInputs(batch);
    const { config, weights, tokenizer } = await loadLanguageModel(source, { engine });
    await tokenizer?.free();
    const forward = await compileFunction({
      model: new LanguageModel(config), inputs, engine, device,
      forward: (net, { tokens, lengths }) => net.embed(tokens, lengths, pooling) });
    await forward.loadParams(weights);
    return new Embedder((await session(engine, true)).engine, forward, batch, () => config);
  }
  /**
   * Attaches an embedder to the LanguageModel that a trainer trains. Each call uses the current
   * parameters. It follows replaceModel() until it is freed.
   */
  static async attach<M extends Module>(
    trainer: Trainer<M, any, any>,
    { layer, pooling = 'mean', batch = 8 }: Omit<EmbedOptions, 'device'> & { layer?: LanguageModel } = {}):
  Promise<Embedder> {
    const place = placeOf(layer, trainer, 'Embedder.attach');
    const forward = await trainer.attach({
      inputs: embedInputs(batch), forward: (model, { tokens, lengths }) =>
        languageModel(entriesOf(model), place)[0].embed(tokens, lengths, pooling) });
    return new Embedder(trainer.own.engine, forward, batch, () =>
      languageModel(trainer.entries, place)[0].args[0] as LanguageModelConfig);
  }

  /**
   * Returns the embeddings of N texts, given as tokens: [N, dModel]. The embedding of a text does
   * not depend on the other texts, except for the last bits. Texts are padded to a power of two of
   * tokens, at least 16. Each of these lengths is compiled once.
   */
  async embed(texts: readonly (Int32Array | readonly number[])[]): Promise<HostTensor> {
    const context = await ask(this.engine, 'languageModel.maxContext', userLocation(2),
                              { config: this.config() });
    if (!texts.length) throw new UserError('embed: expected at least 1 text, got none');
    texts.forEach(({ length }, i) => {
      if (!length) throw new UserError(`embed: text ${i}: expected at least 1 token, got none`);
      if (context && length > context) {
        throw new UserError(`embed: text ${i}: expected at most ${context} tokens, the context of the ` +
          `model, got ${length}`);
      }
    });
    const rows: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += this.batch) {
      const part = texts.slice(from, from + this.batch);
      let padded = 16;
      while (part.some(({ length }) => length > padded)) padded *= 2;
      if (context) padded = Math.min(padded, context);
      const tokens = new Int32Array(this.batch * padded), lengths = new Int32Array(this.batch).fill(1);
      part.forEach((text, i) => {
        tokens.set(text, i * padded);
        lengths[i] = text.length;
      });
      const all = await this.forward.call({ tokens, lengths });
      rows.push(all.subarray(0, part.length * all.length / this.batch));
    }
    const data = new Float32Array(rows.reduce((sum, { length }) => sum + length, 0));
    rows.reduce((to, each) => (data.set(each, to), to + each.length), 0);
    return { dtype: 'f32', shape: [texts.length, data.length / texts.length], data };
  }
  /** Frees the embedder. */
  free(): Promise<void> { return this.forward.free(); }
}

// Returns the inputs of a function that embeds a batch of texts.
function embedInputs(batch: number) {
  if (!Number.isInteger(batch) || batch < 1)
    throw new UserError(`Embedder: batch: expected at least 1, got ${batch}`);
  return { tokens: { shape: [batch, null], dtype: 'i32' }, lengths: { shape: [batch], dtype: 'i32' } } as const;
}
