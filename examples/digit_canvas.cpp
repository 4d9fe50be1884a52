// SPDX-License-Identifier: MIT
// A convolutional network learns digits and recognizes one in an image file: --image FILE. It
// learns from randomly distorted strokes that are drawn here, or from MNIST in IDX files: --data
// FOLDER.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kSide = 28, kPixels = kSide * kSide, kBox = 20, kBatch = 64, kDigits = 10;

struct Cnn {
  tg::nn::Conv2d first{1, 16, 3, {.padding = 1}}, second{16, 32, 3, {.padding = 1}};
  tg::nn::Linear hidden{32 * kPixels / 16, 64}, out{64, kDigits};
  TG_MODULE(first, second, hidden, out)

  // Bytes u32 [B, 196] -> logits [B, 10]
  tg::Tensor operator()(tg::Tensor bytes) const {
    tg::Tensor x = reshape(unpack_bytes(bytes), {-1, 1, kSide, kSide}) / 255.0;
    x = max_pool2d(relu(first(x)), 2);
    x = max_pool2d(relu(second(x)), 2);
    return out(relu(hidden(flatten(x, 1))));
  }
};

// ---- strokes -----------------------------------------------------------------------------------

struct Point {
  float x = 0, y = 0;
};
using Stroke = std::vector<Point>;

// Appends part of an ellipse. Angles are in degrees, clockwise from the right.
void add_arc(Stroke& stroke, Point center, Point radius, float from, float to) {
  for (int i = 0; i <= 14; ++i) {
    const float angle =
        (from + (to - from) * static_cast<float>(i) / 14) * std::numbers::pi_v<float> / 180;
    stroke.push_back(
        {center.x + radius.x * std::cos(angle), center.y + radius.y * std::sin(angle)});
  }
}

// Returns a digit as strokes; x and y are from 0 to 1, y points down. Some digits have a second
// form.
std::vector<Stroke> strokes_of(int digit, bool second_form) {
  Stroke a, b;
  switch (digit) {
    case 0: add_arc(a, {0.5F, 0.5F}, {0.38F, 0.5F}, -90, 270); break;
    case 1:
      a = {{0.5F, 0}, {0.5F, 1}};
      if (second_form) a.insert(a.begin(), {0.28F, 0.22F});
      break;
    case 2:
      add_arc(a, {0.5F, 0.28F}, {0.4F, 0.28F}, 180, 395);
      a.insert(a.end(), {{0.08F, 1}, {0.95F, 1}});
      break;
    case 3:
      add_arc(a, {0.45F, 0.25F}, {0.38F, 0.25F}, 200, 450);
      add_arc(a, {0.45F, 0.75F}, {0.43F, 0.25F}, 270, 520);
      break;
    case 4:
      a = {{second_form ? 0.15F : 0.6F, 0}, {0.08F, 0.62F}, {0.95F, 0.62F}};
      b = {{0.65F, second_form ? 0.2F : 0.0F}, {0.65F, 1}};
      break;
    case 5:
      a = {{0.88F, 0}, {0.2F, 0}, {0.15F, 0.45F}};
      add_arc(a, {0.45F, 0.68F}, {0.43F, 0.32F}, 230, 510);
      break;
    case 6:
      a = {{0.75F, 0}, {0.45F, 0.18F}, {0.22F, 0.45F}};
      add_arc(a, {0.5F, 0.7F}, {0.34F, 0.3F}, 180, 540);
      break;
    case 7:
      a = {{0.05F, 0}, {0.92F, 0}, {0.4F, 1}};
      if (second_form) b = {{0.35F, 0.5F}, {0.85F, 0.5F}};
      break;
    case 8:
      add_arc(a, {0.5F, 0.25F}, {0.32F, 0.25F}, 90, 450);
      add_arc(a, {0.5F, 0.75F}, {0.38F, 0.25F}, 270, 630);
      break;
    default:
      add_arc(a, {0.48F, 0.3F}, {0.36F, 0.3F}, 0, 360);
      a.push_back({second_form ? 0.84F : 0.65F, 1});
  }
  return b.empty() ? std::vector<Stroke>{a} : std::vector<Stroke>{a, b};
}

