// SPDX-License-Identifier: MIT
// Draws the progress on a terminal, or prints plain lines.
#include "run/progress.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "os/process.h"

namespace tensorgrad::cli {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kRateSpan = 5;  // minimum time span of the rate, in seconds
constexpr std::int64_t kFirstSteps = 20;
constexpr int kWidestBar = 40;
constexpr int kNarrowestBar = 8;
constexpr std::string_view kBarColor = "\x1b[38;5;33m";
constexpr std::string_view kTrackColor = "\x1b[38;5;240m";
constexpr std::string_view kReset = "\x1b[0m";

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Returns a bar of `width` columns, of which the fraction `share` is filled.
std::string bar(double share, int width, const LineStyle& style) {
  const int full = static_cast<int>(std::floor(share * width + 1e-9));
  if (style.unicode) {
    const std::string done = repeated("\u2501", full);
    const std::string rest = repeated(style.color ? "\u2501" : "\u2500", width - full);
    if (!style.color) return done + rest;
    return fmt::format("{}{}{}{}{}", kBarColor, done, kTrackColor, rest, kReset);
  }
  std::string text = repeated("=", full);
  if (full > 0 && full < width) text.back() = '>';
  text += repeated(".", width - full);
  return style.color ? fmt::format("{}{}{}", kBarColor, text, kReset) : text;
}

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return fmt::format("loss {}", loss);
  if (loss != 0 && std::abs(loss) < 1e-3) return fmt::format("loss {:.3e}", loss);
  return std::abs(loss) < 1e5 ? fmt::format("loss {:.4f}", loss) : fmt::format("loss {:.4g}", loss);
}

// Prints, and ignores a closed terminal or a full disk: training must continue and save its state.
// main() reports the error at the end.
template <typename... Args>
void write_quietly(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)!std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace

TerminalTraits terminal_traits() {
  return {.name = std::string(environment("TERM")),
          .color = environment("NO_COLOR").empty(),
          .unicode = utf8_locale()};
}

std::string short_count(double value) {
  const auto shown = [](double x, std::string_view suffix) {
    return fmt::format("{:.{}f}{}", x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0, suffix);
  };
  if (!std::isfinite(value)) return "?";
  if (value >= 999.5e6) return shown(value / 1e9, "G");
  if (value >= 999.5e3) return shown(value / 1e6, "M");
  if (value >= 999.5) return shown(value / 1e3, "k");
  return fmt::format("{:.0f}", value);
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-:--";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string progress_line(const ProgressState& state, std::string_view unit,
                          const LineStyle& style) {
  const double share =
      state.total > 0
          ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0)
          : 0.0;
  const std::string epoch =
      state.epochs > 0 ? fmt::format("epoch {}/{}", state.epoch, state.epochs) : "";
  const std::string percent = fmt::format("{:3.0f}%", std::floor(share * 100));
  const std::string rate =
      state.rate > 0 ? fmt::format("{} {}/s", short_count(state.rate), unit) : "";
  const std::string left =
      state.seconds_left >= 0 ? fmt::format("{} left", clock_time(state.seconds_left)) : "";
  // Parts from left to right. If the line is too long, parts with smaller numbers are dropped
  // first.
  std::vector<std::pair<int, std::string>> parts = {{3, epoch},
                                                    {4, percent},
                                                    {5, state.loss ? loss_text(*state.loss) : ""},
                                                    {1, rate},
                                                    {2, left}};
  std::erase_if(parts, [](const auto& part) { return part.second.empty(); });
  const auto columns = [&] {
    int n = 0;
    for (const auto& part : parts) n += static_cast<int>(part.second.size()) + 2;
    return n - 2;
  };
  while (parts.size() > 1 && columns() > style.width) {
    parts.erase(std::min_element(parts.begin(), parts.end()));
  }
  const int room = std::min(style.width - columns() - 2, kWidestBar);
  std::string line;
  for (const auto& [order, text] : parts) {
    if (order == 4 && style.bar && room >= kNarrowestBar) {  // the bar precedes the percentage
      line += (line.empty() ? "" : "  ") + bar(share, room, style);
    }
    line += (line.empty() ? "" : "  ") + text;
  }
  if (columns() > style.width) line.resize(static_cast<std::size_t>(std::max(style.width, 0)));
  return line;
}

