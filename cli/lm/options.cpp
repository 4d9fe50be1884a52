// SPDX-License-Identifier: MIT
// The options of tg lm. Each subcommand has a function here and a call in add_lm().
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "lm/commands.h"
#include "options.h"
#include "usage.h"

namespace tensorgrad::cli {
namespace {

using LmAction = std::function<int()>;

constexpr std::int64_t kMaxOfLm = std::int64_t{1} << 40;

const std::map<std::string, nn::OutNorm> kOutNorms = {{"none", nn::OutNorm::kNone},
                                                      {"before_gate", nn::OutNorm::kBeforeGate},
                                                      {"after_gate", nn::OutNorm::kAfterGate}};

const std::map<std::string, nn::DecayActivation> kDecays = {
    {"softplus", nn::DecayActivation::kSoftplus}, {"heavy_tail", nn::DecayActivation::kHeavyTail}};

const CLI::Validator kArch(
    [](std::string& text) {
      const std::vector<std::string> names = lm_arches();
      if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
      try {
        (void)nn::mixer_schedule(text, 1);
      } catch (const UserError&) {
        return "expected one of " + CLI::detail::join(names) +
               ", or a list of mamba1, mamba2, mamba3, attention, mlp, moe and "
               "mamba2_shared, got " +
               text;
      }
      return std::string();
    },
    "ARCH");

// Adds the options of a new model and returns them, so that --from can exclude them.
std::vector<CLI::Option*> add_shape(CLI::App& command, LmSettings& s) {
  const auto counted = [&](const char* name, std::int64_t& value, const char* what) {
    return command.add_option(name, value, what)
        ->check(in_range(std::int64_t{1}, std::int64_t{1} << 20))
        ->capture_default_str();
  };
  return {
      command
          .add_option("--arch", s.shape.arch,
                      "Architecture: mamba1, mamba2, mamba3, gpt, gpt2, hybrid, jamba, zamba, or a "
                      "list of layers such as 'mamba2 mlp attention moe', which repeats")
          ->check(kArch)
          ->option_text("ARCH (hybrid)"),
      counted("--layers", s.shape.layers,
              "Number of layers; each includes an MLP, except in mamba1 to mamba3 and lists"),
      counted("--width", s.shape.width, "Width of the model"),
      command.add_option("--state", s.shape.state, "State size per channel (mamba1) or per head")
          ->check(in_range(std::int64_t{1}, std::int64_t{1} << 16))
          ->option_text("INT (16; 64 in mamba2, mamba3)"),
      command
          .add_option_function<std::string>(
              "--out-norm",
              [&s](const std::string& name) { s.shape.out_norm = kOutNorms.at(name); },
              "Norm between scan and output projection of Mamba-3 (mamba3, zamba)")
          ->check(one_of_keys(kOutNorms))
          ->option_text("none|before_gate|after_gate (none)"),
      command
          .add_option_function<std::string>(
              "--decay", [&s](const std::string& name) { s.shape.decay = kDecays.at(name); },
              "Activation of the decays of Mamba-3 (mamba3, zamba)")
          ->check(one_of_keys(kDecays))
          ->option_text("softplus|heavy_tail (softplus)"),
      counted("--heads", s.shape.heads, "Number of attention heads"),
      command.add_option("--context", s.shape.context, "Context length of attention, in tokens")
          ->check(in_range(std::int64_t{1}, std::int64_t{1} << 20))
          ->option_text("INT (1024; gpt, gpt2: --length)"),
      command
          .add_option("--tokenizer", s.tokenizer,
                      "Tokenizer: characters, bytes or bpe:N (N tokens), trained on the text; or a "
                      "tokenizer.json")
          ->capture_default_str()};
}

// Adds the options of training and returns them, so that --resume can exclude them.
std::vector<CLI::Option*> add_training(CLI::App& command, LmSettings& s, CLI::Option*& final_lr) {
  lm::TrainingOptions& t = s.training;
  const auto counted = [&](const char* name, std::int64_t& value, const char* what) {
    return command.add_option(name, value, what)
        ->check(in_range(std::int64_t{1}, kMaxOfLm))
        ->capture_default_str();
  };
  std::vector<CLI::Option*> options = {
      counted("--steps", t.steps, "Number of optimizer steps"),
      counted("--batch", t.batch, "Windows per batch"),
      counted("--length", t.length, "Tokens per window"),
      command.add_option("--accumulate", t.accumulate, "Batches per optimizer step")
          ->check(in_range(1, 1'000'000))
          ->capture_default_str(),
      command.add_option("--lr", t.lr, "Peak learning rate")
          ->check(kPositive)
          ->capture_default_str(),
      final_lr = command.add_option("--final-lr", t.final_lr, "Final learning rate")
                     ->check(kFromZero)
                     ->option_text("FLOAT (a tenth of --lr)"),
      command.add_option("--warmup", t.warmup, "Warmup steps: the learning rate rises from 0")
          ->check(in_range(std::int64_t{0}, kMaxOfLm))
          ->capture_default_str(),
      command
          .add_option("--weight-decay", t.weight_decay, "Weight decay, applied to matrices only")
          ->check(kFromZero)
          ->capture_default_str(),
      command
          .add_option("--clip-grad-norm", t.clip_grad_norm,
                      "Maximum gradient norm; 0 disables clipping")
          ->check(kFromZero)
          ->capture_default_str(),
      command.add_option("--seed", t.seed, "Random seed for initial weights and data order")
          ->capture_default_str(),
      command.add_flag("--mixed-precision", t.mixed_precision, "Compute matrix products in f16"),
      command.add_flag("--pack", s.pack,
                       "Do not carry states or attention from one document to the next"),
      command.add_flag("--train-only-bc", t.train_only_bc,
                       "Train only the projections to B and C, and attention layers"),
      command
          .add_option("--holdout", s.holdout,
                      "Fraction at the end of each text held out for validation")
          ->check(in_range(0.0, 0.9))
          ->capture_default_str(),
      add_max_expansion(command, s.max_expansion, "Gzipped texts"),
      command.add_option("--eval-every", s.eval_every, "Steps between validations")
          ->check(in_range(std::int64_t{1}, kMaxOfLm))
          ->option_text("INT (a tenth of --steps)"),
      command.add_option("--eval-windows", s.eval_windows, "Windows per validation; 0: all")
          ->check(in_range(std::int64_t{0}, kMaxOfLm))
          ->capture_default_str(),
      command
          .add_option("--patience", s.patience,
                      "Stop after N validations without improvement; 0: never")
          ->check(in_range(0, 1'000'000))
          ->capture_default_str(),
      command.add_option("--prompt", s.prompt,
                         "Prompt of the samples generated after each validation"),
      counted("--sample-tokens", s.sample_tokens, "Tokens per sample"),
      command.add_flag_callback(
          "--no-samples", [&s] { s.samples = false; }, "Do not generate samples")};
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
      "Text files, optionally gzipped, folders of .txt files, or one token file (.safetensors)");
  CLI::Option* const resume = command.add_option("--resume", args->resume, "Run folder to resume");
  CLI::Option* const from =
      command.add_option("--from", args->settings.from,
                         "Start from the weights of this model, a run folder or model file");
  CLI::Option* const config = command.add_option(
      "--config", args->settings.config,
      "JSON file with the configuration of the model, in place of --arch and its options");
  std::vector<CLI::Option*> fixed = add_shape(command, args->settings);
  for (CLI::Option* const option : fixed) {
    option->excludes(from);
    if (option->get_name() != "--tokenizer") option->excludes(config);
  }
  config->excludes(from);
  fixed.push_back(config);
  CLI::Option* final_lr = nullptr;
  for (CLI::Option* const option : add_training(command, args->settings, final_lr))
    fixed.push_back(option);
  fixed.push_back(from);
  fixed.push_back(command.add_option("--out", args->out,
                                     "Run folder to create (default: a new folder, runs/NAME)"));
  fixed.push_back(command.add_flag("--force", args->force,
                                   "Replace an existing run; other files in the folder are kept"));
  for (CLI::Option* const option : fixed) option->excludes(resume);
  command.add_option("--stop-after", args->stop_after, "Stop after this step, as with Ctrl-C")
      ->check(in_range(std::int64_t{1}, kMaxOfLm));
  add_checkpoint_every(command, args->checkpoint_seconds);
  add_tensorboard(command, args->tensorboard);
  add_ui(command, args->ui);
  add_device_options(command, args->device);
  add_rank_options(command, args->ranks);
  command.footer(
      "Examples:\n"
      "  tg lm train shakespeare/ --arch hybrid --steps 1000\n"
      "  tg lm train book.txt --arch mamba2 --layers 6 --width 256 --tokenizer bpe:4000\n"
      "  tg lm train book.txt --arch 'mamba2 mlp attention mlp' --layers 12\n"
      "  tg lm train tokens.safetensors --tokenizer tokenizer.json\n"
      "  tg lm train mine.txt --from runs/shakespeare --train-only-bc --lr 1e-3 --steps 200\n"
      "  tg lm train --resume runs/shakespeare\n"
      "  mpirun -n 4 tg lm train shakespeare/\n"
      "Ctrl-C finishes the current step, saves the run and prints how to resume it.");
  command.callback([=, &action] {
    if (data->empty() && resume->empty()) throw CLI::RequiredError("TEXT or --resume");
    lm::TrainingOptions& t = args->settings.training;
    if (final_lr->empty()) t.final_lr = t.lr / 10;
    if (t.train_only_bc && from->empty())
      throw CLI::ValidationError("--train-only-bc",
                                 "requires --from, since it trains parts of a pretrained model");
    LmShape& shape = args->settings.shape;
    if (shape.out_norm != nn::OutNorm::kNone && !has_mamba3(shape))
      throw CLI::ValidationError("--out-norm",
                                 "applies only to Mamba-3 layers; " + shape.arch + " has none");
    if (shape.decay != nn::DecayActivation::kSoftplus && !has_mamba3(shape))
      throw CLI::ValidationError("--decay",
                                 "applies only to Mamba-3 layers; " + shape.arch + " has none");
    if (shape.context == 0) shape.context = shape.arch.starts_with("gpt") ? t.length : 1024;
    if (shape.arch == "gpt2" && shape.context < t.length) {
      throw CLI::ValidationError("--context",
                                 "expected at least --length " + std::to_string(t.length) +
                                     " for gpt2, which has an embedding for each position");
    }
    action = [args] { return lm_train(*args); };
  });
}

void add_lm_generate(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmGenerateArguments>();
  auto& o = args->options;
  CLI::App& command = *app.add_subcommand("generate", "Generate text with a language model");
  command.add_option("MODEL", args->model, "Run folder or model file")->required();
  command
      .add_option("--prompt", args->prompts,
                  "Prompt; may be repeated (default: the beginning of a text)")
      ->allow_extra_args(false);
  command.add_option("--count", args->count, "Texts per prompt")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--max-tokens", o.max_tokens, "Maximum number of tokens per text")
      ->check(in_range(std::int64_t{0}, kMaxOfLm))
      ->capture_default_str();
  command
      .add_option("--temperature", o.sampling.temperature,
                  "Sampling temperature; below 1 favors likely tokens, 0 is greedy")
      ->check(kFromZero)
      ->capture_default_str();
  command
      .add_option("--top-k", o.sampling.top_k, "Sample only from the K most likely tokens; 0: all")
      ->check(in_range(std::int64_t{0}, kMaxOfLm))
      ->capture_default_str();
  command
      .add_option("--top-p", o.sampling.top_p,
                  "Sample from the smallest set of tokens with at least this total probability")
      ->check(in_range(1e-12, 1.0))
      ->option_text("0..1 (1)");
  command
      .add_option("--min-p", o.sampling.min_p,
                  "Drop tokens less likely than this fraction of the most likely one")
      ->check(in_range(0.0, 1.0))
      ->option_text("0..1 (0)");
  command
      .add_option("--repetition-penalty", o.sampling.repetition_penalty,
                  "Above 1, tokens already in the text become less likely; 1: off")
      ->check(kPositive)
      ->capture_default_str();
  command.add_option("--seed", o.sampling.seed, "Random seed for sampling")->capture_default_str();
  command.add_option("--stop", o.stop, "Stop before this string; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", o.ignore_eos, "Continue after an end-of-text token");
  command.add_option("--batch", args->batch, "Texts generated at once")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 16))
      ->option_text("INT (all, at most 16)");
  command.add_flag("--json", args->json, "Print one JSON object per line, with the tokens");
  command.add_flag("--quiet", args->quiet, "Do not print the speed");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm generate runs/shakespeare --prompt 'KING.' --temperature 0.8 --top-p 0.95\n"
      "  tg lm generate model.safetensors --prompt 'Once' --count 4 --seed 7 --json");
  command.callback([=, &action] { action = [args] { return lm_generate(*args); }; });
}

