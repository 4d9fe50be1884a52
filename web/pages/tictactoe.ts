// SPDX-License-Identifier: MIT
// Learns tic-tac-toe from games against itself. A network estimates the value of a board for the
// player who has just moved. Its target is the negated value of the opponent's best reply (temporal
// differences), as in examples/tic_tac_toe.cpp. The sample tic-tac-toe has the same body (27-64-64,
// tanh).
import {
  Linear, Module, compile, flatten, mse, optim, schedule, tanh, type CompiledFunction, type Tensor,
} from 'tensorgrad';
import { Run, device, find, make, parameter, random, recovery, seed, settings } from './common.js';

const games = 128, cells = 9;

// 1: the player who has just moved; -1: the opponent; 0: empty.
type Board = readonly number[];
const empty: Board = Array(cells).fill(0);
const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const winning = (board: Board) => lines.find((line) => line.every((cell) => board[cell] === 1));
const over = (board: Board) => winning(board) !== undefined || !board.includes(0);

/** Returns the board after the opponent takes the cell, as seen by the opponent. */
function answered(board: Board, cell: number): Board {
  return board.map((each, i) => (i === cell ? 1 : -each));
}

// The network sees one of the eight rotations and reflections of a board: the smallest.
const turned = [6, 3, 0, 7, 4, 1, 8, 5, 2], mirrored = [2, 1, 0, 5, 4, 3, 8, 7, 6];
const forms: number[][] = [[...empty.keys()]];
for (let i = 1; i < 8; ++i) forms.push((i === 4 ? mirrored : turned).map((cell) => forms[i - 1]![cell]!));
const known = new Map<string, Board>();
function least(board: Board): Board {
  const key = board.join();
  let form = known.get(key);
  if (!form) {
    const code = (each: Board) => each.reduce((sum, cell) => sum * 3 + cell + 1, 0);
    form = forms.map((order) => order.map((cell) => board[cell]!)).reduce((a, b) => (code(b) < code(a) ? b : a));
    known.set(key, form);
  }
  return form;
}

/** Writes each cell as a one-hot vector: mine, the opponent's, empty. */
function write(board: Board, to: Float32Array, at: number): void {
  for (const [i, cell] of least(board).entries())
    to.set([Number(cell === 1), Number(cell === -1), Number(cell === 0)], at + 3 * i);
}

class Value extends Module {
  first = new Linear(27, 64);
  second = new Linear(64, 64);
  worth = new Linear(64, 1);
  /** Boards [B, 27] -> values [B] in (-1, 1). */
  forward(board: Tensor): Tensor {
    return tanh(flatten(this.worth.forward(tanh(this.second.forward(tanh(this.first.forward(board)))))));
  }
}

let values: CompiledFunction<{ board: readonly [number, number] }, Tensor>;
let boards = Array<Board>(games).fill(empty);
let draw = random(seed);

const chosen = settings<{ rate: number; explore: number; first: string; hints: string }>(
  '#settings', (name) => {
    if (name === 'rate') void run.rebuild();
    else if (name === 'first') void newGame();
    else if (name === 'hints') void hint();
  });

/**
 * Returns the value of each reply to each board for the player who replies; NaN if the cell is
 * taken.
 */
async function judge(all: readonly Board[]): Promise<Float32Array> {
  const input = new Float32Array(games * cells * 27);
  const worth = new Float32Array(all.length * cells);
  for (let from = 0; from < all.length; from += games) {
    const part = all.slice(from, from + games);
    part.forEach((board, i) => {
      for (let cell = 0; cell < cells; ++cell) write(answered(board, cell), input, (i * cells + cell) * 27);
    });
    worth.set((await values.call({ board: input })).subarray(0, part.length * cells), from * cells);
  }
  all.forEach((board, i) => {
    for (let cell = 0; cell < cells; ++cell) {
      const after = answered(board, cell);
      if (board[cell]) worth[i * cells + cell] = NaN;
      else if (over(after)) worth[i * cells + cell] = winning(after) ? 1 : 0;
    }
  });
  return worth;
}

/** Returns the cell with the largest value. */
function best(worth: ArrayLike<number>): number {
  let found = -1;
  for (let cell = 0; cell < cells; ++cell)
    if (!Number.isNaN(worth[cell]) && (found < 0 || worth[cell]! > worth[found]!)) found = cell;
  return found;
}

/**
 * Explores all games that are possible against the network, each board once. Returns the number of
 * games, and how many the network loses.
 */