void ShownLoss::take(std::int64_t step, double loss) {
  mean_ = step < kFirstSteps || !mean_ ? loss : *mean_ * 0.95 + loss * 0.05;
}

Progress::Progress(std::int64_t total, int epochs, ProgressOptions options)
    : options_(std::move(options)) {
  const TerminalTraits traits = terminal_traits();
  terminal_ = options_.terminal.value_or(os::is_terminal(options_.stream) &&
                                         traits.name != "dumb" && !traits.name.empty());
  style_.color = options_.color.value_or(terminal_ && traits.color);
  style_.unicode = options_.unicode.value_or(terminal_ && traits.unicode);
  if (!options_.clock) options_.clock = steady_seconds;
  state_.total = total;
  state_.epochs = epochs;
  last_draw_ = terminal_ ? -1e9 : options_.clock();  // first plain line after one interval
}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // a failure to draw must not end the program
  }
}

// Queried for each line, since the terminal may be resized.
int Progress::width() const {
  if (options_.width) return *options_.width;
  const int shown = os::terminal_columns(options_.stream);
  if (shown > 0) return shown;
  const std::string columns(environment("COLUMNS"));
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width > 0 ? width : 80;
}

void Progress::update(int epoch, std::int64_t done, std::optional<double> loss) {
  if (finished_) return;
  resume();
  state_.epoch = epoch;
  state_.done = done;
  state_.loss = loss;
  const double now = options_.clock();
  sample(now);
  if (options_.take_line) return;
  if (now - last_draw_ < (terminal_ ? kRedrawSeconds : options_.plain_interval)) return;
  last_draw_ = now;
  draw();
}

// Measures the rate since `old_`, which is kRateSpan to 2 * kRateSpan seconds old.
void Progress::sample(double now) {
  if (!old_) {
    old_ = young_ = Sample{now, state_.done};
    return;
  }
  if (now - young_->seconds >= kRateSpan) {
    old_ = young_;
    young_ = Sample{now, state_.done};
  }
  const double seconds = now - old_->seconds;
  const auto units = static_cast<double>(state_.done - old_->done);
  if (seconds <= 0 || units <= 0) return;
  state_.rate = units / seconds;
  const auto left = static_cast<double>(std::max<std::int64_t>(state_.total - state_.done, 0));
  state_.seconds_left = left / state_.rate;
}

void Progress::pause() {
  if (paused_at_ < 0) paused_at_ = options_.clock();
}

void Progress::resume() {
  if (paused_at_ < 0) return;
  const double lost = options_.clock() - paused_at_;
  paused_at_ = -1;
  if (old_) old_->seconds += lost;
  if (young_) young_->seconds += lost;
}

void Progress::draw() {
  LineStyle style = style_;
  // Some terminals wrap if the last column is used.
  style.width = terminal_ ? width() - 1 : 1000;
  if (terminal_) {
    write_quietly(options_.stream, "\r{}\x1b[K", progress_line(state_, options_.unit, style));
    drawn_ = true;
  } else {
    style.bar = false;
    write_quietly(options_.stream, "{}\n", progress_line(state_, options_.unit, style));
  }
  std::fflush(options_.stream);
}

void Progress::erase() {
  if (!drawn_) return;
  write_quietly(options_.stream, "\r\x1b[K");
  drawn_ = false;
}

void Progress::print(std::string_view line) {
  if (options_.take_line) {
    options_.take_line(line);
    return;
  }
  erase();
  write_quietly(options_.stream, "{}\n", line);
  std::fflush(options_.stream);
  // A terminal redraws the bar at the next update; otherwise this line counts as a progress line.
  last_draw_ = terminal_ ? -1e9 : options_.clock();
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  erase();
  std::fflush(options_.stream);
}

}  // namespace tensorgrad::cli
