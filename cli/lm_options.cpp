// SPDX-License-Identifier: MIT
// The options of tg lm. A subcommand is a function here and a line in add_lm().
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "lm_commands.h"
#include "options.h"

namespace tensorgrad::cli {
namespace {

using LmAction = std::function<int()>;

constexpr std::int64_t kMostOfLm = std::int64_t{1} << 40;

const std::map<std::string, nn::OutNorm> kOutNorms = {{"none", nn::OutNorm::kNone},
                                                      {"before_gate", nn::OutNorm::kBeforeGate},
                                                      {"after_gate", nn::OutNorm::kAfterGate}};

const CLI::Validator kFromZero(
    [](std::string& text) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      return *end == '\0' && value >= 0 ? "" : "a number of 0 or more expected, got " + text;
    },
    "NUMBER >= 0");

// Those of the model, which a model that is loaded has already.
std::vector<CLI::Option*> add_shape(CLI::App& command, LmSettings& s) {
  const auto counted = [&](const char* name, std::int64_t& value, const char* what) {
    return command.add_option(name, value, what)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
        ->capture_default_str();
  };
  return {command.add_option("--arch", s.shape.arch, "Kind of model")
              ->check(CLI::IsMember(lm_arches()))
              ->option_text("mamba1|mamba2|mamba3|gpt|hybrid|jamba|zamba (hybrid)"),
          counted("--layers", s.shape.layers, "Layers; but for mamba1 to mamba3 each with an MLP"),
          counted("--width", s.shape.width, "Width of the model"),
          command.add_option("--state", s.shape.state, "States of a channel (mamba1) or a head")
              ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
              ->option_text("INT (16; 64 in mamba2, mamba3)"),
          command
              .add_option_function<std::string>(
                  "--out-norm",
                  [&s](const std::string& name) { s.shape.out_norm = kOutNorms.at(name); },
                  "Norm between scan and projection of Mamba-3 (mamba3, zamba)")
              ->check(CLI::IsMember(kOutNorms))
              ->option_text("none|before_gate|after_gate (none)"),
          counted("--heads", s.shape.heads, "Heads of attention"),
          command.add_option("--context", s.shape.context, "Tokens that attention keeps")
              ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
              ->option_text("INT (1024; gpt: --length)"),
          command
              .add_option("--tokenizer", s.tokenizer,
                          "characters, bytes, bpe:N (N tokens), made of the text; or a "
                          "tokenizer.json")
              ->capture_default_str()};
}

std::vector<CLI::Option*> add_training(CLI::App& command, LmSettings& s, CLI::Option*& final_lr) {
  lm::TrainingOptions& t = s.training;
  const auto counted = [&](const char* name, std::int64_t& value, const char* what) {
    return command.add_option(name, value, what)
        ->check(CLI::Range(std::int64_t{1}, kMostOfLm))
        ->capture_default_str();
  };
  std::vector<CLI::Option*> options = {
      counted("--steps", t.steps, "Updates"),
      counted("--batch", t.batch, "Windows of a batch"),
      counted("--length", t.length, "Tokens of a window"),
      command.add_option("--accumulate", t.accumulate, "Batches of an update")
          ->check(CLI::Range(1, 1'000'000))
          ->capture_default_str(),
      command.add_option("--lr", t.lr, "Learning rate")->check(kPositive)->capture_default_str(),
      final_lr = command.add_option("--final-lr", t.final_lr, "Learning rate at the end")
                     ->check(kFromZero)
                     ->option_text("FLOAT (a tenth of --lr)"),
      command.add_option("--warmup", t.warmup, "Steps in which the rate grows from 0")
          ->check(CLI::Range(std::int64_t{0}, kMostOfLm))
          ->capture_default_str(),
      command.add_option("--weight-decay", t.weight_decay, "Of matrices")
          ->check(kFromZero)
          ->capture_default_str(),
      command
          .add_option("--clip-grad-norm", t.clip_grad_norm, "Largest norm of the gradients; 0: any")
          ->check(kFromZero)
          ->capture_default_str(),
      command.add_option("--seed", t.seed, "Of weights and of the order of the text")
          ->capture_default_str(),
      command.add_flag("--mixed-precision", t.mixed_precision, "Products of f16"),
      command.add_flag("--train-only-bc", t.train_only_bc,
                       "Train the rows that make B and C, and attention layers, alone"),
      command.add_option("--holdout", s.holdout, "Share at the end of each text to validate with")
          ->check(CLI::Range(0.0, 0.9))
          ->capture_default_str(),
      command.add_option("--eval-every", s.eval_every, "Steps between validations")
          ->check(CLI::Range(std::int64_t{1}, kMostOfLm))
          ->option_text("INT (a tenth of --steps)"),
      command.add_option("--eval-windows", s.eval_windows, "Windows to validate with; 0: all")
          ->check(CLI::Range(std::int64_t{0}, kMostOfLm))
          ->capture_default_str(),
      command
          .add_option("--patience", s.patience,
                      "Stop after so many validations without a better one; 0: never")
          ->check(CLI::Range(0, 1'000'000))
          ->capture_default_str(),
      command.add_option("--prompt", s.prompt, "What texts written after a validation begin with"),
      counted("--sample-tokens", s.sample_tokens, "Tokens of such a text"),
      command.add_flag_callback("--no-samples", [&s] { s.samples = false; }, "Write none")};
  return options;
}

bool has_mamba3(const LmShape& shape) {
  const std::vector<nn::MixerKind> layers = lm_config(shape).layers;
  return std::find(layers.begin(), layers.end(), nn::MixerKind::kMamba3) != layers.end();
}

void add_lm_train(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmTrainArguments>();
  CLI::App& command = *app.add_subcommand("train", "Train a language model on text");
  CLI::Option* const data = command.add_option(
      "TEXT", args->data,
      "Files of text, gzipped or not, folders of .txt files, or one file of tokens (.safetensors)");
  CLI::Option* const resume =
      command.add_option("--resume", args->resume, "Go on with a run, as if it had never stopped");
  CLI::Option* const from =
      command.add_option("--from", args->settings.from,
                         "Begin with the weights of this model, a run folder or a file");
  std::vector<CLI::Option*> fixed = add_shape(command, args->settings);
  for (CLI::Option* const option : fixed) option->excludes(from);
  CLI::Option* final_lr = nullptr;
  for (CLI::Option* const option : add_training(command, args->settings, final_lr))
    fixed.push_back(option);
  fixed.push_back(from);
  fixed.push_back(
      command.add_option("--out", args->out, "Run folder (default: runs/NAME, a new one)"));
  fixed.push_back(command.add_flag("--force", args->force,
                                   "Replace a run in the folder; files that are not tg's stay"));
  for (CLI::Option* const option : fixed) option->excludes(resume);
  command
      .add_option("--stop-after", args->stop_after, "Stop as Ctrl-C would once this step is done")
      ->check(CLI::Range(std::int64_t{1}, kMostOfLm));
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm train shakespeare/ --arch hybrid --steps 1000\n"
      "  tg lm train book.txt --arch mamba2 --layers 6 --width 256 --tokenizer bpe:4000\n"
      "  tg lm train tokens.safetensors --tokenizer tokenizer.json\n"
      "  tg lm train mine.txt --from runs/shakespeare --train-only-bc --lr 1e-3 --steps 200\n"
      "  tg lm train --resume runs/shakespeare\n"
      "Ctrl-C finishes the step, saves, and says how to go on.");
  command.callback([=, &action] {
    if (data->empty() && resume->empty()) throw CLI::RequiredError("TEXT or --resume");
    lm::TrainingOptions& t = args->settings.training;
    if (final_lr->empty()) t.final_lr = t.lr / 10;
    if (t.train_only_bc && from->empty())
      throw CLI::ValidationError("--train-only-bc",
                                 "trains parts of a model that there is: --from names it");
    LmShape& shape = args->settings.shape;
    if (shape.out_norm != nn::OutNorm::kNone && !has_mamba3(shape))
      throw CLI::ValidationError("--out-norm",
                                 "is of Mamba-3, of which " + shape.arch + " has no layers");
    if (shape.context == 0) shape.context = shape.arch == "gpt" ? t.length : 1024;
    action = [args] { return lm_train(*args); };
  });
}

