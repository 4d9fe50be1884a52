// SPDX-License-Identifier: MIT
// tg lm train: the training loop, the run folder and resuming. The metrics are written before the
// checkpoint. Metrics of steps after the checkpoint are dropped when the run is resumed. Several
// ranks work as in classify/train.cpp.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "classify/fingerprint.h"
#include "lm/commands.h"
#include "lm/text_corpus.h"
#include "os/process.h"
#include "plot/svg_plot.h"
#include "run/interrupt.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/ranks.h"
#include "run/run_folder.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"
#include "tensorgrad/train/monitor.h"
#include "text.h"
#include "ui/live_run.h"
#include "ui/view.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStepLines = 1000;  // target per run; at most twice as many

double lm_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the kinds of the layers: "mamba1 mlp attention mlp mamba1 mlp".
std::string layers_text(const nn::LanguageModelConfig& config) {
  std::string text;
  for (const nn::MixerKind kind : config.layers)
    text += (text.empty() ? "" : " ") + std::string(nn::to_string(kind));
  return text;
}

ProgressOptions token_progress(const Ranks& ranks, LiveRun* live) {
  ProgressOptions options;
  options.stream = stdout;
  options.unit = "tokens";
  if (ranks.several()) options.terminal = false;
  if (live != nullptr) options.take_line = live->line_taker();
  return options;
}

// Returns the score of the validation text, of which each rank scores its part. Throws Interrupted
// on all ranks if one has caught a signal.
lm::TextScore validate_together(lm::LanguageTrainer& trainer, std::int64_t windows,
                                const Ranks& ranks) {
  const lm::TextScore own = trainer.validate({.max_windows = windows,
                                              .before_batch = [&] { ranks.check_interrupted(); },
                                              .num_shards = ranks.size(),
                                              .shard = ranks.rank()});
  const std::vector<double> all = ranks.sum({own.nats, static_cast<double>(own.tokens)});
  return {all[0], static_cast<std::int64_t>(all[1])};
}

// Generates the samples of a run.
class Sampler {
 public:
  Sampler(const LmRun& run, lm::LanguageTrainer& trainer, const Tokenizer& tokenizer, Ranks& ranks)
      : run_(run), trainer_(trainer), tokenizer_(tokenizer), ranks_(ranks) {}

  // Throws Interrupted if a signal is caught. If the parameters are divided, all ranks make the
  // call, and all throw.
  SampleLine make() {
    if (!generator_) {
      lm::Decoder decoder(trainer_.trainer(), {.batch = 1, .max_chunk = 16});
      generator_.emplace(std::move(decoder), tokenizer_);
    }
    const std::string prompt =
        run_.settings.prompt.empty() && !tokenizer_.eos_id() ? "\n" : run_.settings.prompt;
    const lm::Completion made =
        generator_->generate(prompt, {.sampling = {.temperature = 0.8, .top_p = 0.95},
                                      .max_tokens = run_.settings.sample_tokens,
                                      .on_text = [this](const lm::GeneratedChunk&) {
                                        check_signals();
                                        return true;
                                      }});
    return {trainer_.steps(), prompt, made.text};
  }

 private:
  void check_signals() {
    if (ranks_.shards_params()) return ranks_.check_interrupted();
    ranks_.keep_waiting();
    check_interrupted();
  }

  const LmRun& run_;
  lm::LanguageTrainer& trainer_;
  const Tokenizer& tokenizer_;
  Ranks& ranks_;
  std::optional<lm::Generator> generator_;
};

