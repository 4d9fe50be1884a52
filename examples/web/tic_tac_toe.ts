// SPDX-License-Identifier: MIT
// tic-tac-toe: learns the game by policy gradients from games against itself. 16 games are played,
// then one training step follows.
import {
  Linear, Module, compile, div, flatten, gather, logSoftmax, mul, neg, optim, reshape, sum, tanh,
  type Tensor,
} from 'tensorgrad';
import { count, draw, initial, random, type Options, type Result } from './common.js';

const games = 16, cells = 9, rows = games * cells;

class Policy extends Module {
  first = new Linear(27, 64);
  second = new Linear(64, 64);
  out = new Linear(64, cells);
  // Boards [B, 27] -> log-probabilities of the cells [B, 9]
  forward(board: Tensor): Tensor {
    return logSoftmax(this.out.forward(tanh(this.second.forward(tanh(this.first.forward(board))))));
  }
}

// 1: the player to move; -1: the other player; 0: empty.
type Board = number[];
const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const encode = (board: Board) => board.flatMap((cell) => [Number(cell === 1), Number(cell === -1), Number(!cell)]);
// Returns the board after a move, as the other player sees it.
const after = (board: Board, cell: number) => board.map((each, i) => -(i === cell ? 1 : each));
const won = (board: Board) => lines.some((line) => line.every((cell) => board[cell] === -1));
const over = (board: Board) => won(board) || !board.includes(0);

export async function train({ steps = 1000, seed = 1, device = 'auto', log = () => {} }: Options = {}):
  Promise<Result & { safe: number[] }> {
  const trainer = await compile({
    model: new Policy(),
    loss: (net, { board, move, weight }) => {
      const taken = flatten(gather(net.forward(board), 1, reshape(move, [rows, 1])));
      return div(neg(sum(mul(taken, weight))), rows);
    },
    inputs: { board: [rows, 27], move: { shape: [rows], dtype: 'i32' }, weight: [rows] },
    optimizer: optim.adam({ lr: 5e-3 }), initial, seed, device: { kind: device },
  });
  const policy = await trainer.attach({
    forward: (net, { board }) => net.forward(board), inputs: { board: [games, 27] } });

  const next = random(seed);
  // A move on each board, drawn from the policy or, if `blindly`, from all free cells.
  const moves = async (boards: readonly Board[], blindly = false) => {
    const logs = await policy.call({ board: boards.flatMap(encode) });
    return boards.map((board, g) => draw(board.map((cell, i) =>
      cell ? -Infinity : blindly ? 0 : logs[g * cells + i]!), 0, cells, next));
  };
  // Share of games against random moves that are not lost. The network begins every other one.
  const notLost = async () => {
    let boards = Array.from({ length: games }, (): Board => Array(cells).fill(0));
    const lost = new Set<number>();
    for (let t = 0; t < cells; ++t) {
      const [ours, theirs] = [await moves(boards), await moves(boards, true)];
      boards = boards.map((board, g) => {
        if (over(board)) return board;
        const mine = (t + g) % 2 === 0, now = after(board, (mine ? ours : theirs)[g]!);
        if (!mine && won(now)) lost.add(g);
        return now;
      });
    }
    return 1 - lost.size / games;
  };

  const losses: number[] = [], safe: number[] = [];
  for (let step = 1; step <= steps; ++step) {
    // Row t * games + g is move t of game g.
    const board = new Float32Array(rows * 27), move = new Int32Array(rows), weight = new Float32Array(rows);
    let boards = Array.from({ length: games }, (): Board => Array(cells).fill(0));
    const lengths = Array<number>(games).fill(0);
    for (let t = 0; t < cells; ++t) {
      const chosen = await moves(boards);
      boards = boards.map((each, g) => {
        if (over(each)) return each;
        board.set(encode(each), (t * games + g) * 27);
        move[t * games + g] = chosen[g]!;
        lengths[g] = t + 1;
        return after(each, chosen[g]!);
      });
    }
    // 1 for the moves of the winner, -1 for those of the loser, 0 in a draw; less the mean.
    const outcome = (g: number, t: number): number =>
      (won(boards[g]!) ? ((lengths[g]! - 1 - t) % 2 === 0 ? 1 : -1) : 0);
    const all = lengths.flatMap((length, g) => Array.from({ length }, (_, t) => outcome(g, t)));
    const mean = all.reduce((a, b) => a + b, 0) / all.length;
    const deviation = Math.sqrt(all.reduce((a, b) => a + (b - mean) ** 2, 0) / all.length);
    for (const [g, length] of lengths.entries()) {
      for (let t = 0; t < length; ++t)
        weight[t * games + g] = (outcome(g, t) - mean) / (deviation + 1e-6);
    }
    losses.push((await trainer.step({ board, move, weight })).loss);
    if (step % 50 !== 0 && step !== steps) continue;
    let share = 0;
    for (let i = 0; i < 10; ++i) share += await notLost() / 10;
    safe.push(share);
    log(`step ${step}  not lost against random moves ${(100 * share).toFixed(1)} %`);
  }
  const parameters = await count(trainer);
  await trainer.free();
  return { parameters, losses, safe };
}
