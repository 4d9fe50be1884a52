// SPDX-License-Identifier: MIT
// Generates names of people letter by letter. Predicts the next letter from the previous eight
// (Bengio et al. 2003), or with --size large from all previous ones, by a decoder with rotary
// positions. A tenth of the names is held out. Prints generated names, and draws them with the
// probabilities of the first two letters.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <set>
#include <span>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kLetters = 27;  // 0 marks both ends of a name
constexpr int kMadeUp = 20;
constexpr int kLength = 32;  // names are shorter

struct Names {
  std::vector<std::string> train, held_out;
};

std::int32_t number_of(char letter) { return letter - 'a' + 1; }
char letter_of(int number) { return static_cast<char>('a' + number - 1); }

// ---- the picture -------------------------------------------------------------------------------

// Draws names, and the probabilities of the first letter and, for each first letter, of the second:
// [27, 27]. Rows and columns are letters; 0 is both ends.
void show(const sample::Options& options, const std::vector<float>& chances,
          const std::vector<std::string>& names) {
  std::printf("made up:");
  for (const std::string& name : names) std::printf(" %s", name.c_str());
  std::printf("\n");
  constexpr double kCell = 18, kLeft = 50, kTop = 90;
  const auto label = [](int letter) {
    return letter == 0 ? std::string("|") : std::string(1, letter_of(letter));
  };
  sample::Drawing drawing(760, kTop + kLetters * kCell + 20);
  drawing.text(20, 32, "Probability of the second letter of a name, by the first",
               {.size = 16, .bold = true});
  drawing.text(20, 54, "Row: the first letter. Column: the next. |: begin or end of the name.",
               {.color = "#495057"});
  for (int i = 0; i < kLetters; ++i) {
    const double at = kCell * (i + 0.5);
    drawing.text(kLeft + at, kTop - 8, label(i), {.anchor = "middle"});
    drawing.text(kLeft - 12, kTop + at + 4, label(i), {.anchor = "middle"});
    for (int j = 0; j < kLetters; ++j) {
      drawing.rect({kLeft + kCell * j, kTop + kCell * i, kCell, kCell},
                   sample::shade("#0072b2", chances[static_cast<std::size_t>(i) * kLetters + j]),
                   "#f1f3f5");
    }
  }
  drawing.text(590, 32, "Names made up", {.size = 16, .bold = true});
  for (std::size_t i = 0; i < names.size(); ++i)
    drawing.text(590, kTop + 14 + 24 * static_cast<double>(i), names[i], {.size = 15});
  drawing.save(options, "makemore.svg");
}

// ---- small model: a window of letters ----------------------------------------------------------

constexpr int kContext = 8, kEmbedding = 24, kHidden = 256, kBatch = 512, kTestBatch = 1024;

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
  explicit Rows(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      Context context{};
      for (std::size_t i = 0; i <= name.size(); ++i) {
        const std::int32_t letter = i < name.size() ? number_of(name[i]) : 0;
        contexts.insert(contexts.end(), context.begin(), context.end());
        letters.push_back(letter);
        context = after(context, letter);
      }
    }
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(letters.size()); }
};