void add_lm_eval(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmEvalArguments>();
  CLI::App& command =
      *app.add_subcommand("eval", "Evaluate a language model: loss and perplexity on a text");
  command.add_option("MODEL", args->model, "Run folder or model file")->required();
  command.add_option("--data", args->data,
                     "Texts, as for `tg lm train` (default: the validation text of the run)");
  command.add_flag("--eos", args->eos, "End each text of --data with eos, as in training");
  command.add_option("--chunk", args->options.chunk, "Tokens processed at once")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--batch", args->options.batch,
                  "Parts of the text scored in parallel, each without the text before it; faster")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 16))
      ->capture_default_str();
  command
      .add_option(
          "--context", args->options.context,
          "Reset the context every N tokens, a multiple of --chunk; 0: never, or at the context "
          "length of attention layers")
      ->check(in_range(std::int64_t{0}, kMaxOfLm))
      ->capture_default_str();
  command.add_flag("--json", args->json, "Print one JSON object");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm eval runs/shakespeare\n"
      "  tg lm eval runs/shakespeare --data other.txt --context 256 --json\n"
      "The state is carried through the whole text, or up to the context length of attention\n"
      "layers. The loss is in nats per token. Texts of --data are encoded as by transformers, "
      "with\n"
      "the bos token of the tokenizer's template.");
  command.callback([=, &action] { action = [args] { return lm_eval(*args); }; });
}