void add_lm_generate(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmGenerateArguments>();
  auto& o = args->options;
  CLI::App& command = *app.add_subcommand("generate", "Let a language model write on");
  command.add_option("MODEL", args->model, "A run folder, or a model's file")->required();
  command
      .add_option("--prompt", args->prompts,
                  "What the text begins with; once for each text, none: the beginning of a text")
      ->allow_extra_args(false);
  command.add_option("--count", args->count, "Texts of each prompt")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--max-tokens", o.max_tokens, "Tokens of each text")
      ->check(CLI::Range(std::int64_t{0}, kMostOfLm))
      ->capture_default_str();
  command
      .add_option("--temperature", o.sampling.temperature,
                  "Below 1 likely tokens become likelier; 0: always the likeliest")
      ->check(kFromZero)
      ->capture_default_str();
  command.add_option("--top-k", o.sampling.top_k, "Draw from the likeliest so many; 0: all")
      ->check(CLI::Range(std::int64_t{0}, kMostOfLm))
      ->capture_default_str();
  command
      .add_option("--top-p", o.sampling.top_p,
                  "Draw from the fewest tokens that have this share together")
      ->check(CLI::Range(1e-12, 1.0))
      ->option_text("0..1 (1)");
  command
      .add_option("--min-p", o.sampling.min_p,
                  "Leave out tokens less likely than this times the likeliest")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("0..1 (0)");
  command
      .add_option("--repetition-penalty", o.sampling.repetition_penalty,
                  "Above 1 tokens that are there already become less likely")
      ->check(kPositive)
      ->capture_default_str();
  command.add_option("--seed", o.sampling.seed, "Of what is drawn")->capture_default_str();
  command.add_option("--stop", o.stop, "End before this string; once for each")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", o.ignore_eos, "Go on behind the end of a text");
  command.add_option("--batch", args->batch, "Texts at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->option_text("INT (all, at most 16)");
  command.add_flag("--json", args->json, "Print one JSON object a line, with the tokens");
  command.add_flag("--quiet", args->quiet, "Do not say how fast it was");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm generate runs/shakespeare --prompt 'KING.' --temperature 0.8 --top-p 0.95\n"
      "  tg lm generate model.safetensors --prompt 'Once' --count 4 --seed 7 --json");
  command.callback([=, &action] { action = [args] { return lm_generate(*args); }; });
}