float distance(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
  const float along = squared > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / squared : 0;
  const float t = std::clamp(along, 0.0F, 1.0F);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// Rotates, slants and bends the strokes, fits them into a centered box of 20 pixels, as MNIST does,
// and draws them with a pen of random width.
void draw_digit(int digit, sample::Random& random, std::uint8_t* pixels) {
  const auto some = [&](float size) { return sample::uniform(random, -size, size); };
  std::vector<Stroke> strokes = strokes_of(digit, random() % 2 == 0);
  const float turn = some(0.3F), slant = some(0.35F), wide = sample::uniform(random, 0.55F, 1);
  const float bend = some(0.07F), wave = some(3), bend2 = some(0.07F), wave2 = some(3);
  Point low{1e9F, 1e9F}, high{-1e9F, -1e9F};
  for (Stroke& stroke : strokes) {
    for (Point& p : stroke) {
      const float x = (p.x - 0.5F + bend * std::sin(5 * p.y + wave)) * wide - slant * (p.y - 0.5F);
      const float y = p.y - 0.5F + bend2 * std::sin(5 * p.x + wave2);
      p = {x * std::cos(turn) - y * std::sin(turn), x * std::sin(turn) + y * std::cos(turn)};
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  }
  const float pen = sample::uniform(random, 0.7F, 1.9F);
  const float scale = (kBox - 2 * pen) / std::max(high.x - low.x, high.y - low.y);
  const Point shift{some(1), some(1)};
  for (Stroke& stroke : strokes) {
    for (Point& p : stroke) {
      p = {kSide / 2.0F + (p.x - (low.x + high.x) / 2) * scale + shift.x,
           kSide / 2.0F + (p.y - (low.y + high.y) / 2) * scale + shift.y};
    }
  }
  for (int i = 0; i < kPixels; ++i) {
    const int row = i / kSide, column = i % kSide;
    const Point at{static_cast<float>(column) + 0.5F, static_cast<float>(row) + 0.5F};
    float nearest = 1e9F;
    for (const Stroke& stroke : strokes) {
      for (std::size_t k = 1; k < stroke.size(); ++k)
        nearest = std::min(nearest, distance(at, stroke[k - 1], stroke[k]));
    }
    pixels[i] = static_cast<std::uint8_t>(255 * std::clamp(pen + 0.5F - nearest, 0.0F, 1.0F));
  }
}

tg::ImageSet draw_digits(std::int64_t count, sample::Random& random) {
  tg::ImageSet set{count, std::vector<std::uint8_t>(static_cast<std::size_t>(count) * kPixels), {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>(i % kDigits);
    draw_digit(digit, random, &set.images[static_cast<std::size_t>(i) * kPixels]);
    set.labels.push_back(digit);
  }
  return set;
}

// ---- an image file -----------------------------------------------------------------------------

// Reads a drawing and converts it to the form of MNIST: white on black, its box fitted into 20
// pixels in the middle.
std::vector<std::uint8_t> read_drawing(const std::string& path) {
  const tg::Image image = tg::read_image(path, {.channels = 1});
  const auto gray = [&](std::int64_t x, std::int64_t y) {
    return image.pixels[static_cast<std::size_t>(y * image.width + x)];
  };
  const int background = gray(0, 0);
  int most = 0;  // largest difference from the background
  for (const int each : image.pixels) most = std::max(most, std::abs(each - background));
  if (most < 32) throw tg::IoError(path + ": expected a drawing, got an empty image");
  const auto ink = [&](std::int64_t x, std::int64_t y) {
    return 255 * std::abs(gray(x, y) - background) / most;
  };
  std::int64_t left = image.width, top = image.height, right = -1, bottom = -1;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      if (ink(x, y) < 96) continue;
      left = std::min(left, x), right = std::max(right, x);
      top = std::min(top, y), bottom = std::max(bottom, y);
    }
  }
  const double width = static_cast<double>(right - left + 1),
               height = static_cast<double>(bottom - top + 1);
  const double scale = std::max(width, height) / kBox;  // pixels of the file per pixel
  std::vector<std::uint8_t> pixels(kPixels);
  for (int i = 0; i < kPixels; ++i) {  // mean of the covered pixels
    const int row = i / kSide - kSide / 2, column = i % kSide - kSide / 2;
    const double x = static_cast<double>(left) + width / 2 + column * scale;
    const double y = static_cast<double>(top) + height / 2 + row * scale;
    const auto x0 = static_cast<std::int64_t>(std::floor(x)),
               y0 = static_cast<std::int64_t>(std::floor(y));
    const auto size = std::max<std::int64_t>(1, std::lround(scale));
    double sum = 0;
    for (std::int64_t v = y0; v < y0 + size; ++v) {
      for (std::int64_t u = x0; u < x0 + size; ++u) {
        if (u >= 0 && v >= 0 && u < image.width && v < image.height) sum += ink(u, v);
      }
    }
    pixels[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(sum / static_cast<double>(size * size));
  }
  return pixels;
}

// Draws the digit, and a bar for the probability of each class.
void draw(const sample::Options& options, const std::vector<std::uint8_t>& pixels,
          const std::vector<float>& chances) {
  constexpr double kCell = 10, kTop = 50;
  sample::Drawing drawing(620, kTop + kSide * kCell + 30);
  drawing.text(30, 32, "What the network sees", {.size = 15, .bold = true});
  for (int i = 0; i < kPixels; ++i) {
    const double value = pixels[static_cast<std::size_t>(i)] / 255.0;
    const int row = i / kSide, column = i % kSide;
    drawing.rect({30 + kCell * column, kTop + kCell * row, kCell, kCell},
                 sample::shade("#212529", value), "#f1f3f5", 0.5);
  }
  drawing.text(370, 32, "What it takes it for", {.size = 15, .bold = true});
  for (int digit = 0; digit < kDigits; ++digit) {
    const double y = kTop + 28 * digit, chance = chances[static_cast<std::size_t>(digit)];
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.1f %%", 100 * chance);
    drawing.text(370, y + 17, std::to_string(digit), {.size = 15, .bold = true});
    drawing.rect({390, y + 3, 150 * chance, 18}, "#0072b2");
    drawing.text(600, y + 17, percent, {.anchor = "end"});
  }
  drawing.save(options, "digit_canvas.svg");
}

struct Digits {
  tg::ImageSet train, test;
};

Digits read_digits(const sample::Options& options, int steps) {
  if (!options.data.empty()) {
    tg::LabeledImages data =
        tg::read_image_folder(options.data, {.height = kSide, .width = kSide, .channels = 1});
    if (data.classes != kDigits)
      throw tg::IoError(options.data + ": expected 10 classes, got " +
                        std::to_string(data.classes));
    return {std::move(data.train), std::move(data.test)};
  }
  sample::Random random(1);
  const std::int64_t count = std::min(12'000, steps * kBatch);
  return {draw_digits(count, random), draw_digits(options.smoke() ? 10 : 1000, random)};
}

double accuracy(tg::CompiledFunction& classify, const tg::ImageSet& test) {
  constexpr std::int64_t kPart = 500;
  std::int64_t right = 0;
  for (std::int64_t first = 0; first < test.count; first += kPart) {
    const std::int64_t count = std::min(kPart, test.count - first);
    const auto begin = test.images.begin() + first * kPixels;
    const auto chances =
        classify({{"x", sample::pack_bytes({begin, begin + count * kPixels}, count * kPixels)}})
            .floats();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = chances.begin() + i * kDigits;
      const auto said = std::max_element(row, row + kDigits) - row;
      right += said == test.labels[static_cast<std::size_t>(first + i)] ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(test.count);
}

bool learn(const sample::Options& options) {
  std::vector<std::uint8_t> drawing;
  if (!options.image.empty()) drawing = read_drawing(options.image);
  const int steps = options.steps(1000, 150);
  const Digits digits = read_digits(options, steps);
  auto trainer = tg::compile(
      Cnn{},
      [](const Cnn& net, const tg::Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.dataset = {{"x", {digits.train.count, kPixels / 4}, tg::u32},
                   {"y", {digits.train.count}, tg::i32}},
       .batch = kBatch,
       .optimizer = tg::optim::AdamW{.lr = 1e-3, .weight_decay = 0.01},
       .groups = {tg::no_weight_decay()},
       .clip_grad_norm = 1,
       .seed = 1,
       .device = options.device});
  sample::count_parameters(trainer);
  auto classify =
      trainer.attach([](const Cnn& net, const tg::Inputs& in) { return softmax(net(in["x"])); },
                     {.inputs = {{"x", {tg::kDynamic, kPixels / 4}, tg::u32}}});
  trainer.upload_data("x", sample::pack_bytes(digits.train.images, digits.train.count * kPixels));
  trainer.upload_data("y", digits.train.labels);
  const int piece = std::max(1, steps / 10);
  for (int done = 0; done < steps; done += piece) {
    const float loss = trainer.run(std::min(piece, steps - done)).back();
    sample::progress("step " + std::to_string(done + piece) + "  loss " + std::to_string(loss));
  }
  const double share = accuracy(classify, digits.test);
  if (drawing.empty())
    drawing.assign(digits.test.images.begin(), digits.test.images.begin() + kPixels);
  const std::vector<float> chances =
      classify({{"x", sample::pack_bytes(drawing, kPixels)}}).floats();
  const auto best = std::max_element(chances.begin(), chances.end());
  std::printf("%s: a %d (%.1f %%)\n",
              options.image.empty() ? "the first test image" : options.image.c_str(),
              static_cast<int>(best - chances.begin()), 100.0 * *best);
  draw(options, drawing, chances);
  return sample::at_least(options, "share of test images that are told right", share, 0.98, 0.8);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns digits, and recognizes one in a file.", learn);
}