// Carries out the orders of rank 0 until the run ends. Returns the exit code.
int lm_follow(const LmRun& run, lm::LanguageTrainer& trainer, const Tokenizer& tokenizer,
              Ranks& ranks) {
  Sampler sampler(run, trainer, tokenizer, ranks);
  for (;;) {
    const GivenOrder given = ranks.next_order();
    if (given.order == Order::kEnd) return static_cast<int>(given.number);
    if (given.order == Order::kSave) {
      trainer.save(name_of(RunFile::kCheckpoint));  // rank 0 writes the file
      continue;
    }
    if (given.order == Order::kParams) {
      (void)trainer.trainer().download_params();
      continue;
    }
    const std::int64_t done = trainer.steps();
    try {
      if (given.order == Order::kTrain) {
        trainer.step();
      } else if (given.order == Order::kSample) {
        sampler.make();
      } else {
        (void)validate_together(trainer, run.settings.eval_windows, ranks);
      }
    } catch (const UserError&) {  // after the step: rank 0 has the same error and reports it
      if (trainer.steps() == done) throw;
    } catch (const Interrupted&) {  // rank 0 ends the run
    }
  }
}

// Trains a run from the state of its trainer to its end, or until a signal. Used on rank 0 only.
class LmTraining {
 public:
  LmTraining(const LmRun& run, std::string folder, lm::LanguageTrainer& trainer,
             const Tokenizer& tokenizer, const History& history, const LmTrainArguments& arguments,
             LiveRun* live, Ranks& ranks)
      : run_(run),
        ranks_(ranks),
        folder_(std::move(folder)),
        trainer_(trainer),
        tokenizer_(tokenizer),
        stop_(run.settings.patience),
        metrics_(path(RunFile::kMetrics), LineLog::Open::kAppend),
        total_(run.settings.training.steps),
        last_step_(arguments.stop_after > 0 ? std::min(arguments.stop_after, total_) : total_),
        checkpoint_seconds_(arguments.checkpoint_seconds),
        progress_(total_ * trainer.tokens_per_step(), 0, token_progress(ranks, live)),
        sampler_(run, trainer, tokenizer, ranks),
        live_(live) {
    for (const ValidationLine& line : history.validations) {
      if (stop_.update(line.loss)) best_step_ = line.step;
      seconds_ = line.seconds;
    }
    if (history.pause.step > 0) {
      seconds_ = history.pause.seconds;
      loss_sum_ = history.pause.loss_sum;
    }
    saved_step_ = trainer.steps();
    if (!history.validations.empty()) {
      line_step_ = history.validations.back().step;
      line_began_ = history.validations.back().seconds;
    }
    if (arguments.tensorboard || (!arguments.resume.empty() && has_event_files(folder_)))
      metrics_.write_events(folder_, history, trainer.steps(), run.validation_tokens > 1);
    if (live_ == nullptr) return;
    metrics_.show_on(*live_);
    live_->saved(saved_step_);
    show_progress();
  }

  int go() {
    return live_ == nullptr ? train() : live_->watch([this] { return train(); });
  }

 private:
  int train() {
    try {
      if (look_is_due()) look();
      while (trainer_.steps() < last_step_ && interrupted() == 0 && !stop_.should_stop()) {
        if (live_ != nullptr) {
          live_->between_steps(
              progress_, [this] { checkpoint(); }, [this] { ranks_.keep_waiting(); });
        }
        if (interrupted() != 0) break;
        step();
        if (look_is_due()) {
          look();
        } else if (lm_now() - saved_at_ >= checkpoint_seconds_) {
          checkpoint();
        }
      }
      progress_.finish();
      if (trainer_.steps() == total_ || stop_.should_stop()) return complete();
    } catch (const Interrupted&) {  // in a validation; a resumed run does it again
    }
    return pause();
  }

  [[nodiscard]] std::string path(RunFile file) const { return run_path(folder_, file); }

  // Returns true after the steps that end in a validation, until it is done.
  [[nodiscard]] bool look_is_due() const {
    const std::int64_t done = trainer_.steps();
    return done > line_step_ && (done % run_.settings.eval_every == 0 || done == total_);
  }

