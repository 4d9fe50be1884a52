// SPDX-License-Identifier: MIT
// tg lm generate, eval and embed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lm/commands.h"
#include "lm/text_corpus.h"
#include "os/process.h"
#include "run/interrupt.h"
#include "run/progress.h"
#include "run/run_folder.h"
#include "tensorgrad/data/npy.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;
using LmLine = nlohmann::ordered_json;

constexpr std::int64_t kMaxSamplesAtOnce = 16;

std::string lm_line(const LmLine& line) {
  return line.dump(-1, ' ', false, LmLine::error_handler_t::replace);
}

void print_times(const lm::GenerationTimes& times) {
  // Prompts are not processed if no tokens are to be generated.
  const auto part = [](std::int64_t tokens, double seconds) {
    return tokens == 0 || seconds <= 0
               ? std::string("none")
               : fmt::format("{} tokens, {} tokens/s", tokens,
                             short_count(static_cast<double>(tokens) / seconds));
  };
  fmt::print(stderr, "prompts: {}; generated: {}\n",
             part(times.prompt_tokens, times.prompt_seconds), part(times.tokens, times.seconds));
}

// Prints how many texts ended because the context of the model is full.
void print_full(const std::vector<lm::Completion>& texts, std::int64_t context) {
  const auto full = std::count_if(texts.begin(), texts.end(), [](const lm::Completion& text) {
    return text.finish_reason == lm::FinishReason::kContext;
  });
  if (full > 0) {
    fmt::print(stderr,
               "{} of {} texts ended at the context length of {} tokens (tg lm train --context)\n",
               full, texts.size(), context);
  }
}

// Returns the tokens to score. Throws UserError if there is no text or no tokenizer, and IoError if
// the text of the run has changed.
std::vector<std::int32_t> eval_tokens(const LmEvalArguments& arguments,
                                      const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) throw UserError(arguments.model + ": the model has no tokenizer");
  if (!arguments.data.empty()) {
    const TextUse use = arguments.eos ? TextUse::kTrain : TextUse::kScore;
    return read_corpus(arguments.data, "", tokenizer, {.use = use}).split.train.read_all();
  }
  std::error_code ignored;
  if (!fs::is_directory(os::utf8_path(arguments.model), ignored)) {
    throw UserError("lm eval: --data is required if the model is a file");
  }
  const LmRun run = read_lm_run(arguments.model);
  const TextCorpus text = read_corpus(run.data, "", tokenizer, text_options(run.settings));
  if (text.fingerprint != run.fingerprint) {
    throw IoError(run.data.front() + ": the text has changed since the run began");
  }
  if (text.split.validation.size() < 2) {
    throw UserError("lm eval: the run has no validation text; select a text with --data");
  }
  return text.split.validation.read_all();
}

}  // namespace

std::string lm_model_path(const std::string& model) {
  std::error_code ignored;
  const fs::path folder = os::utf8_path(model);
  if (!fs::is_directory(folder, ignored)) return model;
  finish_replacement(model);
  if (!fs::exists(os::utf8_path(run_path(model, RunFile::kRun)), ignored) &&
      fs::exists(folder / "config.json", ignored)) {
    throw UserError(model +
                    ": a folder of transformers or mamba-ssm; convert it with `tg lm import " +
                    model + " -o model.safetensors`");
  }
  return run_path(model, RunFile::kModel);
}

