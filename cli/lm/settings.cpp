// SPDX-License-Identifier: MIT
#include "lm/settings.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "os/process.h"
#include "run/json_object.h"
#include "run/run_folder.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

using LmJson = nlohmann::ordered_json;
using nn::MixerKind;

constexpr const char* kLmFormat = "tensorgrad lm run";
constexpr std::int64_t kLmVersion = 1;
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 40;
constexpr std::uint64_t kMaxRunBytes = 64 << 20;

MixerKind mixer_at(const std::string& arch, std::int64_t layer, std::int64_t layers) {
  if (arch == "gpt") return MixerKind::kAttention;
  if (arch == "hybrid") return layer % 3 == 1 ? MixerKind::kAttention : MixerKind::kMamba1;
  return nn::mixer_schedule(arch, layers).at(static_cast<std::size_t>(layer));
}

// Returns the largest power of two up to 64 that divides `inner`.
std::int64_t head_dim_of(std::int64_t inner) {
  std::int64_t dim = 64;
  while (inner % dim != 0) dim /= 2;
  return dim;
}

LmJson settings_json(const LmSettings& s) {
  const lm::TrainingOptions& t = s.training;
  return {{"arch", s.shape.arch},
          {"tokenizer", s.tokenizer},
          {"from", s.from},
          {"batch", t.batch},
          {"length", t.length},
          {"steps", t.steps},
          {"accumulate", t.accumulate},
          {"lr", t.lr},
          {"final_lr", t.final_lr},
          {"warmup", t.warmup},
          {"weight_decay", t.weight_decay},
          {"beta1", t.beta1},
          {"beta2", t.beta2},
          {"clip_grad_norm", t.clip_grad_norm},
          {"train_only_bc", t.train_only_bc},
          {"mixed_precision", t.mixed_precision},
          {"pack", s.pack},
          {"seed", t.seed},
          {"holdout", s.holdout},
          {"max_expansion", s.max_expansion},
          {"eval_every", s.eval_every},
          {"eval_windows", s.eval_windows},
          {"patience", s.patience},
          {"samples", s.samples},
          {"prompt", s.prompt},
          {"sample_tokens", s.sample_tokens}};
}

LmSettings read_lm_settings(const JsonObject& in) {
  LmSettings s;
  s.shape.arch = in.text("arch");
  s.tokenizer = in.text("tokenizer");
  s.from = in.text("from");
  lm::TrainingOptions& t = s.training;
  t.batch = in.integer("batch", 1, kMaxCount);
  t.length = in.integer("length", 1, kMaxCount);
  t.steps = in.integer("steps", 1, kMaxSteps);
  t.accumulate = static_cast<int>(in.integer("accumulate", 1, 1'000'000));
  t.lr = in.number("lr", 0, 1e30);
  t.final_lr = in.number("final_lr", 0, 1e30);
  t.warmup = in.integer("warmup", 0, kMaxSteps);
  t.weight_decay = in.number("weight_decay", 0, 1e30);
  t.beta1 = in.number("beta1", 0, 1);
  t.beta2 = in.number("beta2", 0, 1);
  t.clip_grad_norm = in.number("clip_grad_norm", 0, 1e30);
  t.train_only_bc = in.boolean("train_only_bc");
  t.mixed_precision = in.boolean("mixed_precision");
  s.pack = in.boolean_or("pack", false);
  t.seed = static_cast<std::uint32_t>(in.integer("seed", 0, UINT32_MAX));
  s.holdout = in.number("holdout", 0, 1);
  s.max_expansion = in.number_or("max_expansion", 0, 1e30, kMaxExpansion);
  s.eval_every = in.integer("eval_every", 1, kMaxSteps);
  s.eval_windows = in.integer("eval_windows", 0, kMaxCount);
  s.patience = static_cast<int>(in.integer("patience", 0, 1'000'000));
  s.samples = in.boolean("samples");
  s.prompt = in.text("prompt");
  s.sample_tokens = in.integer("sample_tokens", 1, kMaxCount);
  return s;
}

}  // namespace

std::vector<std::string> lm_arches() {
  return {"mamba1", "mamba2", "mamba3", "gpt", "gpt2", "hybrid", "jamba", "zamba"};
}

nn::LanguageModelConfig lm_config(const LmShape& shape) {
  if (shape.arch == "gpt2")
    return nn::gpt2_config(0, shape.width, shape.layers, shape.heads, shape.context);
  nn::LanguageModelConfig config{.d_model = shape.width};
  const std::vector<std::string> names = lm_arches();
  const bool with_mlp = !shape.arch.starts_with("mamba") &&
                        std::find(names.begin(), names.end(), shape.arch) != names.end();
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    config.layers.push_back(mixer_at(shape.arch, i, shape.layers));
    if (with_mlp) config.layers.push_back(MixerKind::kMlp);
  }
  config.n_layer = static_cast<std::int64_t>(config.layers.size());
  config.heads = shape.heads;
  config.attention.max_length = config.shared.attention.max_length = shape.context;
  config.shared.heads = shape.heads;
  config.mamba.d_state = shape.state > 0 ? shape.state : 16;
  config.mamba2.d_state = config.mamba3.d_state = shape.state > 0 ? shape.state : 64;
  config.mamba2.head_dim = head_dim_of(config.mamba2.expand * shape.width);
  config.mamba3.head_dim = head_dim_of(config.mamba3.expand * shape.width);
  config.mamba3.out_norm = shape.out_norm;
  config.mamba3.decay = shape.decay;
  return config;
}

std::string lm_run_json(const LmRun& run) {
  LmJson out;
  out["format"] = kLmFormat;
  out["version"] = kLmVersion;
  out["tensorgrad"] = TENSORGRAD_VERSION_STRING;
  out["device"] = run.device;
  out["data"] = LmJson::array();
  for (const std::string& path : run.data) out["data"].push_back(path_json(path));
  out["settings"] = settings_json(run.settings);
  out["config"] = LmJson::parse(lm::to_json(run.config));
  out["train_tokens"] = run.train_tokens;
  out["validation_tokens"] = run.validation_tokens;
  out["fingerprint"] = run.fingerprint;
  out["files"] = run.files;
  return with_checksum(std::move(out));
}

LmRun read_lm_run(const std::string& folder) {
  const std::string path = run_path(folder, RunFile::kRun);
  std::error_code ignored;
  if (!std::filesystem::is_directory(os::utf8_path(folder), ignored)) {
    throw IoError(folder + ": not a run folder");
  }
  finish_replacement(folder);
  const LmJson json = read_json_file(path, kMaxRunBytes);
  const JsonObject in(json, path, "");
  in.check_run(kLmFormat, kLmVersion, "tg lm train");
  LmRun run;
  run.device = in.text_or("device", "");
  run.data = in.paths("data", 1'000'000);
  if (run.data.empty()) in.fail("data", "expected at least one path");
  run.settings = read_lm_settings(in.object("settings"));
  run.config = lm::config_from_json(in.at("config").dump(), path + ": config");
  run.train_tokens = in.integer("train_tokens", 0, INT64_MAX);
  run.validation_tokens = in.integer("validation_tokens", 0, INT64_MAX);
  run.fingerprint = in.text("fingerprint");
  run.files = in.texts_by_name("files");
  in.check_checksum();
  return run;
}

}  // namespace tensorgrad::cli
