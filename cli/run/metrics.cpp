// SPDX-License-Identifier: MIT
// Writing and reading of metrics.jsonl. Numbers that are not finite are stored as null.
#include "run/metrics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "classify/fingerprint.h"
#include "run/run_folder.h"
#include "tensorgrad/error.h"
#include "ui/live_run.h"

namespace tensorgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : NAN;
}

std::int64_t step_of(const Json& line) {
  const auto found = line.find("step");
  return found != line.end() && found->is_number_unsigned() ? found->get<std::int64_t>() : -1;
}

// The last member of a line is the checksum of all that precedes it: KEY, 16 digits, END.
constexpr std::string_view kChecksumKey = R"(,"checksum":")";
constexpr std::string_view kChecksumEnd = "\"}";
constexpr std::size_t kLineDigits = 16;

std::string line_checksum(std::string_view text) {
  Fingerprint print;
  print.add(text.data(), text.size());
  return print.text();
}

// Returns the checksum of a line, or "" if it ends without one.
std::string_view checksum_in(std::string_view line) {
  constexpr std::size_t kLength = kChecksumKey.size() + kLineDigits + kChecksumEnd.size();
  if (line.size() <= kLength) return {};
  const std::string_view end = line.substr(line.size() - kLength);
  if (!end.starts_with(kChecksumKey) || !end.ends_with(kChecksumEnd)) return {};
  return end.substr(kChecksumKey.size(), kLineDigits);
}

// Verifies the checksums of lines in their order. Older versions of tg wrote lines without one, so
// a file may begin with such lines.
class ChecksumReader {
 public:
  explicit ChecksumReader(const std::string& path) : path_(path) {}

  void check(std::string_view line, std::int64_t number) {
    const std::string_view expected = checksum_in(line);
    if (expected.empty()) {
      if (seen_) fail(number, "has no checksum");
      return;
    }
    seen_ = true;
    const std::size_t length =
        line.size() - kChecksumKey.size() - kLineDigits - kChecksumEnd.size();
    const std::string got = line_checksum(line.substr(0, length));
    if (got != expected)
      fail(number, fmt::format("differs from its checksum: expected {}, got {}", expected, got));
  }

 private:
  [[noreturn]] void fail(std::int64_t number, std::string_view what) const {
    throw IoError(
        fmt::format("{}: line {}: {}; the line is damaged (remove it to continue without it)",
                    path_, number, what));
  }

  const std::string& path_;
  bool seen_ = false;
};

// Calls `take` with each complete line and its parsed value. Returns false if the last line is
// incomplete.
bool each_line(const std::string& path,
               const std::function<void(std::string_view, const Json&)>& take) {
  const std::vector<std::byte> bytes = read_file(path, std::uint64_t{4} << 30);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ChecksumReader checksums(path);
  for (std::int64_t number = 1;; ++number) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return rest.empty();
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("kind") || !line["kind"].is_string() ||
        step_of(line) < 0) {
      throw IoError(
          fmt::format("{}: line {}: expected an object with kind and step", path, number));
    }
    checksums.check(text, number);
    take(text, line);
  }
}

void take_line(const Json& line, History& history) {
  const std::string kind = line["kind"].get<std::string>();
  const std::int64_t step = step_of(line);
  const double epoch_number = number(line, "epoch");
  const int epoch = epoch_number >= 0 && epoch_number < 1e9 ? static_cast<int>(epoch_number) : 0;
  const double seconds = number(line, "seconds");
  if (kind == "step") {
    history.steps.push_back({step, epoch, number(line, "loss"), number(line, "lr"), seconds});
  } else if (kind == "epoch") {
    history.epochs.push_back({step, epoch, number(line, "train_loss"), number(line, "test_loss"),
                              number(line, "test_accuracy"), number(line, "images_per_second"),
                              seconds});
    history.pause = {};
  } else if (kind == "validation") {
    history.validations.push_back({step, number(line, "train_loss"), number(line, "loss"),
                                   number(line, "tokens_per_second"), seconds});
    history.pause = {};
  } else if (kind == "pause") {
    history.pause = {step, epoch, number(line, "loss_sum"), seconds};
  }
}

// Rounds to milliseconds.
double rounded(double seconds) { return std::round(seconds * 1e3) / 1e3; }

std::string line_of(const Json& line) {
  // A generated text may end within a character.
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  const std::string checksum = line_checksum(text);
  return text.append(kChecksumKey).append(checksum).append(kChecksumEnd);
}

double now_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void add_events(TensorBoardWriter& events, const StepLine& line, double time) {
  events.add_scalar("train/loss", line.loss, line.step, time);
  events.add_scalar("train/learning_rate", line.lr, line.step, time);
}