  void step() {
    const double lr = trainer_.lr(), began = lm_now();
    const std::int64_t before = trainer_.steps();
    double loss = 0;
    try {
      loss = ranks_.lead(Order::kTrain, 1, [&] {
        if (live_ == nullptr || !live_->take_profile()) return trainer_.step();
        Profile profile;
        const double profiled = trainer_.profiled_step(profile);
        live_->profiled(std::move(profile));
        return profiled;
      });
    } catch (const UserError& error) {
      if (trainer_.steps() > before) ranks_.failed_on_all_ranks();
      progress_.finish();
      throw UserError(fmt::format("{}; {} holds the last good state, of step {}", error.message(),
                                  path(RunFile::kCheckpoint), saved_step_));
    }
    seconds_ += lm_now() - began;
    const std::int64_t done = trainer_.steps();
    loss_sum_ += loss;
    shown_.take(done, loss);
    if (done % std::max<std::int64_t>(1, total_ / kStepLines) == 0) {
      metrics_.write(StepLine{done, static_cast<int>(trainer_.epochs()), loss, lr, seconds_});
    }
    progress_.update(0, done * trainer_.tokens_per_step(), shown_.value());
    if (live_ != nullptr) show_progress();
  }

  void show_progress() {
    live_->progress(progress_.state(), trainer_.steps(), trainer_.lr(), seconds_);
  }

