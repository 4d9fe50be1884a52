// SPDX-License-Identifier: MIT
// Generates text in the style of a given text: a character-level language model of Mamba, Mamba-2
// or attention layers, as in the samples makemore and char GPT. The model can be downloaded as a file
// that `tg lm` reads.
import {
  Generator, LanguageModel, Tokenizer, compile, optim, saveLanguageModel, schedule, type MixerKind,
  type Trainer,
} from 'tensorgrad';
import {
  Run, device, download, find, make, message, random, recovery, report, seed, settings,
} from './common.js';
import { alice } from './text_default.js';

const length = 64, sampleEvery = 50, sampleLength = 160;

const layersOf: { [model: string]: (layer: number) => MixerKind[] } = {
  mamba: () => ['mamba1'],
  mamba2: () => ['mamba2'],
  gpt: () => ['attention', 'mlp'],
  hybrid: (layer) => (layer % 2 ? ['attention', 'mlp'] : ['mamba1']),
};

const rate = () => schedule.warmup(20, chosen().rate);
const chosen = settings<{
  model: string; width: number; layers: number; rate: number; batch: number; temperature: number;
}>('#settings', (name) => {
  if (name === 'rate') void run.between((trainer) => trainer.setLR(rate()));
  else if (name !== 'temperature') void run.rebuild();
});

const area = find<HTMLTextAreaElement>('#text');
area.value ||= alice;
area.onchange = () => void run.rebuild();

let tokenizer: Tokenizer | undefined, generator: Generator | undefined;
let tokens = new Int32Array(), next = random(seed), sampled = -1;

const run = new Run<Trainer<LanguageModel, any, any>>({
  steps: 1000,
  every: 100,
  overlap: true,
  async build() {
    const text = area.value, { model, width, layers, batch } = chosen();
    const symbols = [...new Set(text)].sort();
    find('#about').textContent = `${text.length} characters, ${symbols.length} of them different.`;
    if (text.length < 2 * length)
      throw new Error(`The text has ${text.length} characters; at least ${2 * length} are needed.`);
    await generator?.free();
    await tokenizer?.free();
    generator = tokenizer = undefined;
    tokenizer = await Tokenizer.characters(symbols);
    tokens = await tokenizer.encode(text) as Int32Array<ArrayBuffer>;
    const mixers = Array.from({ length: layers }, (_, i) => layersOf[model]!(i)).flat();
    const shape = [batch, length] as const;
    const trainer = await compile({
      model: new LanguageModel({
        vocabSize: tokenizer.vocabSize, dModel: width, nLayer: mixers.length, layers: mixers }),
      loss: (net, { x, y }) => net.loss(x, y),
      inputs: { x: { shape, dtype: 'i32' }, y: { shape, dtype: 'i32' } },
      optimizer: optim.adamw({ lr: rate(), weightDecay: 0.01 }), clipGradNorm: 1, seed, device, recovery });
    generator = await Generator.attach(trainer, { tokenizer });
    start();
    return trainer;
  },
  async step(trainer) {
    const { batch } = chosen(), x = new Int32Array(batch * length), y = new Int32Array(batch * length);
    for (let i = 0; i < batch; ++i) {
      const at = Math.floor(next() * (tokens.length - length));
      x.set(tokens.subarray(at, at + length), i * length);
      y.set(tokens.subarray(at + 1, at + 1 + length), i * length);
    }
    return (await trainer.step({ x, y })).loss;
  },
  async show() {
    if (sampled >= 0 && run.steps - sampled < sampleEvery && !run.done) return;
    sampled = run.steps;
    await write();
  },
  state: { get: () => ({ draw: next.state }), set: (saved) => { next.state = saved.draw; } },
  reset: start,
});

function start(): void {
  [next, sampled] = [random(seed), -1];
  find('#samples').replaceChildren();
}

// Writes a sample above the previous ones.
async function write(): Promise<void> {
  if (!generator) return;
  const begin = beginning();
  const item = make('li', {}, make('small', { textContent: `step ${run.steps}` }), make('b', { textContent: begin }));
  find('#samples').prepend(item);
  while (find('#samples').childElementCount > 20) find('#samples').lastElementChild!.remove();
  await generator.generate(begin, {
    maxTokens: sampleLength, sampling: { temperature: chosen().temperature, seed: seed + run.steps },
    onText: ({ text }) => item.append(text) });
}

// The model knows only the characters of the text.
function beginning(): string {
  const asked = find<HTMLInputElement>('#prompt').value, known = new Set(area.value);
  const usable = [...asked].filter((each) => known.has(each)).join('');
  if (usable !== asked) message('The text does not have all characters of this beginning.', 'note');
  return usable || area.value.slice(0, 1);
}

find<HTMLFormElement>('#ask').onsubmit = (event) => {
  event.preventDefault();
  void write().catch(report);
};

find('#model').onclick = () => run.between(async (trainer) =>
  download('model.safetensors',
           await saveLanguageModel(trainer, { tokenizer: tokenizer! }) as Uint8Array<ArrayBuffer>));
