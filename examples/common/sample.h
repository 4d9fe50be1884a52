// SPDX-License-Identifier: MIT
// What the samples share: their options, and the line at the end that says what came out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace sample {

namespace tg = tensorgrad;

struct Options {
  // kQuick: a short run with a weaker bound; kSmoke: a few steps, whose result does not matter.
  enum class Length { kFull, kQuick, kSmoke };
  Length length = Length::kFull;
  tg::DeviceOptions device;  // auto: a GPU if there is one
  std::string out = ".";     // the folder for pictures
  std::string data;          // the folder of the data, where a sample takes one
  std::string image;         // a file to be recognized, where a sample takes one
  std::string weights;       // a file of trained weights, where a sample takes one
  bool large = false;        // a model for a GPU, where a sample has one
  bool original = false;  // trained as the original's sample is, where ours does better otherwise
  std::optional<std::uint32_t> seed;  // another than the sample's own, where it takes one

  [[nodiscard]] bool full() const { return length == Length::kFull; }
  [[nodiscard]] bool smoke() const { return length == Length::kSmoke; }
  [[nodiscard]] int steps(int of_full, int of_quick) const {
    return full() ? of_full : length == Length::kQuick ? of_quick : 3;
  }
};

// Parses the arguments, runs the sample, and gives its exit code: 0 where the result is as
// expected, 1 where it is not or something was thrown (which is printed), 2 for wrong usage.
int run(int argc, char** argv, const char* what, const std::function<bool(const Options&)>& body);

// Prints "result: NAME VALUE (at least BOUND expected)"; true where that is so.
bool at_least(const Options& options, const std::string& name, double value, double of_full,
              double of_quick);
bool at_most(const Options& options, const std::string& name, double value, double of_full,
             double of_quick);

// Prints a line at most every half second, and where `always` is set.
void progress(const std::string& text, bool always = false);

// Prints and returns the number of elements of all parameters.
std::size_t count_parameters(const tg::TrainerBase& trainer);

// The first `count` bytes, four a word, as unpack_bytes() takes them. `count` is a multiple of 4.
std::vector<std::uint32_t> pack_bytes(const std::vector<std::uint8_t>& bytes, std::int64_t count);

using Random = std::mt19937;
float uniform(Random& random, float lo, float hi);
// Index below `count`.
int below(Random& random, int count);
// Index drawn with these probabilities (which add up to 1).
int draw(Random& random, const float* probabilities, int count);

// The folder of the data: --data, or else `name` among those that the build has fetched, or a path
// of the system.
std::string data_folder(const Options& options, const std::string& name);

// Pixels of a picture, row-major, three bytes each.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
  Picture(int w, int h) : width(w), height(h), rgb(static_cast<std::size_t>(w) * h * 3) {}
  void set(int x, int y, float r, float g, float b);  // 0 to 1, clamped
};
// Images of one size beside and below each other, `columns` in a row; pixels [count, height, width]
// from 0, black, to 1.
Picture sheet(const std::vector<float>& images, int height, int width, int columns);
// Writes OUT/NAME, and prints where it is.
void save_png(const Options& options, const std::string& name, const Picture& picture);

}  // namespace sample