  // Validates, generates a sample, saves the model if it is the best one, and saves a checkpoint.
  // Throws Interrupted, before anything is written, if a signal is caught.
  void look() {
    progress_.pause();
    if (live_ != nullptr) live_->busy(run_.validation_tokens > 1 ? "validating" : "saving");
    const std::int64_t done = trainer_.steps();
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, done - line_step_));
    const double rate = steps * static_cast<double>(trainer_.tokens_per_step()) /
                        std::max(seconds_ - line_began_, 1e-9);
    ValidationLine line{done, loss_sum_ / steps, loss_sum_ / steps, rate, seconds_};
    const bool validates = run_.validation_tokens > 1;
    if (validates) line.loss = validation_loss();
    const std::optional<SampleLine> sample = make_sample();
    const bool best = stop_.update(line.loss);
    if (best) best_step_ = done;
    metrics_.write(line);
    if (sample) metrics_.write(*sample);
    if (best || !validates) save_model();
    save();
    progress_.print(fmt::format(
        "step {}/{}  loss {:.4f}{}  {} tokens/s  {:.0f} s", done, total_, line.train_loss,
        validates
            ? fmt::format("  validation loss {:.4f}{}", line.loss, best ? "" : " (not the best)")
            : "",
        short_count(rate), seconds_));
    if (sample) print_sample(*sample);
    loss_sum_ = 0;
    line_step_ = done;
    line_began_ = seconds_;
    progress_.resume();
    if (live_ != nullptr) live_->busy("");
  }

  double validation_loss() {
    return ranks_.lead(Order::kTest, 0, [&] {
      return validate_together(trainer_, run_.settings.eval_windows, ranks_).loss();
    });
  }

  void save() {
    metrics_.sync();
    ranks_.lead_save([&] { trainer_.save(path(RunFile::kCheckpoint)); });
    saved_step_ = trainer_.steps();
    saved_at_ = lm_now();
    if (live_ != nullptr) live_->saved(saved_step_);
  }

  void save_model() {
    lm::save_model(path(RunFile::kModel), ranks_.lead_with_params(Order::kParams, [this] {
      return trainer_.model(tokenizer_);
    }));
  }

  // Saves the state between two validations.
  void checkpoint() {
    const std::int64_t done = trainer_.steps();
    if (done == saved_step_) return;
    metrics_.write(PauseLine{done, static_cast<int>(trainer_.epochs()), loss_sum_, seconds_});
    save();
    if (run_.validation_tokens <= 1 || best_step_ == 0) save_model();
  }

  std::optional<SampleLine> make_sample() {
    if (!run_.settings.samples) return std::nullopt;
    return ranks_.lead_with_params(Order::kSample, [this] { return sampler_.make(); });
  }

  void print_sample(const SampleLine& sample) {
    const std::string shown = sample.prompt + sample.text;
    std::string lines = "    ";
    for (const char c : shown) {
      if (c == '\n') {
        progress_.print(printable(lines));
        lines = "    ";
      } else {
        lines += c;
      }
    }
    progress_.print(printable(lines));
  }

  int pause() {
    progress_.finish();
    checkpoint();
    const std::string text =
        fmt::format("stopped after step {} of {}; saved; resume with: tg lm train --resume {}",
                    trainer_.steps(), total_, shell_word(folder_));
    progress_.print(text);
    if (live_ != nullptr) live_->end("stopped", text);
    return interrupted_status();
  }

  int complete() {
    metrics_.close();
    const History history = rewind_metrics(path(RunFile::kMetrics), trainer_.steps(), true);
    Curve training{.name = "training", .x = {}, .y = {}, .smooth = true};
    Curve validation{.name = "validation", .x = {}, .y = {}, .marks = true};
    for (const StepLine& line : history.steps) {
      training.x.push_back(static_cast<double>(line.step));
      training.y.push_back(line.loss);
    }
    for (const ValidationLine& line : history.validations) {
      validation.x.push_back(static_cast<double>(line.step));
      validation.y.push_back(line.loss);
    }
    std::vector<Curve> curves = {training};
    if (run_.validation_tokens > 1) curves.push_back(validation);
    write_file_atomically(
        path(RunFile::kCurves),
        curves_svg(os::utf8_text(os::utf8_path(run_.data.front()).filename()) + ", " +
                       run_.settings.shape.arch,
                   {{.title = "loss (nats per token)", .x_label = "step", .curves = curves}}));
    std::string result;
    if (stop_.should_stop()) {
      result = fmt::format("stopped early: {} validations without improvement\n",
                           run_.settings.patience);
    }
    if (run_.validation_tokens > 1) {
      result += fmt::format("best validation loss {:.4f} at step {}, {:.0f} s of training\n",
                            stop_.best(), best_step_, seconds_);
    }
    if (live_ != nullptr) live_->end("done", result);
    fmt::print("{}", result);
    fmt::print(
        "{}: model.safetensors, checkpoint.safetensors, tokenizer.json, metrics.jsonl, "
        "run.json, curves.svg\n",
        printable(folder_));
    std::fflush(stdout);
    return 0;
  }

  const LmRun& run_;
  Ranks& ranks_;
  std::string folder_;
  lm::LanguageTrainer& trainer_;
  const Tokenizer& tokenizer_;
  EarlyStopping stop_;
  Metrics metrics_;
  std::int64_t total_, last_step_, saved_step_ = 0, best_step_ = 0;
  double checkpoint_seconds_, saved_at_ = lm_now();
  Progress progress_;
  ShownLoss shown_;
  Sampler sampler_;
  double seconds_ = 0;  // training time, without validation
  double loss_sum_ = 0, line_began_ = 0;
  std::int64_t line_step_ = 0;  // step of the last validation
  LiveRun* live_;               // null if there is none
};

RunHead run_head(const LmRun& run, lm::LanguageTrainer& trainer, const std::string& folder,
                 const Ranks& ranks) {
  const CompileReport report = trainer.trainer().report();
  return {.tool = "tg lm train",
          .folder = folder,
          .device = trainer.trainer().device(),
          .model = fmt::format("{}: {}; {} parameters", run.settings.shape.arch,
                               layers_text(run.config), trainer.parameters()),
          .data = fmt::format("{}: {} tokens for training, {} held out", run.data.front(),
                              run.train_tokens, run.validation_tokens),
          .unit = "tokens",
          .held_out = run.validation_tokens > 1 ? "validation" : "",
          .loss_unit = "nats per token",
          .units_per_step = trainer.tokens_per_step(),
          .steps = run.settings.training.steps,
          .launches = report.launches,
          .peak_bytes = report.peak_bytes,
          .profiles = !ranks.several()};
}

