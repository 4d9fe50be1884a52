// SPDX-License-Identifier: MIT
#include "common/sample.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace sample {
namespace {

constexpr const char* kUsage =
    "Options: --device auto|cpu|webgpu, --allow-software, --quick (a short run), --smoke (a few\n"
    "steps), --out FOLDER, --data FOLDER, --image FILE (of digit_canvas), --weights FILE (of\n"
    "image_classifier), --size small|large,\n"
    "--original (as the original's sample is trained, where ours does better otherwise),\n"
    "--seed N (of addition)\n";

// Parses decimal digits that fit into 32 bits.
bool parse_seed(const std::string& text, Options& options) {
  std::uint32_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || stop != end) return false;
  options.seed = seed;
  return true;
}

// Returns false for wrong usage.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      options.length = Options::Length::kQuick;
    } else if (word == "--smoke") {
      options.length = Options::Length::kSmoke;
    } else if (word == "--original") {
      options.original = true;
    } else if (word == "--allow-software") {
      options.device.allow_software = true;
    } else if (i + 1 < argc && word == "--device") {
      options.device.kind = argv[++i];
    } else if (i + 1 < argc && word == "--out") {
      options.out = argv[++i];
    } else if (i + 1 < argc && word == "--data") {
      options.data = argv[++i];
    } else if (i + 1 < argc && word == "--image") {
      options.image = argv[++i];
    } else if (i + 1 < argc && word == "--weights") {
      options.weights = argv[++i];
    } else if (i + 1 < argc && word == "--seed") {
      if (!parse_seed(argv[++i], options)) return false;
    } else if (i + 1 < argc && word == "--size") {
      const std::string size = argv[++i];
      options.large = size == "large";
      if (!options.large && size != "small") return false;
    } else {
      return false;
    }
  }
  return true;
}

bool result(const Options& options, const std::string& name, double value, const char* relation,
            double bound, bool good) {
  if (options.smoke()) {
    std::printf("result: %s %.5g, after too few steps to expect anything\n", name.c_str(), value);
    return true;
  }
  std::printf("result: %s %.5g (%s %.5g expected)%s\n", name.c_str(), value, relation, bound,
              good ? "" : ": not reached");
  return good;
}

}  // namespace

int run(int argc, char** argv, const char* what, const std::function<bool(const Options&)>& body) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "%s\n%s", what, kUsage);
    return 2;
  }
  try {
    std::filesystem::create_directories(options.out);
    return body(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

bool at_least(const Options& options, const std::string& name, double value, double of_full,
              double of_quick) {
  const double bound = options.full() ? of_full : of_quick;
  return result(options, name, value, "at least", bound, value >= bound);
}

bool at_most(const Options& options, const std::string& name, double value, double of_full,
             double of_quick) {
  const double bound = options.full() ? of_full : of_quick;
  return result(options, name, value, "at most", bound, value <= bound);
}

void progress(const std::string& text, bool always) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (!always && now - last < std::chrono::milliseconds(500)) return;
  last = now;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::size_t count_parameters(const tg::TrainerBase& trainer) {
  std::size_t count = 0;
  for (const auto& [name, value] : trainer.download_params()) count += value.floats().size();
  std::printf("%zu parameters\n", count);
  return count;
}

std::vector<std::uint32_t> pack_bytes(const std::vector<std::uint8_t>& bytes, std::int64_t count) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count) / 4);
  for (std::size_t i = 0; i < words.size() * 4; ++i)
    words[i / 4] |= static_cast<std::uint32_t>(bytes[i]) << (i % 4 * 8);
  return words;
}

float uniform(Random& random, float lo, float hi) {
  return lo + (hi - lo) * static_cast<float>(random() >> 8) * 0x1p-24F;
}

int below(Random& random, int count) {
  return static_cast<int>(uniform(random, 0, 1) * static_cast<float>(count));
}

int draw(Random& random, const float* probabilities, int count) {
  float left = uniform(random, 0, 1);
  for (int i = 0; i + 1 < count; ++i) {
    left -= probabilities[i];
    if (left < 0) return i;
  }
  return count - 1;
}

std::string data_folder(const Options& options, const std::string& name) {
  if (!options.data.empty()) return options.data;
  return name.starts_with('/') ? name : TENSORGRAD_SAMPLE_DATA "/" + name;
}

Picture sheet(const std::vector<float>& images, int height, int width, int columns) {
  const int size = height * width;
  const int count = static_cast<int>(images.size()) / size;
  Picture picture(columns * width, (count + columns - 1) / columns * height);
  for (int i = 0; i < count * size; ++i) {
    const float grey = images[static_cast<std::size_t>(i)];
    const int image = i / size, at = i % size;
    picture.set(image % columns * width + at % width, image / columns * height + at / width, grey,
                grey, grey);
  }
  return picture;
}

void Picture::set(int x, int y, float r, float g, float b) {
  auto at = rgb.begin() + std::ptrdiff_t{3} * (y * width + x);
  for (const float part : {r, g, b})
    *at++ = static_cast<std::uint8_t>(std::lround(std::clamp(part, 0.0F, 1.0F) * 255));
}

void save_png(const Options& options, const std::string& name, const Picture& picture) {
  const std::string path = options.out + "/" + name;
  if (stbi_write_png(path.c_str(), picture.width, picture.height, 3, picture.rgb.data(),
                     picture.width * 3) == 0) {
    throw tg::IoError(path + ": cannot be written");
  }
  std::printf("picture: %s\n", path.c_str());
}

}  // namespace sample