void add_events(TensorBoardWriter& events, const EpochLine& line, double time) {
  events.add_scalar("train/mean_loss", line.train_loss, line.step, time);
  events.add_scalar("test/loss", line.test_loss, line.step, time);
  events.add_scalar("test/accuracy", line.test_accuracy, line.step, time);
  events.add_scalar("speed/images_per_second", line.images_per_second, line.step, time);
}

void add_events(TensorBoardWriter& events, const ValidationLine& line, double time,
                bool validates) {
  events.add_scalar("train/mean_loss", line.train_loss, line.step, time);
  events.add_scalar("speed/tokens_per_second", line.tokens_per_second, line.step, time);
  if (!validates) return;
  events.add_scalar("validation/loss", line.loss, line.step, time);
  events.add_scalar("validation/perplexity", std::exp(line.loss), line.step, time);
}

}  // namespace

void Metrics::write_events(const std::string& folder, const History& history, std::int64_t steps,
                           bool validates) {
  const bool is_first = !has_event_files(folder);
  validates_ = validates;
  events_.emplace(folder, is_first ? std::nullopt : std::optional(steps + 1));
  if (!is_first) return;
  double seconds = history.pause.seconds;
  for (const EpochLine& line : history.epochs) seconds = std::max(seconds, line.seconds);
  for (const ValidationLine& line : history.validations) seconds = std::max(seconds, line.seconds);
  const double began = now_since_1970() - seconds;  // as if without interruption
  for (const StepLine& line : history.steps) add_events(*events_, line, began + line.seconds);
  for (const EpochLine& line : history.epochs) add_events(*events_, line, began + line.seconds);
  for (const ValidationLine& line : history.validations)
    add_events(*events_, line, began + line.seconds, validates_);
}

void Metrics::show_on(LiveRun& live) {
  each_line(path_, [&](std::string_view text, const Json& line) {
    live.add_line(line["kind"].get<std::string>(), std::string(text));
  });
  live_ = &live;
}

void Metrics::put(const Json& line) {
  const std::string text = line_of(line);
  log_->write(text);
  if (live_ != nullptr) live_->add_line(line["kind"].get<std::string>(), text);
}

void Metrics::write(const StepLine& line) {
  if (events_) add_events(*events_, line, now_since_1970());
  put({{"kind", "step"},
       {"step", line.step},
       {"epoch", line.epoch},
       {"loss", line.loss},
       {"lr", line.lr},
       {"seconds", rounded(line.seconds)}});
}

void Metrics::write(const EpochLine& line) {
  if (events_) add_events(*events_, line, now_since_1970());
  put({{"kind", "epoch"},
       {"step", line.step},
       {"epoch", line.epoch},
       {"train_loss", line.train_loss},
       {"test_loss", line.test_loss},
       {"test_accuracy", line.test_accuracy},
       {"images_per_second", std::round(line.images_per_second)},
       {"seconds", rounded(line.seconds)}});
}

void Metrics::write(const PauseLine& line) {
  put({{"kind", "pause"},
       {"step", line.step},
       {"epoch", line.epoch},
       {"loss_sum", line.loss_sum},
       {"seconds", line.seconds}});
}

void Metrics::write(const ValidationLine& line) {
  if (events_) add_events(*events_, line, now_since_1970(), validates_);
  put({{"kind", "validation"},
       {"step", line.step},
       {"train_loss", line.train_loss},
       {"loss", line.loss},
       {"tokens_per_second", std::round(line.tokens_per_second)},
       {"seconds", rounded(line.seconds)}});
}

void Metrics::write(const SampleLine& line) {
  put({{"kind", "sample"}, {"step", line.step}, {"prompt", line.prompt}, {"text", line.text}});
}

History read_history(const std::string& path) {
  History history;
  each_line(path, [&](std::string_view, const Json& line) { take_line(line, history); });
  return history;
}

History rewind_metrics(const std::string& path, std::int64_t step, bool complete) {
  History history;
  std::string kept;
  history.truncated = !each_line(path, [&](std::string_view text, const Json& line) {
    const bool pause = line["kind"] == "pause";
    if (step_of(line) > step) {
      if (!pause) ++history.dropped;
      return;
    }
    if (pause && (complete || step_of(line) < step)) return;
    take_line(line, history);
    kept += text;
    kept += '\n';
  });
  write_file_atomically(path, kept);
  return history;
}

void print_dropped(const History& history, std::int64_t step) {
  std::string text;
  if (history.dropped > 0) {
    text = fmt::format("dropped {} line{} of metrics.jsonl after step {}", history.dropped,
                       history.dropped == 1 ? "" : "s", step);
  }
  if (history.truncated) {
    text += text.empty() ? "dropped" : ", and";
    text += " the last line of metrics.jsonl, which was incomplete";
  }
  if (!text.empty()) fmt::print("{}\n", text);
}

}  // namespace tensorgrad::cli