void print_lm_head(const LmRun& run, lm::LanguageTrainer& trainer, const TextCorpus& text,
                   const std::string& folder, const Ranks& ranks) {
  fmt::print("device  {}\n", trainer.trainer().device());
  fmt::print("{}", ranks_text(ranks, run.settings.training.batch, "windows"));
  const std::vector<nn::MixerKind>& layers = run.config.layers;
  const bool attends = std::any_of(layers.begin(), layers.end(), [](nn::MixerKind kind) {
    return kind == nn::MixerKind::kAttention || kind == nn::MixerKind::kMamba2Shared;
  });
  fmt::print("model   {}: {}; {} parameters{}\n", run.settings.shape.arch, layers_text(run.config),
             trainer.parameters(),
             !run.settings.training.train_only_bc ? ""
             : attends                            ? ", training only those of B, C and attention"
                                                  : ", training only those of B and C");
  fmt::print("{}", rank_memory_text(ranks, trainer.trainer().report()));
  fmt::print("text    {}: {} tokens for training, {} held out; vocabulary of {} tokens, {}\n",
             text.documents > 0
                 ? fmt::format("{} document{}", text.documents, text.documents == 1 ? "" : "s")
                 : printable(run.data.front()),
             run.train_tokens, run.validation_tokens, text.tokenizer.vocab_size(),
             text.tokenizer.kind());
  if (text.documents > 1 && !text.tokenizer.eos_id()) {
    fmt::print("        the tokenizer has no end-of-text token: documents are not separated\n");
  }
  fmt::print("run     {}\n", printable(folder));
  std::fflush(stdout);
}

std::unique_ptr<lm::LanguageTrainer> make_trainer(const LmRun& run, const TextCorpus& text,
                                                  const std::optional<lm::SavedModel>& from,
                                                  const DeviceOptions& device, const Ranks& ranks) {
  lm::TrainingOptions options = run.settings.training;
  options.device = device;
  options.batch = batch_per_rank(options.batch, ranks);
  options.distributed = ranks.communicator();
  options.shard_optimizer = ranks.shards();
  options.shard_parameters = ranks.shards_params();
  if (run.settings.pack) options.document_start = text.tokenizer.eos_id();
  if (from) {
    return std::make_unique<lm::LanguageTrainer>(*from, text.split.train, text.split.validation,
                                                 options);
  }
  return std::make_unique<lm::LanguageTrainer>(run.config, text.split.train, text.split.validation,
                                               options);
}

// Throws UserError if documents are to be packed, but the tokenizer cannot separate them.
void check_pack(const LmSettings& settings, const Tokenizer& tokenizer) {
  if (settings.pack && !tokenizer.eos_id())
    throw UserError("--pack: the tokenizer has no end-of-text token to separate documents");
}

// Throws UserError if the prompt cannot be encoded. Without this check the first sample would fail,
// after some training.
void check_prompt(const std::string& prompt, const Tokenizer& tokenizer) {
  try {
    (void)tokenizer.encode(prompt);
  } catch (const UserError& error) {
    throw UserError("--prompt: " + error.message());
  }
}

// Empty paths stay empty: text_files() throws for them.
std::vector<std::string> absolute_paths(std::vector<std::string> paths) {
  for (std::string& path : paths)
    if (!path.empty()) path = os::utf8_text(fs::absolute(os::utf8_path(path)).lexically_normal());
  return paths;
}

std::string hash_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  Fingerprint print;
  print.add(bytes.data(), bytes.size());
  return print.text();
}

// Throws on all ranks if their settings or their data differ.
void check_same_run(const LmRun& run, const Ranks& ranks) {
  if (ranks.several()) ranks.check_same(shared_settings(lm_run_json(run)));
}