void add_lm_embed(CLI::App& app, LmAction& action) {
  static const std::map<std::string, nn::Pooling> kPoolings = {{"mean", nn::Pooling::kMean},
                                                               {"last", nn::Pooling::kLast}};
  auto args = std::make_shared<LmEmbedArguments>();
  CLI::App& command =
      *app.add_subcommand("embed", "Embed texts: the pooled hidden states of a language model");
  command.add_option("MODEL", args->model, "Run folder or model file")->required();
  CLI::Option* const text =
      command.add_option("--text", args->texts, "Text to embed; may be repeated")
          ->allow_extra_args(false);
  CLI::Option* const lines =
      command.add_option("--lines", args->lines, "File with one text per line");
  command
      .add_option_function<std::string>(
          "--pooling",
          [args](const std::string& name) { args->options.pooling = kPoolings.at(name); },
          "Mean over the tokens of a text, or its last token")
      ->check(one_of_keys(kPoolings))
      ->option_text("mean|last (mean)");
  command.add_option("--batch", args->options.batch, "Texts processed at once")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 16))
      ->capture_default_str();
  command.add_option("-o,--out", args->out, "FILE.npy to write (default: print JSON lines)");
  add_device_options(command, args->options.device);
  command.footer(
      "Examples:\n"
      "  tg lm embed runs/plays --text 'to be' --text 'or not to be'\n"
      "  tg lm embed runs/plays --lines sentences.txt --pooling last -o embeddings.npy");
  command.callback([=, &action] {
    if (text->empty() && lines->empty()) throw CLI::RequiredError("--text or --lines");
    if (!args->out.empty() && !args->out.ends_with(".npy"))
      throw CLI::ValidationError("--out", "expected a .npy file, got " + args->out);
    action = [args] { return lm_embed(*args); };
  });
}

