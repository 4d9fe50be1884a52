// SPDX-License-Identifier: MIT
// Balances a pole on a cart by policy gradients (REINFORCE): the sample cartpole (4-16-2, tanh; 16
// carts play 200 steps, then one step of Adam). Its learning rate was 0.005.
import {
  Linear, Module, compile, div, flatten, gather, logSoftmax, mul, neg, optim, reshape, sum, tanh,
  type CompiledFunction, type Tensor,
} from 'tensorgrad';
import {
  Run, device, find, fit, onColors, palette, random, recovery, seed, settings,
} from './common.js';

const carts = 16, length = 200, rows = carts * length;

class Policy extends Module {
  first = new Linear(4, 16);
  second = new Linear(16, 2);
  /** Returns log-probabilities of the two pushes, left and right. */
  forward(state: Tensor): Tensor {
    return logSoftmax(this.second.forward(tanh(this.first.forward(state))));
  }
}

// Position, speed, angle and angular speed of each cart.
let states = new Float32Array(carts * 4);
let fallen = new Uint8Array(carts);
let draw = random(seed);
let push = 0;       // speed added by the user
let time = 0;       // within the round
let recent: number | undefined;  // mean length of the last rounds
let policy: CompiledFunction<{ state: readonly [number, number] }, Tensor>;

const chosen = settings<{ rate: number; speed: string }>('#settings', (name) => {
  if (name === 'rate') void run.between((trainer) => trainer.setLR(chosen().rate));
});

const run = new Run({
  steps: 200,
  plot: { label: 'mean length', log: false },
  async build() {
    const trainer = await compile({
      model: new Policy(),
      loss: (net, { state, action, weight }) => {
        const taken = gather(net.forward(state), 1, reshape(action, [rows, 1]));
        return div(neg(sum(mul(flatten(taken), weight))), rows);
      },
      inputs: { state: [rows, 4], action: { shape: [rows], dtype: 'i32' }, weight: [rows] },
      optimizer: optim.adam({ lr: chosen().rate }), seed, device, recovery });
    policy = await trainer.attach({
      forward: (net, { state }) => net.forward(state), inputs: { state: [carts, 4] } });
    begin();
    return trainer;
  },
  async step(trainer) {
    const episodes = await play();
    await trainer.step(episodes.batch);
    recent = recent === undefined ? episodes.length : 0.7 * recent + 0.3 * episodes.length;
    find('#length').textContent = episodes.length.toFixed(1);
    return episodes.length;
  },
  show: paint,
  state: { get: () => ({ draw: draw.state, recent }),
    set: (saved) => { [draw.state, recent] = [saved.draw, saved.recent]; } },
  reset: begin,
});

function begin(): void {
  draw = random(seed);
  recent = undefined;
  time = 0;
  place();
}

function place(): void {
  states = Float32Array.from({ length: carts * 4 }, () => draw() * 0.1 - 0.05);
  fallen = new Uint8Array(carts);
}

// Physics of Barto, Sutton and Anderson 1983, with Euler steps of 0.02 s.
function move(c: number, right: boolean): void {
  const gravity = 9.8, pole = 0.1, total = 1.1, half = 0.5, dt = 0.02;
  let [x, v, angle, turn] = states.subarray(c * 4) as unknown as [number, number, number, number];
  const sine = Math.sin(angle), cosine = Math.cos(angle);
  const pushed = ((right ? 10 : -10) + pole * half * turn * turn * sine) / total;
  const spin = (gravity * sine - cosine * pushed) / (half * (4 / 3 - pole * cosine * cosine / total));
  x += dt * v;
  v += dt * (pushed - pole * half * spin * cosine / total);
  angle += dt * turn;
  turn += dt * spin;
  states.set([x, v, angle, turn], c * 4);
  fallen[c] = Number(Math.abs(x) > 2.4 || Math.abs(angle) > 12 / 180 * Math.PI);
}