// A new run with its text, and the model that it starts from, if any.
struct NewLmRun {
  LmRun run;
  std::optional<lm::SavedModel> from;
  std::optional<TextCorpus> text;
};

NewLmRun new_lm_run(const LmTrainArguments& arguments) {
  NewLmRun made;
  LmRun& run = made.run;
  run.settings = arguments.settings;
  run.data = absolute_paths(arguments.data);
  std::optional<lm::SavedModel>& from = made.from;
  std::optional<Tokenizer> given;
  if (!run.settings.from.empty()) {
    from = lm::quantize(lm::load_model(lm_model_path(run.settings.from)), nn::WeightFormat::kF32);
    given = from->tokenizer;
    if (!given) throw UserError(run.settings.from + ": the model has no tokenizer");
    run.settings.shape.arch = "loaded";
  }
  nn::LanguageModelConfig config;
  if (const std::string& path = run.settings.config; !path.empty()) {
    config = lm::config_from_json(read_text_file(path), path, true);
    run.settings.shape.arch = "configured";
  } else if (!from) {
    config = lm_config(run.settings.shape);
  }
  made.text = read_corpus(run.data, run.settings.tokenizer, given, text_options(run.settings));
  const TextCorpus& text = *made.text;
  if (run.settings.samples) check_prompt(run.settings.prompt, text.tokenizer);
  check_pack(run.settings, text.tokenizer);
  run.config = from ? from->config : config;
  if (!from) run.config.vocab_size = text.tokenizer.vocab_size();
  run.train_tokens = text.split.train.size();
  run.validation_tokens = text.split.validation.size();
  run.fingerprint = text.fingerprint;
  std::int64_t& every = run.settings.eval_every;
  if (every == 0) every = std::max<std::int64_t>(1, run.settings.training.steps / 10);
  return made;
}

int lm_start(const LmTrainArguments& arguments, Ranks& ranks) {
  std::unique_ptr<LiveRun> live;
  NewLmRun fresh;
  ranks.together([&] {
    if (ranks.first()) live = open_view(arguments.ui, ranks);
    fresh = new_lm_run(arguments);
    (void)batch_per_rank(fresh.run.settings.training.batch, ranks);
  });
  LmRun& run = fresh.run;
  const TextCorpus& text = *fresh.text;
  check_same_run(run, ranks);
  const DeviceOptions device = device_of_rank(ranks, arguments.device);
  const auto trainer = make_trainer(run, text, fresh.from, device, ranks);
  run.device = device_text(trainer->trainer().device());
  std::string folder;
  std::optional<NewRunFolder> made;
  catch_interrupts();
  ranks.on_first([&] {
    folder = arguments.out.empty() ? free_run_name(run.data.front()) : arguments.out;
    made.emplace(folder, arguments.force);
  });
  ranks.together([&] { trainer->save(path_in(made, RunFile::kCheckpoint)); });
  std::optional<lm::SavedModel> model;
  if (ranks.first() || ranks.shards_params()) model = trainer->model(text.tokenizer);
  ranks.on_first([&] {
    lm::save_model(made->path(RunFile::kModel), *model);
    text.tokenizer.save(made->path(RunFile::kTokenizer));
    write_file_atomically(made->path(RunFile::kTokenizerConfig),
                          lm::tokenizer_config_json(text.tokenizer));
    write_file_atomically(made->path(RunFile::kMetrics), std::string_view());
    for (const RunFile file : {RunFile::kTokenizer, RunFile::kTokenizerConfig})
      run.files[name_of(file)] = hash_of(made->path(file));
    write_file_atomically(made->path(RunFile::kRun), lm_run_json(run));
    made->publish();
    print_lm_head(run, *trainer, text, folder, ranks);
    if (live) live->open(run_head(run, *trainer, folder, ranks));
  });
  if (!ranks.first()) return lm_follow(run, *trainer, text.tokenizer, ranks);
  return ranks.lead_run([&] {
    return LmTraining(run, folder, *trainer, text.tokenizer, {}, arguments, live.get(), ranks).go();
  });
}

