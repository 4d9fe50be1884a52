// SPDX-License-Identifier: MIT
// The ports of the samples of tensorgrad 0.4.6 in examples/web: types, parameters, and losses that fall.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { compileSamples, readDigits, samples } from '../../examples/web/build.mjs';
import { library } from './support.mjs';

const folder = await compileSamples(library);
const digits = readDigits();
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

// Parameters, steps, and the loss of the last steps: less than this part of the first loss.
const expected = {
  char_gpt: { parameters: 154752, steps: 20, falls: 0.8, batch: 4, length: 32 },
  flow_matching_tiny: { parameters: 23393, steps: 60, falls: 0.9, batch: 4 },
  kan_tiny: { parameters: 72, steps: 60, falls: 0.6 },
  makemore: { parameters: 152064, steps: 20, falls: 0.9 },
  mlp_sin: { parameters: 4353, steps: 100, falls: 0.3 },
  mnist_cnn: { parameters: 105866, steps: 80, falls: 0.7, batch: 16 },
  nerf_tiny: { parameters: 10627, steps: 40, falls: 0.6 },
  transformer: { parameters: 150592, steps: 12, falls: 0.95 },
  vae: { parameters: 540448, steps: 40, falls: 0.5, batch: 16 },
};

test('compile with their types', () => {
  execFileSync(process.execPath, [
    fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url)),
    '-p', fileURLToPath(new URL('../../examples/web', import.meta.url))], { encoding: 'utf8' });
  assert.deepEqual(samples.filter((name) => !(name in expected)), ['cartpole', 'tic_tac_toe']);
});

for (const [name, { parameters, steps, falls, ...options }] of Object.entries(expected)) {
  test(`${name} learns`, async () => {
    const { train } = await import(new URL(`${name}.js`, folder));
    const result = await train({ steps, device: 'cpu', digits, ...options });
    assert.equal(result.parameters, parameters);
    assert.equal(result.losses.length, steps);
    const last = mean(result.losses.slice(-5));
    assert.ok(last < falls * result.losses[0], `${result.losses[0]} ${last}`);
  });
}

// The losses of policy gradients say nothing.
test('cartpole balances longer', async () => {
  const { train } = await import(new URL('cartpole.js', folder));
  const { parameters, lengths } = await train({ steps: 40, device: 'cpu' });
  assert.equal(parameters, 114);
  assert.ok(mean(lengths.slice(-5)) > 1.5 * mean(lengths.slice(0, 5)), lengths.join(' '));
});

test('tic_tac_toe loses less', async () => {
  const { train } = await import(new URL('tic_tac_toe.js', folder));
  const { parameters, safe } = await train({ steps: 300, device: 'cpu' });
  assert.equal(parameters, 6537);
  assert.ok(mean(safe.slice(-2)) > safe[0] + 0.1, safe.join(' '));
});
