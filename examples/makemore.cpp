// SPDX-License-Identifier: MIT
// Names of people, letter by letter: the letter that follows, from the eight before it (Bengio et
// al. 2003). A tenth of the names is held out. Makes names up at the end.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kContext = 8, kLetters = 27;  // 0 stands for both ends of a name
constexpr int kEmbedding = 24, kHidden = 256, kBatch = 512, kTestBatch = 1024;

struct Net {
  tg::nn::Embedding letters{kLetters, kEmbedding};
  tg::nn::Linear in{kContext * kEmbedding, kHidden}, mid{kHidden, kHidden}, out{kHidden, kLetters};
  TG_MODULE(letters, in, mid, out)

  // Contexts i32 [B, 8] -> logits [B, 27]
  tg::Tensor operator()(tg::Tensor context) const {
    const tg::Tensor h = relu(in(flatten(letters(context), 1)));
    return out(h + relu(mid(h)));
  }
};

using Context = std::array<std::int32_t, kContext>;

Context after(Context context, std::int32_t letter) {
  std::rotate(context.begin(), context.begin() + 1, context.end());
  context.back() = letter;
  return context;
}

struct Rows {
  std::vector<std::int32_t> contexts, letters;  // [N, 8], [N]
  void add(const std::string& name) {
    Context context{};
    for (std::size_t i = 0; i <= name.size(); ++i) {
      const std::int32_t letter = i < name.size() ? name[i] - 'a' + 1 : 0;
      contexts.insert(contexts.end(), context.begin(), context.end());
      letters.push_back(letter);
      context = after(context, letter);
    }
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(letters.size()); }
};

// The first words of the lines of the files dist.*, each once, in lower case and by the alphabet;
// of all the first `most`.
std::set<std::string> read_names(const std::string& folder, std::size_t most) {
  std::set<std::string> names;
  for (const char* file : {"dist.all.last", "dist.female.first", "dist.male.first"}) {
    const std::vector<std::byte> bytes = tg::read_file(folder + "/" + file);
    std::string name;
    bool word = true;
    for (const std::byte byte : bytes) {
      const auto c = static_cast<unsigned char>(byte);
      if (word && std::isalpha(c) != 0) {
        name += static_cast<char>(std::tolower(c));
        continue;
      }
      word = c == '\n';
      if (!name.empty() && names.size() < most) names.insert(name);
      name.clear();
    }
  }
  return names;
}

// Nats a letter, the end of a name being one.
double loss_on(tg::Forward& forward, const Rows& rows) {
  double sum = 0;
  std::vector<std::int32_t> x(kTestBatch * kContext), y(kTestBatch);
  for (std::int64_t first = 0; first < rows.count(); first += kTestBatch) {
    const std::int64_t count = std::min<std::int64_t>(kTestBatch, rows.count() - first);
    std::copy_n(rows.contexts.begin() + first * kContext, count * kContext, x.begin());
    std::copy_n(rows.letters.begin() + first, count, y.begin());
    const std::vector<float> losses = forward({{"x", x}, {"y", y}}).floats();
    for (std::int64_t i = 0; i < count; ++i) sum += losses[static_cast<std::size_t>(i)];
  }
  return sum / static_cast<double>(rows.count());
}

std::string make_up(tg::Forward& next, sample::Random& random) {
  std::string name;
  Context context{};
  for (;;) {
    const std::vector<std::int32_t> x(context.begin(), context.end());
    const std::vector<float> chances = next({{"x", x}}).floats();
    const int letter = sample::draw(random, chances.data(), kLetters);
    if (letter == 0 || name.size() > 20) return name;
    name += static_cast<char>('a' + letter - 1);
    context = after(context, letter);
  }
}

bool learn(const sample::Options& options) {
  const std::set<std::string> names =
      read_names(sample::data_folder(options, "names"), options.smoke() ? 500 : 1'000'000);
  Rows train, held_out;
  sample::Random random(1);
  for (const std::string& name : names)
    (sample::below(random, 10) == 0 ? held_out : train).add(name);
  std::printf("%zu names, %lld letters to learn from\n", names.size(),
              static_cast<long long>(train.count()));
  const int steps = options.steps(10'000, 400);
  auto trainer = tg::compile(
      Net{},
      [](const Net& net, const tg::Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.dataset = {{"x", {train.count(), kContext}, tg::i32}, {"y", {train.count()}, tg::i32}},
       .batch = kBatch,
       .optimizer = tg::optim::AdamW{.lr = tg::Schedule::cosine(3e-3, 0, steps)},
       .seed = 1,
       .device = options.device});
  trainer.upload_data("x", train.contexts);
  trainer.upload_data("y", train.letters);
  auto test = trainer.attach(
      [](const Net& net, const tg::Inputs& in) {
        return cross_entropy(net(in["x"]), in["y"], {.reduction = tg::Reduction::kNone});
      },
      {.inputs = {{"x", {kTestBatch, kContext}, tg::i32}, {"y", {kTestBatch}, tg::i32}}});
  auto next =
      trainer.attach([](const Net& net, const tg::Inputs& in) { return softmax(net(in["x"])); },
                     {.inputs = {{"x", {1, kContext}, tg::i32}}});
  const int piece = std::max(1, steps / 10);
  for (int done = 0; done < steps; done += piece) {
    double loss = 0;
    for (const float each : trainer.run(std::min(piece, steps - done))) loss += each / piece;
    sample::progress("step " + std::to_string(done + piece) + "  loss " + std::to_string(loss));
  }
  const double loss = loss_on(test, held_out);
  std::printf("made up:");
  for (int i = 0; i < 20; ++i) std::printf(" %s", make_up(next, random).c_str());
  std::printf("\n");
  return sample::at_most(options, "nats a letter of names that were held out", loss, 2.15, 2.4);
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Learns to spell names.", learn); }