// Throws if the weights in the checkpoint do not match the configuration. A damaged run.json may
// describe a huge model; it must not be allocated before this check.
void check_checkpoint(const nn::LanguageModelConfig& config, const std::string& path) {
  std::map<std::string, HostTensor> weights;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    if (!name.starts_with("state/")) weights[name] = {f32, tensor.shape, {}};
  }
  lm::check_weights(config, weights, path);
}

int lm_resume(const LmTrainArguments& arguments, Ranks& ranks) {
  std::unique_ptr<LiveRun> live;
  const std::string& folder = arguments.resume;
  std::optional<FileLock> lock;
  ranks.on_first([&] {
    live = open_view(arguments.ui, ranks);
    lock.emplace(lock_run(folder));
  });
  const auto path = [&](RunFile file) { return run_path(folder, file); };
  LmRun run;
  std::optional<TextCorpus> text;
  ranks.together([&] {
    run = read_lm_run(folder);
    if (!arguments.data.empty()) run.data = absolute_paths(arguments.data);
    for (const auto& [name, hash] : run.files) {
      const std::string file = os::utf8_text(os::utf8_path(folder) / name);
      if (const std::string got = hash_of(file); got != hash) {
        throw IoError(fmt::format("{}: differs from its checksum in {}: expected {}, got {}", file,
                                  name_of(RunFile::kRun), hash, got));
      }
    }
    const Tokenizer tokenizer = Tokenizer::from_file(folder);
    text = read_corpus(run.data, run.settings.tokenizer, tokenizer, text_options(run.settings));
    if (text->fingerprint != run.fingerprint) {
      throw IoError(run.data.front() + ": the text differs from that of the run; cannot resume");
    }
    check_pack(run.settings, text->tokenizer);
    check_checkpoint(run.config, path(RunFile::kCheckpoint));
    (void)batch_per_rank(run.settings.training.batch, ranks);
  });
  check_same_run(run, ranks);
  const auto trainer =
      make_trainer(run, *text, std::nullopt, device_of_rank(ranks, arguments.device), ranks);
  ranks.together([&] {
    trainer->load(path(RunFile::kCheckpoint));
    if (trainer->steps() > run.settings.training.steps) {
      throw IoError(fmt::format("{}: the checkpoint has {} steps; expected at most {}", folder,
                                trainer->steps(), run.settings.training.steps));
    }
  });
  catch_interrupts();
  History history;
  ranks.on_first([&] {
    history = rewind_metrics(path(RunFile::kMetrics), trainer->steps());
    print_lm_head(run, *trainer, *text, folder, ranks);
    const std::int64_t done = trainer->steps(), all = run.settings.training.steps;
    fmt::print("resuming after step {} of {}\n", done, all);
    print_dropped(history, done);
    if (done == all) {
      fmt::print("the run is complete; to train its model further: tg lm train TEXT --from {}\n",
                 shell_word(folder));
    }
    if (live) live->open(run_head(run, *trainer, folder, ranks));
  });
  if (!ranks.first()) return lm_follow(run, *trainer, text->tokenizer, ranks);
  return ranks.lead_run([&] {
    return LmTraining(run, folder, *trainer, text->tokenizer, history, arguments, live.get(), ranks)
        .go();
  });
}

}  // namespace

int lm_train(const LmTrainArguments& arguments) {
  const bool resumes = !arguments.resume.empty();
  Ranks ranks = join_ranks(arguments.ranks, resumes ? "tg lm train --resume" : "tg lm train");
  return run_rank(
      ranks, [&] { return resumes ? lm_resume(arguments, ranks) : lm_start(arguments, ranks); });
}

}  // namespace tensorgrad::cli
