// SPDX-License-Identifier: MIT
// docs/porting_tensorgrad_js.md has every export of tensorgrad 0.4.6, and names what there is.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { tg } from './support.mjs';

const originals = `
  compile trace compileForward traceForward attach run step captures get shape has names perHead
  uploadParams downloadParams reset setLR replaceModel graph kernels paramNames graphFor getOpInputs outputShape
  seed destroy singleFlight checkWebGPU safetensors maxCachedShapes output capture
  adam adamw sgd clipGradNorm normalizeGrads decayFilter linear cosineAnnealing warmup staircase multiStep
  randn zeros ones kaiming literal forward Linear LayerNorm RMSNorm Embedding Conv2d ShapeError
  add sub mul div sqrt rsqrt log exp relu neg abs tanh sigmoid erf sin cos square silu gelu leakyRelu softplus
  clamp where min max less greater stopGradient sum mean argmax argmin reshape permute narrow split concat stack
  embedding dropout categorical arange matmul swapAxes splitHeads mergeHeads oneHot takeAlongAxis
  softmax logSoftmax softmaxCausal whereCausal rope conv2d maxPool2d nearestUpsample2d crossEntropy nllLoss
  null`.trim().split(/\s+/);

const page = readFileSync(new URL('../../docs/porting_tensorgrad_js.md', import.meta.url), 'utf8');
const rows = page.split('\n## Names\n')[1].split('\n').filter((line) => line.startsWith('| '))
  .map((line) => line.slice(2, -2).replaceAll('\\|', '/').split(' | ')).slice(1);

test('the table has every export of the original', () => {
  const left = new Set(rows.flatMap(([cell]) => cell.match(/\w+/g)));
  assert.deepEqual(originals.filter((name) => !left.has(name)), []);
});

test('the table names what the package has', () => {
  const { prototype: objective } = tg.Objective;
  const methods = [objective, tg.Trainer.prototype, tg.TrainerBase.prototype, tg.CompiledFunction.prototype]
    .flatMap(Object.getOwnPropertyNames);
  const known = new Set([...Object.keys(tg), ...methods, 'param', 'forward', 'f', 'keys', 'subarray']);
  const unknown = [];
  for (const [left, right] of rows) {
    // "the same" keeps the names of the left side, unless it is about options or results.
    const cells = right.startsWith('the same') && /^`[\w ]+`$/.test(left)
      ? left.match(/\w+/g).map((name) => `${name}(`) : [right];
    for (const [, space, name] of cells.join(' ').matchAll(/(?:(\w+)\.)?(\w+)\(/g)) {
      const there = ['optim', 'schedule', 'init'].includes(space) ? name in tg[space] : known.has(name);
      if (!there && name !== 'null') unknown.push(space ? `${space}.${name}` : name);
    }
  }
  assert.deepEqual(unknown, []);
  assert.ok(rows.length > 50, `${rows.length}`);
});
