// SPDX-License-Identifier: MIT
// Learns tic-tac-toe from games against itself. A network estimates the value of a board for the
// player who has just moved. Its target is the negated value of the opponent's best reply (temporal
// differences, Sutton 1988). Draws the values of the moves in some positions.
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kBatch = 256, kMoves = 9;

// 1: the player who has just moved; -1: the opponent; 0: empty.
using Board = std::array<std::int8_t, 9>;

bool won(const Board& board) {
  constexpr int kLines[8][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6},
                                {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}};
  for (const auto& line : kLines) {
    if (board[line[0]] == 1 && board[line[1]] == 1 && board[line[2]] == 1) return true;
  }
  return false;
}

bool full(const Board& board) {
  for (const std::int8_t cell : board) {
    if (cell == 0) return false;
  }
  return true;
}

// Returns the board after the opponent takes the cell, as seen by the opponent.
Board answered(Board board, int cell) {
  for (std::int8_t& each : board) each = static_cast<std::int8_t>(-each);
  board[static_cast<std::size_t>(cell)] = 1;
  return board;
}

struct Value {
  tg::nn::Linear first{27, 64}, second{64, 64}, worth{64, 1};
  TG_MODULE(first, second, worth)
  // Boards [B, 27] -> values [B] in (-1, 1).
  tg::Tensor operator()(tg::Tensor board) const {
    return tanh(flatten(worth(tanh(second(tanh(first(board)))))));
  }
};

// Writes each cell as a one-hot vector: mine, the opponent's, empty.
void write(const Board& board, float* to) {
  for (const std::int8_t cell : board) {
    *to++ = cell == 1 ? 1.0F : 0.0F;
    *to++ = cell == -1 ? 1.0F : 0.0F;
    *to++ = cell == 0 ? 1.0F : 0.0F;
  }
}

// Returns the values of all replies to the boards for the player who replies; NaN if the cell is
// taken.
class Judge {
 public:
  explicit Judge(tg::CompiledFunction values)
      : values_(std::move(values)), boards_(kBatch * kMoves * 27) {}

  std::vector<float> operator()(const std::vector<Board>& boards) {
    for (std::size_t i = 0; i < boards.size(); ++i) {
      for (int cell = 0; cell < kMoves; ++cell)
        write(answered(boards[i], cell),
              &boards_[(i * kMoves + static_cast<std::size_t>(cell)) * 27]);
    }
    std::vector<float> worth = values_({{"board", boards_}}).floats();
    worth.resize(boards.size() * kMoves);
    for (std::size_t i = 0; i < worth.size(); ++i) {
      const int cell = static_cast<int>(i % kMoves);
      const Board& board = boards[i / kMoves];
      if (board[static_cast<std::size_t>(cell)] != 0) {
        worth[i] = NAN;
      } else if (const Board after = answered(board, cell); won(after) || full(after)) {
        worth[i] = won(after) ? 1.0F : 0.0F;
      }
    }
    return worth;
  }

 private:
  tg::CompiledFunction values_;
  std::vector<float> boards_;
};

int best(const float* worth) {
  int found = -1;
  for (int cell = 0; cell < kMoves; ++cell) {
    if (!std::isnan(worth[cell]) && (found < 0 || worth[cell] > worth[found])) found = cell;
  }
  return found;
}

int random_cell(const Board& board, sample::Random& random) {
  for (;;) {
    const int cell = sample::below(random, kMoves);
    if (board[static_cast<std::size_t>(cell)] == 0) return cell;
  }
}

// Returns how many of `games` games against random moves are lost. The network begins every other
// one.
int lost_games(Judge& judge, int games, sample::Random& random) {
  int lost = 0;
  for (int game = 0; game < games; ++game) {
    Board board{};  // no one has moved
    for (bool ours = game % 2 == 0;; ours = !ours) {
      const int cell = ours ? best(judge({board}).data()) : random_cell(board, random);
      board = answered(board, cell);
      if (won(board) || full(board)) {
        lost += won(board) && !ours ? 1 : 0;
        break;
      }
    }
  }
  return lost;
}

