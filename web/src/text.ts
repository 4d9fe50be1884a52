// SPDX-License-Identifier: MIT
// Tokenizers, and text generation and scoring with language models.
import { ask, place, session, type Engine, type EngineKind } from './engine.js';
import { UserError } from './errors.js';
import { LanguageModel } from './generated/layers.js';
import type {
  BpeOptions, BpeProgress, BpeTrainOptions, Completion, DecodeOptions, DecoderOptions,
  EncodeOptions, GenerateOptions, GenerationTimes, LanguageModelConfig, ScoreOptions,
} from './generated/types.js';
import { userLocation } from './location.js';
import type { Module, ModelEntries } from './module.js';
import type { Trainer } from './trainer.js';

interface Where { engine?: EngineKind }
interface TokenizerInfo {
  id: number; kind: string; vocabSize: number;
  bosId?: number; eosId?: number; padId?: number; unkId?: number;
}

/** Tokenizer of byte-level BPE, SentencePiece, WordPiece, bytes or characters. */
export class Tokenizer {
  private readonly copies = new Map<Engine, Promise<TokenizerInfo>>();  // in other engines
  private constructor(/** @internal */ readonly owner: Engine, /** @internal */ readonly info:
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
  /** "byte-level BPE", "bytes" or "characters". */
  get kind(): string { return this.info.kind; }
  /** The largest id plus 1. */
  get vocabSize(): number { return this.info.vocabSize; }
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
  /** Returns the text of ids; invalid UTF-8 becomes U+FFFD. */
  decode(ids: Int32Array | readonly number[], options: DecodeOptions = {}): Promise<string> {
    return this.ask('decode', { ids, options });
  }
  /** Returns the id of a token, if there is one. */
  tokenToId(token: string): Promise<number | undefined> { return this.ask('tokenToId', { token }); }
  /** Returns the token of an id, if there is one. */
  idToToken(token: number): Promise<string | undefined> { return this.ask('idToToken', { token }); }
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
  /** Frees the tokenizer. */
  async free(): Promise<void> {
    for (const [engine, copy] of this.copies)
      await ask(engine, 'tokenizer.free', userLocation(2), { id: (await copy).id });
    this.copies.clear();
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
function languageModels({ numbers }: ModelEntries): [object, number][] {
  return [...numbers].filter(([part]) => part instanceof LanguageModel);
}

// Returns the entry of the language model in a model: the only one, or the one at a place.
function entryOf(entries: ModelEntries, place?: number): number {
  const all = languageModels(entries);
  if (place === undefined && all.length !== 1)
    throw new UserError(`expected one LanguageModel in the model, got ${all.length}`);
  const entry = all[place ?? 0]?.[1];
  if (entry === undefined)
    throw new UserError(`expected ${place! + 1} or more LanguageModels in the model, got ${all.length}`);
  return entry;
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
    const place = layer && languageModels(trainer.entries).findIndex(([part]) => part === layer);
    if (place === -1) throw new UserError('Generator.attach: the layer is not in the model');
    const requestFor = (entries: ModelEntries) =>
      ({ entry: entryOf(entries, place), options, file: at[0], line: at[1] });
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
    id: trainer.info.id, entry: entryOf(trainer.entries), tokenizer: await tokenizer?.numberIn(engine) });
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