int lm_generate(const LmGenerateArguments& arguments) {
  catch_interrupts();
  const lm::SavedModel model = lm::load_model(lm_model_path(arguments.model));
  std::vector<std::string> given = arguments.prompts;
  if (given.empty()) {
    const bool begins = model.tokenizer && (model.tokenizer->bos_id() || model.tokenizer->eos_id());
    given = {begins ? "" : "\n"};
  }
  std::vector<std::string> prompts;
  for (const std::string& prompt : given)
    prompts.insert(prompts.end(), static_cast<std::size_t>(arguments.count), prompt);
  const auto total = static_cast<std::int64_t>(prompts.size());
  const std::int64_t batch =
      std::min(total, arguments.batch > 0 ? arguments.batch : kMaxSamplesAtOnce);
  lm::Generator generator(model, {.batch = batch, .device = arguments.device});
  lm::GenerateOptions options = arguments.options;
  const bool streams = total == 1 && !arguments.json;
  // Prints the prompt once, after it was accepted.
  bool shown = false;
  const auto show_prompt = [&] {
    if (streams && !std::exchange(shown, true)) fmt::print("{}", prompts[0]);
  };
  options.on_text = [&](const lm::GeneratedChunk& written) {
    show_prompt();
    if (streams) {
      std::fwrite(written.text.data(), 1, written.text.size(), stdout);
      std::fflush(stdout);
    }
    return interrupted() == 0;
  };
  const std::vector<lm::Completion> texts = generator.generate(prompts, options);
  show_prompt();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (arguments.json) {
      fmt::print("{}\n", lm_line({{"prompt", prompts[i]},
                                  {"text", texts[i].text},
                                  {"tokens", texts[i].tokens},
                                  {"finish_reason", to_string(texts[i].finish_reason)}}));
    } else if (!streams) {
      fmt::print("{}--- {} of {}\n{}{}\n", i == 0 ? "" : "\n", i + 1, texts.size(), prompts[i],
                 texts[i].text);
    }
  }
  if (streams) fmt::print("\n");
  std::fflush(stdout);
  if (!arguments.quiet) {
    print_full(texts, lm::max_context(model.config));
    print_times(generator.times());
  }
  return interrupted() != 0 ? 128 + interrupted() : 0;
}

int lm_eval(const LmEvalArguments& arguments) {
  const lm::SavedModel model = lm::load_model(lm_model_path(arguments.model));
  const std::vector<std::int32_t> tokens = eval_tokens(arguments, model.tokenizer);
  lm::ScoreOptions options = arguments.options;
  options.device = arguments.device;
  const std::int64_t context = lm::max_context(model.config);
  if (context > 0) options.chunk = std::min(options.chunk, context);
  ProgressOptions shown;
  shown.unit = "tokens";
  lm::TextScore score;
  const auto began = std::chrono::steady_clock::now();
  {
    Progress progress(std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens.size()) - 1), 0,
                      shown);
    options.on_progress = [&](std::int64_t done) { progress.update(0, done, std::nullopt); };
    score = lm::TextScorer(model, options).score(tokens);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const std::span<const std::int32_t> predicted = std::span(tokens).subspan(1);
  const auto bytes = static_cast<double>(
      model.tokenizer->decode_bytes(predicted, {.skip_special_tokens = true}).size());
  const double bits = bytes > 0 ? score.nats / std::log(2.0) / bytes : 0;
  if (arguments.json) {
    fmt::print("{}\n", lm_line({{"tokens", score.tokens},
                                {"loss", score.loss()},
                                {"perplexity", score.perplexity()},
                                {"bits_per_byte", bits},
                                {"seconds", seconds}}));
  } else {
    fmt::print(
        "{} tokens: loss {:.4f} nats per token, perplexity {:.3f}, {:.4f} bits per byte; {} "
        "tokens/s\n",
        score.tokens, score.loss(), score.perplexity(), bits,
        short_count(static_cast<double>(score.tokens) / std::max(seconds, 1e-9)));
  }
  return 0;
}

int lm_embed(const LmEmbedArguments& arguments) {
  const lm::SavedModel model = lm::load_model(lm_model_path(arguments.model));
  if (!model.tokenizer) throw UserError(arguments.model + ": the model has no tokenizer");
  std::vector<std::string> texts = arguments.texts;
  if (!arguments.lines.empty()) {
    std::istringstream lines(read_text_file(arguments.lines));
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      texts.push_back(line);
    }
  }
  std::vector<std::vector<std::int32_t>> tokens;
  tokens.reserve(texts.size());
  for (const std::string& text : texts)
    tokens.push_back(model.tokenizer->encode(text, {.add_special_tokens = true}));
  const HostTensor rows = lm::Embedder(model, arguments.options).embed(tokens);
  if (!arguments.out.empty()) {
    write_npy(arguments.out, rows);
    fmt::print("wrote {}: f32[{},{}]\n", arguments.out, rows.shape[0], rows.shape[1]);
    return 0;
  }
  const std::vector<float> values = rows.floats();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(i) * rows.shape[1];
    fmt::print("{}\n", lm_line({{"text", texts[i]},
                                {"tokens", tokens[i].size()},
                                {"embedding", std::vector<float>(row, row + rows.shape[1])}}));
  }
  return 0;
}

}  // namespace tensorgrad::cli