// Reads a position from nine characters; X moves next.
Board read_board(const char* cells) {
  Board board{};
  for (std::int8_t& cell : board) {
    cell = static_cast<std::int8_t>(*cells == 'O' ? 1 : *cells == 'X' ? -1 : 0);
    ++cells;
  }
  return board;
}

// Draws some positions with the value of each move of X, from -1 (lost) to 1 (won). A frame marks
// the best move.
void draw(const sample::Options& options, Judge& judge) {
  constexpr std::pair<const char*, const char*> kPositions[] = {
      {"First move", "........."},
      {"Answer to a corner", "O........"},
      {"Answer to the center", "....O...."},
      {"Block O", "OO..X...."},
      {"Win", "XX.OO...."},
      {"O chose an edge", "XO......."}};
  constexpr double kCell = 70;
  sample::Drawing drawing(3 * 260 + 20, 2 * 275 + 15);
  for (std::size_t i = 0; i < std::size(kPositions); ++i) {
    const auto& [title, cells] = kPositions[i];
    const std::size_t across = i % 3, down = i / 3;
    const double left = 30 + 260 * static_cast<double>(across),
                 top = 45 + 275 * static_cast<double>(down);
    drawing.text(left, top - 12, title, {.size = 15, .bold = true});
    const std::vector<float> worth = judge({read_board(cells)});
    const int chosen = best(worth.data());
    for (int cell = 0; cell < kMoves; ++cell) {
      const int row = cell / 3, column = cell % 3;
      const double x = left + kCell * column, y = top + kCell * row;
      const double value = worth[static_cast<std::size_t>(cell)];
      const bool taken = std::isnan(value);
      drawing.rect({x, y, kCell, kCell},
                   taken ? "#ffffff"
                         : sample::shade(value < 0 ? "#d55e00" : "#0072b2", std::abs(value) * 0.7),
                   "#adb5bd");
      if (taken) {
        drawing.text(x + kCell / 2, y + 49, std::string(1, cells[cell]),
                     {.size = 40, .anchor = "middle"});
      } else {
        char text[16];
        std::snprintf(text, sizeof text, "%+.2f", value);
        drawing.text(x + kCell / 2, y + 40, text, {.size = 15, .anchor = "middle"});
      }
    }
    const int row = chosen / 3, column = chosen % 3;
    drawing.rect({left + kCell * column + 2, top + kCell * row + 2, kCell - 4, kCell - 4}, "none",
                 "#212529", 3);
  }
  drawing.save(options, "tic_tac_toe.svg");
}

bool play(const sample::Options& options) {
  const int steps = options.steps(3000, 400);
  auto trainer = tg::compile(
      Value{},
      [](const Value& net, const tg::Inputs& in) { return mse(net(in["board"]), in["worth"]); },
      {.inputs = {{"board", {kBatch, 27}}, {"worth", {kBatch}}},
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(3e-3, 1e-4, steps)},
       .seed = 1,
       .device = options.device});
  Judge judge(
      trainer.attach([](const Value& net, const tg::Inputs& in) { return net(in["board"]); },
                     {.inputs = {{"board", {std::int64_t{kBatch} * kMoves, 27}}}}));
  sample::Random random(5);
  std::vector<Board> games(kBatch, Board{});  // played in parallel, one move per step
  std::vector<float> boards(kBatch * 27), targets(kBatch);
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> answers = judge(games);
    for (std::size_t i = 0; i < kBatch; ++i) {
      const float* const worth = &answers[i * kMoves];
      const int reply = best(worth);
      write(games[i], &boards[i * 27]);
      targets[i] = -worth[reply];
      const bool explore = sample::uniform(random, 0, 1) < 0.4F;
      games[i] = answered(games[i], explore ? random_cell(games[i], random) : reply);
      if (won(games[i]) || full(games[i])) games[i] = Board{};
    }
    const float now = trainer.step({{"board", boards}, {"worth", targets}}).loss;
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(now));
  }
  draw(options, judge);
  const int lost = lost_games(judge, options.steps(1000, 1000), random);
  return sample::at_most(options, "games lost of 1000", lost, 0, 250);
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Learns tic-tac-toe.", play); }