async function examine(): Promise<{ lost: number; all: number }> {
  let lost = 0, all = 0;
  for (let ours of [true, false]) {
    for (let level = [empty]; level.length; ours = !ours) {
      const next = new Map<string, Board>(), worth = ours ? await judge(level) : undefined;
      level.forEach((board, i) => {
        const choices = worth ? [best(worth.subarray(i * cells, (i + 1) * cells))]
          : [...board.keys()].filter((cell) => !board[cell]);
        for (const after of choices.map((cell) => answered(board, cell))) {
          if (!over(after)) next.set(after.join(), after);
          else {
            ++all;
            lost += Number(!ours && winning(after) !== undefined);
          }
        }
      });
      level = [...next.values()];
    }
  }
  return { lost, all };
}

const steps = parameter('steps', 1000);
const run = new Run({
  steps,
  every: 1500,
  async build() {
    const { rate } = chosen();
    const trainer = await compile({
      model: new Value(), loss: (net, { board, worth }) => mse(net.forward(board), worth),
      inputs: { board: [games, 27], worth: [games] },
      optimizer: optim.adam({ lr: schedule.cosine(rate, rate / 20, steps) }), seed, device, recovery });
    values = await trainer.attach({
      forward: (net, { board }) => net.forward(board), inputs: { board: [games * cells, 27] } });
    begin();
    return trainer;
  },
  async step(trainer) {
    const answers = await judge(boards), { explore } = chosen();
    const board = new Float32Array(games * 27), worth = new Float32Array(games);
    boards = boards.map((each, i) => {
      const own = answers.subarray(i * cells, (i + 1) * cells), reply = best(own);
      write(each, board, i * 27);
      worth[i] = -own[reply]!;
      const free = [...each.keys()].filter((cell) => !each[cell]);
      const after = answered(each, draw() < explore ? free[Math.floor(draw() * free.length)]! : reply);
      return over(after) ? empty : after;
    });
    return (await trainer.step({ board, worth })).loss;
  },
  async show() {
    const { lost, all } = await examine();
    find('#lost').textContent = `${lost}`;
    find('#all').textContent = `${all}`;
    find('#verdict').textContent = lost ? '' : 'It cannot be beaten.';
    await hint();
  },
  state: { get: () => ({ draw: draw.state, boards }),
    set: (saved) => { [draw.state, boards] = [saved.draw, saved.boards]; } },
  reset: begin,
});

function begin(): void {
  draw = random(seed);
  boards = Array<Board>(games).fill(empty);
}

// The game against the user. `board` is seen by the player who has just moved.
let board = empty, userMoved = false, mark = 'X';
const buttons = Array.from({ length: cells }, (_, cell) => {
  const button = make('button', { type: 'button', onclick: () => void user(cell) });
  find('#board').append(button);
  return button;
});

async function newGame(): Promise<void> {
  board = empty;
  userMoved = chosen().first === 'network';
  mark = userMoved ? 'O' : 'X';
  paint();
  if (userMoved) await reply();
}

async function user(cell: number): Promise<void> {
  if (userMoved || board[cell] || over(board)) return;
  take(cell);
  if (!over(board)) await reply();
}

async function reply(): Promise<void> {
  if (!run.trainer) return;
  const worth = await judge([board]);
  take(best(worth));
  await hint();
}

function take(cell: number): void {
  board = answered(board, cell);
  userMoved = !userMoved;
  paint();
}

function paint(): void {
  const line = winning(board), own = userMoved ? 1 : -1;  // the user's number on the board
  buttons.forEach((button, cell) => {
    const taken = board[cell];
    const text = !taken ? '' : taken === own ? mark : mark === 'X' ? 'O' : 'X';
    button.textContent = text;
    button.dataset['side'] = !taken ? '' : taken === own ? 'user' : 'network';
    button.classList.toggle('line', line?.includes(cell) ?? false);
    button.ariaLabel = `${['top', 'middle', 'bottom'][Math.floor(cell / 3)]} ${
      ['left', 'center', 'right'][cell % 3]}: ${text || 'empty'}`;
    button.style.background = '';
  });
  find('#result').textContent = line ? (userMoved ? 'You win.' : 'The network wins.')
    : over(board) ? 'A draw.' : userMoved ? 'The network moves.' : `Your move: ${mark}.`;
}

/** Colors the free cells by the network's value of the user's moves. */
async function hint(): Promise<void> {
  if (userMoved || over(board) || !run.trainer) return;
  const before = board, worth = chosen().hints === 'on' ? await judge([board]) : new Float32Array(cells).fill(NaN);
  if (before !== board) return;
  buttons.forEach((button, cell) => {
    const value = worth[cell]!;
    button.textContent = board[cell] ? button.textContent : Number.isNaN(value) ? '' : value.toFixed(1);
    button.style.background = Number.isNaN(value) ? ''
      : `color-mix(in oklab, var(--soft) ${(50 + 50 * value).toFixed(0)}%, var(--card))`;
  });
}

find('#again').onclick = () => void newGame();
void newGame();