// Plays all carts. Row t * carts + c is step t of cart c. The weight of a push is how much better
// than average the rest of the episode was, and 0 after a fall.
async function play() {
  const batch = { state: new Float32Array(rows * 4), action: new Int32Array(rows),
    weight: new Float32Array(rows) };
  const end = new Int32Array(carts);
  place();
  for (time = 0; time < length && fallen.includes(0); ++time) {
    const slow = chosen().speed === 'watch';
    if (push) {
      for (let c = 0; c < carts; ++c) states[c * 4 + 1]! += push;
      push = 0;
    }
    batch.state.set(states, time * carts * 4);
    const logs = await policy.call({ state: states });
    for (let c = 0; c < carts; ++c) {
      if (fallen[c]) continue;
      const right = draw() < Math.exp(logs[c * 2 + 1]!);
      batch.action[time * carts + c] = Number(right);
      move(c, right);
      end[c] = time + 1;
    }
    if (slow) await new Promise(requestAnimationFrame);
    if (slow || time % 8 === 0) paint();
  }
  const count = end.reduce((a, b) => a + b);
  let total = 0, squares = 0;
  for (let c = 0; c < carts; ++c) {
    for (let t = end[c]! - 1, gain = 0; t >= 0; --t) {
      batch.weight[t * carts + c] = gain = 1 + 0.99 * gain;
      total += gain;
      squares += gain * gain;
    }
  }
  const mean = total / count, deviation = Math.sqrt(squares / count - mean * mean) + 1e-6;
  for (let c = 0; c < carts; ++c) {
    for (let t = 0; t < end[c]!; ++t)
      batch.weight[t * carts + c] = (batch.weight[t * carts + c]! - mean) / deviation;
  }
  return { batch, length: count / carts };
}

// Draws the first standing cart fully, and the others as shadows.
function paint(): void {
  const { context, width, height } = fit(find<HTMLCanvasElement>('#track'));
  const { accent, muted, line, text } = palette();
  const scale = (width - 60) / 4.8, ground = height * 0.78, tall = Math.min(height * 0.6, scale * 1.6);
  const size = Math.max(30, Math.min(56, scale * 0.4));
  context.fillStyle = line;
  context.fillRect(30, ground + 14, width - 60, 2);
  for (const end of [30, width - 32]) context.fillRect(end, ground, 2, 16);
  const first = fallen.indexOf(0);
  const cart = (c: number, solid: boolean) => {
    const x = width / 2 + Math.max(-2.4, Math.min(2.4, states[c * 4]!)) * scale, angle = states[c * 4 + 2]!;
    context.globalAlpha = solid ? 1 : fallen[c] ? 0.07 : 0.22;
    context.fillStyle = solid ? text : muted;
    context.beginPath();
    context.roundRect(x - size / 2, ground - size * 0.26, size, size * 0.42, 4);
    for (const wheel of [x - size * 0.27, x + size * 0.27]) {
      context.moveTo(wheel, ground + 4);
      context.arc(wheel, ground + 14 - size * 0.1, size * 0.1, 0, 2 * Math.PI);
    }
    context.fill();
    context.beginPath();
    context.moveTo(x, ground - size * 0.2);
    context.lineTo(x + tall * Math.sin(angle), ground - size * 0.2 - tall * Math.cos(angle));
    Object.assign(context, { strokeStyle: solid ? accent : muted, lineWidth: size / 8, lineCap: 'round' });
    context.stroke();
  };
  for (let c = 0; c < carts; ++c) if (c !== first) cart(c, false);
  if (first >= 0) cart(first, true);
  context.globalAlpha = 1;
  find('#standing').textContent = `${carts - fallen.reduce((a, b) => a + b)}`;
  find('#time').textContent = `${time}`;
  find('#recent').textContent = recent === undefined ? '–' : recent.toFixed(0);
}

const nudge = (speed: number) => () => { push += speed; };
find('#left').onclick = nudge(-0.6);
find('#right').onclick = nudge(0.6);
addEventListener('keydown', ({ key, target }) => {
  if (target instanceof HTMLSelectElement) return;
  if (key === 'ArrowLeft') push -= 0.6;
  if (key === 'ArrowRight') push += 0.6;
});
onColors(paint);
addEventListener('resize', paint);