// Returns nats per letter. The end of a name counts as a letter.
double loss_on(tg::CompiledFunction& forward, const Rows& rows) {
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

std::string make_up(tg::CompiledFunction& next, sample::Random& random) {
  std::string name;
  Context context{};
  for (;;) {
    const std::vector<std::int32_t> x(context.begin(), context.end());
    const std::vector<float> chances = next({{"x", x}}).floats();
    const int letter = sample::draw(random, chances.data(), kLetters);
    if (letter == 0 || name.size() > 20) return name;
    name += letter_of(letter);
    context = after(context, letter);
  }
}

void train(tg::AnyTrainer& trainer, int steps) {
  const int piece = std::max(1, steps / 10);
  for (int done = 0; done < steps; done += piece) {
    double loss = 0;
    for (const float each : trainer.run(std::min(piece, steps - done))) loss += each / piece;
    sample::progress("step " + std::to_string(done + piece) + "  loss " + std::to_string(loss));
  }
}

// Returns nats per letter of the held-out names.
double learn_windows(const sample::Options& options, const Names& names, sample::Random& random) {
  const Rows rows(names.train);
  std::printf("%lld letters to learn from\n", static_cast<long long>(rows.count()));
  const int steps = options.steps(10'000, 400);
  auto trainer = tg::compile(
      Net{},
      [](const Net& net, const tg::Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.dataset = {{"x", {rows.count(), kContext}, tg::i32}, {"y", {rows.count()}, tg::i32}},
       .batch = kBatch,
       .optimizer = tg::optim::AdamW{.lr = tg::Schedule::cosine(3e-3, 0, steps)},
       .seed = 1,
       .device = options.device});
  trainer.upload_data("x", rows.contexts);
  trainer.upload_data("y", rows.letters);
  auto test = trainer.attach(
      [](const Net& net, const tg::Inputs& in) {
        return cross_entropy(net(in["x"]), in["y"], {.reduction = tg::Reduction::kNone});
      },
      {.inputs = {{"x", {kTestBatch, kContext}, tg::i32}, {"y", {kTestBatch}, tg::i32}}});
  auto next =
      trainer.attach([](const Net& net, const tg::Inputs& in) { return softmax(net(in["x"])); },
                     {.inputs = {{"x", {tg::kDynamic, kContext}, tg::i32}}});
  train(trainer, steps);
  const double loss = loss_on(test, Rows(names.held_out));
  std::vector<std::string> made;
  for (int i = 0; i < kMadeUp; ++i) made.push_back(make_up(next, random));
  std::vector<std::int32_t> begun;
  for (int letter = 0; letter < kLetters; ++letter) {
    const Context context = after({}, letter);
    begun.insert(begun.end(), context.begin(), context.end());
  }
  show(options, next({{"x", begun}}).floats(), made);
  return loss;
}

// ---- large model: a decoder --------------------------------------------------------------------

constexpr int kWidth = 96, kHeads = 3, kInner = 256, kLayers = 3;
constexpr int kRows = 64;  // per batch
constexpr double kDropout = 0.1;

struct Block {
  tg::nn::RMSNorm before_attention{kWidth}, before_mlp{kWidth};
  tg::nn::Linear in{kWidth, 3 * kWidth, false}, out{kWidth, kWidth, false};
  tg::nn::Linear gate{kWidth, kInner, false}, up{kWidth, kInner, false},
      down{kInner, kWidth, false};
  TG_MODULE(before_attention, before_mlp, in, out, gate, up, down)

  // Returns part k of [B, T, 3 D] as [B, H, T, D / H].
  static tg::Tensor heads(tg::Tensor x, int k) {
    const std::int64_t length = x.size(1);
    return transpose(
        reshape(narrow(x, 2, k * kWidth, kWidth), {-1, length, kHeads, kWidth / kHeads}), 1, 2);
  }

  [[nodiscard]] tg::Tensor attention(tg::Tensor x, tg::Tensor mask) const {
    const tg::Tensor all = in(x);
    const tg::Tensor mixed = scaled_dot_product_attention(
        rope(heads(all, 0)), rope(heads(all, 1)), heads(all, 2), {.mask = mask, .causal = true});
    return out(reshape(transpose(mixed, 1, 2), x.shape()));
  }

  // A SwiGLU MLP (Shazeer 2020).
  [[nodiscard]] tg::Tensor mlp(tg::Tensor x) const { return down(silu(gate(x)) * up(x)); }

  tg::Tensor operator()(tg::Tensor x, tg::Tensor mask) const {
    x = x + dropout(attention(before_attention(x), mask), kDropout);
    return x + dropout(mlp(before_mlp(x)), kDropout);
  }
};

struct Decoder {
  tg::Parameter letters{{kLetters, kWidth}, tg::init::normal(0, 0.02)};
  std::vector<Block> blocks = std::vector<Block>(kLayers);
  tg::nn::RMSNorm last{kWidth};
  TG_MODULE(letters, blocks, last)

  // Letters i32 [B, T] -> logits [B, T, 27] of the next letters. A letter attends to the previous
  // ones in its own name, which begins with a 0. The output layer is tied to the embedding.
  tg::Tensor operator()(tg::Tensor text) const {
    const tg::Tensor name = cumsum(cast(text == 0, tg::i32), 1);
    const tg::Tensor mask = unsqueeze(unsqueeze(name, 2) == unsqueeze(name, 1), 1);
    tg::Tensor x = dropout(embedding(text, letters), kDropout);
    for (const Block& block : blocks) x = block(x, mask);
    return linear(last(x), letters);
  }
};

// Rows [B, T + 1] -> losses [B, T] or their mean. The loss ignores padding, i.e. a 0 after a 0.
tg::Tensor loss_of(const Decoder& net, tg::Tensor rows, tg::Reduction reduction) {
  constexpr int kNothing = -1;
  const std::int64_t length = rows.size(1) - 1;
  const tg::Tensor text = narrow(rows, 1, 0, length), next = narrow(rows, 1, 1, length);
  return cross_entropy(net(text), where(text > 0 || next > 0, next, kNothing),
                       {.ignore_index = kNothing, .reduction = reduction});
}

// Packs whole names into rows, "0anna0bob0" followed by zeros: [rows, T + 1].
std::vector<std::int32_t> rows_of(const std::vector<std::string>& names) {
  std::vector<std::int32_t> rows;
  std::size_t end = 0;  // end of the last row
  for (const std::string& name : names) {
    if (rows.size() + name.size() + 1 > end) {
      rows.resize(end);
      end += kLength + 1;
      rows.push_back(0);
    }
    for (const char letter : name) rows.push_back(number_of(letter));
    rows.push_back(0);
  }
  rows.resize(end);
  return rows;
}

// Returns nats per letter. The end of a name counts as a letter.
double loss_on(tg::CompiledFunction& forward, const std::vector<std::string>& names) {
  double sum = 0, letters = 0;
  for (const std::string& name : names) letters += static_cast<double>(name.size()) + 1;
  const std::vector<std::int32_t> rows = rows_of(names);
  constexpr std::size_t kPart = kRows * (kLength + 1);
  for (std::size_t first = 0; first < rows.size(); first += kPart) {
    const std::span part = std::span(rows).subspan(first, std::min(kPart, rows.size() - first));
    for (const float each : forward({{"rows", part}}).floats()) sum += each;
  }
  return sum / letters;
}

// Generates all names in parallel, letter by letter.
std::vector<std::string> make_up_all(tg::CompiledFunction& next, sample::Random& random) {
  std::vector<std::string> names(kMadeUp);
  std::vector<std::int32_t> text(kMadeUp * kLength);
  for (std::size_t t = 0; t < kLength; ++t) {
    const std::vector<float> chances = next({{"text", text}}).floats();
    for (std::size_t i = 0; i < kMadeUp; ++i) {
      const std::size_t at = i * kLength + t;
      if (names[i].size() < t) continue;  // the name has ended
      const int letter = sample::draw(random, &chances[at * kLetters], kLetters);
      if (letter == 0 || t + 1 == kLength) continue;
      names[i] += letter_of(letter);
      text[at + 1] = letter;
    }
  }
  return names;
}

// Selects the parameters for Muon: the matrices of the blocks.
bool is_within(const std::string& name, const tg::Shape& shape) {
  return name.starts_with("blocks.") && shape.size() == 2;
}

double learn_decoder(const sample::Options& options, const Names& names, sample::Random& random) {
  std::vector<std::string> mixed = names.train;
  for (std::size_t i = 1; i < mixed.size(); ++i) {
    const int other = sample::below(random, static_cast<int>(i) + 1);
    std::swap(mixed[i], mixed[static_cast<std::size_t>(other)]);
  }
  const std::vector<std::int32_t> rows = rows_of(mixed);
  const std::int64_t count = std::ssize(rows) / (kLength + 1);
  const int steps = options.steps(6000, 150);
  auto trainer = tg::compile(
      Decoder{},
      [](const Decoder& net, const tg::Inputs& in) {
        return loss_of(net, in["rows"], tg::Reduction::kMean);
      },
      {.dataset = {{"rows", {count, kLength + 1}, tg::i32}},
       .batch = kRows,
       .optimizer = tg::optim::Muon{.lr = tg::Schedule::warmup(
                                        steps / 20 + 1, tg::Schedule::cosine(2e-2, 0, steps)),
                                    .params = is_within,
                                    .weight_decay = 0.1,
                                    .adamw_lr_factor = 0.15,
                                    .beta2 = 0.99},
       .groups = {tg::no_weight_decay()},
       .clip_grad_norm = 1,
       .seed = 1,
       .device = options.device});
  trainer.upload_data("rows", rows);
  auto test = trainer.attach(
      [](const Decoder& net, const tg::Inputs& in) {
        return loss_of(net, in["rows"], tg::Reduction::kNone);
      },
      {.inputs = {{"rows", {tg::kDynamic, kLength + 1}, tg::i32}}, .dynamic_size = kRows});
  auto next = trainer.attach(
      [](const Decoder& net, const tg::Inputs& in) { return softmax(net(in["text"])); },
      {.inputs = {{"text", {tg::kDynamic, kLength}, tg::i32}}});
  train(trainer, steps);
  const double loss = loss_on(test, names.held_out);
  std::vector<std::int32_t> begun(kLetters * kLength);  // the first letter is at index 1
  for (int letter = 0; letter < kLetters; ++letter)
    begun[static_cast<std::size_t>(letter) * kLength + 1] = letter;
  const std::vector<float> all = next({{"text", begun}}).floats();
  std::vector<float> chances;
  for (int letter = 0; letter < kLetters; ++letter) {
    const auto row = all.begin() + (letter * kLength + (letter == 0 ? 0 : 1)) * kLetters;
    chances.insert(chances.end(), row, row + kLetters);
  }
  show(options, chances, make_up_all(next, random));
  return loss;
}

// ---- the names ---------------------------------------------------------------------------------

// Reads the first `most` distinct names: the first words of the lines of the files dist.*, in lower
// case. Returns them in alphabetical order.
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
      if (!name.empty() && name.size() < kLength && names.size() < most) names.insert(name);
      name.clear();
    }
  }
  return names;
}

bool learn(const sample::Options& options) {
  const std::set<std::string> all =
      read_names(sample::data_folder(options, "names"), options.smoke() ? 500 : 1'000'000);
  Names names;
  sample::Random random(1);
  for (const std::string& name : all)
    (sample::below(random, 10) == 0 ? names.held_out : names.train).push_back(name);
  std::printf("%zu names\n", all.size());
  const double loss =
      options.large ? learn_decoder(options, names, random) : learn_windows(options, names, random);
  return sample::at_most(options, "nats a letter of names that were held out", loss,
                         options.large ? 2.08 : 2.15, 2.4);
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Learns to spell names.", learn); }
