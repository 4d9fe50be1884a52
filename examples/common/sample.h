// SPDX-License-Identifier: MIT
// Common parts of the samples: options, progress and results, random numbers, data and pictures.
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
  // kQuick: a short run with a weaker bound. kSmoke: a few steps without a bound.
  enum class Length { kFull, kQuick, kSmoke };
  Length length = Length::kFull;
  tg::DeviceOptions device;  // "auto": a GPU if there is one
  std::string out = ".";     // folder for pictures
  std::string data;          // folder of the data; used by some samples, as are the options below
  std::string image;         // image file to recognize
  std::string weights;       // file of trained weights
  bool large = false;        // use a model for a GPU
  bool original = false;     // train as the original sample does, if ours differs
  std::optional<std::uint32_t> seed;  // replaces the sample's own seed

  [[nodiscard]] bool full() const { return length == Length::kFull; }
  [[nodiscard]] bool smoke() const { return length == Length::kSmoke; }
  [[nodiscard]] int steps(int of_full, int of_quick) const {
    return full() ? of_full : length == Length::kQuick ? of_quick : 3;
  }
};

// Parses the arguments, runs the sample and returns its exit code: 0 if the result is as expected,
// 1 if it is not or an exception was thrown (and printed), 2 for wrong usage.
int run(int argc, char** argv, const char* what, const std::function<bool(const Options&)>& body);

// Print "result: NAME VALUE (at least BOUND expected)", or "at most". Return true if the value
// meets the bound.
bool at_least(const Options& options, const std::string& name, double value, double of_full,
              double of_quick);
bool at_most(const Options& options, const std::string& name, double value, double of_full,
             double of_quick);

// Prints a line, at most one every half second unless `always` is set.
void progress(const std::string& text, bool always = false);

// Prints and returns the number of elements of all parameters.
std::size_t count_parameters(const tg::TrainerBase& trainer);

// Packs the first `count` bytes into words of four, for unpack_bytes(). `count` must be a multiple
// of 4.
std::vector<std::uint32_t> pack_bytes(const std::vector<std::uint8_t>& bytes, std::int64_t count);

using Random = std::mt19937;
float uniform(Random& random, float lo, float hi);
// Returns a random index below `count`.
int below(Random& random, int count);
// Returns a random index with the given probabilities, which must add up to 1.
int draw(Random& random, const float* probabilities, int count);

// Returns the folder of the data: --data, or else `name` in the data that the build has downloaded.
// An absolute `name` is returned as it is.
std::string data_folder(const Options& options, const std::string& name);

// An RGB picture, row-major, three bytes per pixel.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
  Picture(int w, int h) : width(w), height(h), rgb(static_cast<std::size_t>(w) * h * 3) {}
  void set(int x, int y, float r, float g, float b);  // 0 to 1, clamped
};
// Arranges images of one size in a grid with `columns` per row. Pixels are [count, height, width],
// from 0 (black) to 1.
Picture sheet(const std::vector<float>& images, int height, int width, int columns);
// Writes OUT/NAME and prints its path.
void save_png(const Options& options, const std::string& name, const Picture& picture);

}  // namespace sample