void add_lm_import(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmImportArguments>();
  CLI::App& command = *app.add_subcommand("import", "Import a model from another library");
  command
      .add_option(
          "FROM", args->from,
          "Folder with config.json and safetensors of transformers or mamba-ssm (Mamba, "
          "Falcon-Mamba, Mamba-2, Llama, GPT-2, Bamba, Jamba, Zamba2), FILE.gguf of llama.cpp, or "
          "MBJS file")
      ->required();
  command.add_option("-o,--out", args->out, "File to write")->required();
  command.add_flag_callback(
      "--no-tokenizer", [args] { args->tokenizer = false; }, "Do not import the tokenizer");
  command
      .add_option("--context", args->context,
                  "Limit of the context length of attention layers; 0: that of the model")
      ->check(in_range(std::int64_t{0}, kMaxOfLm))
      ->capture_default_str();
  command.add_flag("--euler", args->euler,
                   "MBJS: the weights were trained with Euler discretization");
  command.footer(
      "Examples:\n"
      "  tg lm import mamba-130m-hf -o mamba.safetensors\n"
      "  tg lm generate mamba.safetensors --prompt 'Once upon a time'");
  command.callback([=, &action] { action = [args] { return lm_import(*args); }; });
}

void add_lm_export(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmExportArguments>();
  CLI::App& command = *app.add_subcommand("export", "Export a model for other libraries");
  command.add_option("MODEL", args->model, "Run folder or model file")->required();
  command
      .add_option(
          "-o,--out", args->out,
          "Folder to write for transformers, FILE.gguf for llama.cpp, or FILE.onnx, with states as "
          "inputs and outputs")
      ->required();
  command.add_flag_callback(
      "--no-tokenizer", [args] { args->tokenizer = false; }, "Do not write the tokenizer");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg lm export runs/plays -o plays-hf      # "
      "AutoModelForCausalLM.from_pretrained(\"plays-hf\")\n"
      "  tg lm export runs/plays -o plays.gguf    # llama-cli -m plays.gguf\n"
      "  tg lm export runs/plays -o plays.onnx");
  command.callback([=, &action] { action = [args] { return lm_export(*args); }; });
}