void add_lm_eval(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmEvalArguments>();
  CLI::App& command = *app.add_subcommand("eval", "Say how well a language model foretells a text");
  command.add_option("MODEL", args->model, "A run folder, or a model's file")->required();
  command.add_option("--data", args->data,
                     "Texts as for `tg lm train`; none: what the run held out");
  command.add_option("--chunk", args->options.chunk, "Tokens that are gone over at once")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option(
          "--batch", args->options.batch,
          "Go over so many parts of the text side by side, each without what is before it; faster")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->capture_default_str();
  command
      .add_option(
          "--context", args->options.context,
          "Forget the text before every so many tokens, a multiple of --chunk; 0: never, or "
          "with attention layers before every so many as they keep")
      ->check(CLI::Range(std::int64_t{0}, kMostOfLm))
      ->capture_default_str();
  command.add_flag("--json", args->json, "Print one JSON object");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm eval runs/shakespeare\n"
      "  tg lm eval runs/shakespeare --data other.txt --context 256 --json\n"
      "The state is carried along the whole text, or as far as attention layers keep tokens. Loss\n"
      "is in nats a token.");
  command.callback([=, &action] { action = [args] { return lm_eval(*args); }; });
}

void add_lm_import(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmImportArguments>();
  CLI::App& command = *app.add_subcommand("import", "Make a model's file of another library's");
  command
      .add_option("FROM", args->from,
                  "A folder with config.json and safetensors of transformers or mamba-ssm (Mamba, "
                  "Mamba-2), or an MBJS file")
      ->required();
  command.add_option("-o,--out", args->out, "File to write")->required();
  command.add_flag_callback(
      "--no-tokenizer", [args] { args->tokenizer = false; }, "Leave the folder's tokenizer out");
  command.add_flag("--euler", args->euler,
                   "Of an MBJS file: its weights were trained by Euler's rule");
  command.footer(
      "Examples:\n"
      "  tg lm import mamba-130m-hf -o mamba.safetensors\n"
      "  tg lm generate mamba.safetensors --prompt 'Once upon a time'");
  command.callback([=, &action] { action = [args] { return lm_import(*args); }; });
}

void add_lm_quantize(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmQuantizeArguments>();
  auto type = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("quantize", "Keep a model's weights in fewer bits");
  command.add_option("MODEL", args->model, "A run folder, or a model's file")->required();
  command.add_option("--type", *type, "What the embedding and the projections become")
      ->required()
      ->check(CLI::IsMember({"f32", "f16", "bf16", "int8", "int8_per_tensor", "int4"}))
      ->option_text("f32|f16|bf16|int8|int8_per_tensor|int4");
  command.add_option("-o,--out", args->out, "File to write")->required();
  command.footer(
      "Examples:\n"
      "  tg lm quantize runs/plays --type int8 -o plays-int8.safetensors\n"
      "  tg lm eval plays-int8.safetensors --data other.txt     # what it costs");
  command.callback([=, &action] {
    args->format = nn::parse_weight_format(*type);
    action = [args] { return lm_quantize(*args); };
  });
}

}  // namespace

void add_lm(CLI::App& app, std::function<int()>& action) {
  CLI::App& command =
      *app.add_subcommand("lm", "Train language models of Mamba and attention; write with them");
  command.require_subcommand(0, 1);
  add_lm_train(command, action);
  add_lm_generate(command, action);
  add_lm_eval(command, action);
  add_lm_import(command, action);
  add_lm_quantize(command, action);
  command.callback([&command] {
    if (!command.get_subcommands().empty()) return;
    throw CLI::RequiredError("train, generate, eval, import or quantize");
  });
  command.footer("`tg lm COMMAND --help` says more about a command, with examples.");
}

}  // namespace tensorgrad::cli