void add_lm_quantize(CLI::App& app, LmAction& action) {
  auto args = std::make_shared<LmQuantizeArguments>();
  auto type = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("quantize", "Quantize the weights of a model");
  command.add_option("MODEL", args->model, "Run folder or model file")->required();
  command.add_option("--type", *type, "Weight format of the embedding and the projections")
      ->required()
      ->check(one_of({"f32", "f16", "bf16", "int8", "int8_per_tensor", "int4"}))
      ->option_text("f32|f16|bf16|int8|int8_per_tensor|int4");
  command.add_option("-o,--out", args->out, "File to write")->required();
  command.footer(
      "Examples:\n"
      "  tg lm quantize runs/plays --type int8 -o plays-int8.safetensors\n"
      "  tg lm eval plays-int8.safetensors --data other.txt     # loss of the quantized model");
  command.callback([=, &action] {
    args->format = nn::parse_weight_format(*type);
    action = [args] { return lm_quantize(*args); };
  });
}

}  // namespace

void add_lm(CLI::App& app, std::function<int()>& action) {
  CLI::App& command = *app.add_subcommand(
      "lm", "Train, evaluate and run language models of Mamba and attention layers");
  command.require_subcommand(0, 1);
  add_lm_train(command, action);
  add_lm_generate(command, action);
  add_lm_eval(command, action);
  add_lm_embed(command, action);
  add_lm_import(command, action);
  add_lm_export(command, action);
  add_lm_quantize(command, action);
  command.callback([&command] {
    if (!command.get_subcommands().empty()) return;
    throw CLI::RequiredError("train, generate, eval, embed, import, export or quantize");
  });
  command.footer("See `tg lm COMMAND --help` for details and examples.");
}

}  // namespace tensorgrad::cli
