// SPDX-License-Identifier: MIT
#include "ui/screen_layout.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run/progress.h"
#include "text.h"
#include "ui/text_plot.h"

namespace tensorgrad::cli {
namespace {

using LineJson = nlohmann::json;

constexpr std::size_t kKeptSamples = 8;
constexpr int kNumbersColumns = 40;  // of the table beside the plot
constexpr int kNumbersRows = 12;
constexpr int kNameColumns = 17;  // of its names

double number_in(const LineJson& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : NAN;
}

std::string text_in(const LineJson& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

void add_point(Curve& curve, double x, double y) {
  curve.x.push_back(x);
  curve.y.push_back(y);
}

std::string count_text(std::int64_t count) { return fmt::format("{}", fmt::group_digits(count)); }

std::string short_value(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}

std::string rate_text(double rate) {
  return rate < 999.5 ? fmt::format("{:.3g}", rate) : short_count(rate);
}

std::string percent_text(double share) { return fmt::format("{:.2f} %", share * 100); }

std::string time_text(double microseconds) {
  return microseconds >= 1000 ? fmt::format("{:.4g} ms", microseconds / 1000)
                              : fmt::format("{:.4g} us", microseconds);
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

// Returns what the run does, as one word.
std::string state_text(const RunNow& now) {
  if (!now.how.empty()) return now.how;
  if (now.stopping) return "stopping";
  if (!now.activity.empty()) return now.activity;
  return now.pausing ? "pausing" : "training";
}

// Draws the parts of the screen, from top to bottom.
class ScreenPainter {
 public:
  ScreenPainter(Canvas& canvas, const RunFigures& figures, const ScreenOptions& options)
      : canvas_(canvas), figures_(figures), options_(options), now_(figures.shot.now) {}

  void draw() {
    head();
    const int bottom = canvas_.rows() - 1;  // row of the keys
    // The plot has a row for its legend, and all that the table needs.
    const int top_rows = std::max(kNumbersRows, (bottom - row_) * 3 / 5);
    numbers(canvas_.columns() - kNumbersColumns, row_);
    plot(canvas_.columns() - kNumbersColumns - 2, top_rows);
    row_ += top_rows;
    panel(bottom);
    keys(bottom);
  }

 private:
  [[nodiscard]] const RunHead& about() const { return *figures_.shot.head; }
  [[nodiscard]] int columns() const { return canvas_.columns(); }
  void text(int x, std::string_view text, Ink ink = Ink::kPlain) {
    canvas_.text(x, row_, text, ink, columns() - x);
  }

  void head() {
    const std::string state = state_text(now_);
    const int used = canvas_.text(0, 0, about().tool, Ink::kBold);
    canvas_.text(used + 2, 0, about().folder, Ink::kAccent,
                 columns() - used - 4 - static_cast<int>(state.size()));
    canvas_.text_before(columns(), 0, state, state == "failed" ? Ink::kError : Ink::kGood);
    row_ = 1;
    progress_bar();
    row_ = 2;
    // Low screens omit the last ones.
    const std::pair<const char*, const std::string*> lines[] = {
        {"device  ", &about().device}, {"model   ", &about().model}, {"data    ", &about().data}};
    const int shown = canvas_.rows() >= kMinRows + 6 ? 3 : 1;
    for (int i = 0; i < shown; ++i) {
      text(0, lines[i].first, Ink::kMuted);
      text(8, *lines[i].second);
      ++row_;
    }
    ++row_;
  }

  void progress_bar() {
    const double share =
        about().steps > 0
            ? std::clamp(static_cast<double>(now_.step) / static_cast<double>(about().steps), 0.,
                         1.)
            : 0;
    const std::string percent = fmt::format("{:3.0f} %", std::floor(share * 100));
    const int width = columns() - static_cast<int>(percent.size()) - 2;
    const int full = static_cast<int>(share * width);
    for (int x = 0; x < width; ++x) {
      const bool done = x < full;
      const char* const glyph = canvas_.unicode() ? (done ? "\u2501" : "\u2500") : done ? "=" : ".";
      canvas_.set(x, row_, glyph, done ? Ink::kAccent : Ink::kMuted);
    }
    canvas_.text_before(columns(), row_, percent);
  }

  void numbers(int x, int y) {
    const auto add = [&](const std::string& name, const std::string& value, Ink ink = Ink::kPlain) {
      canvas_.text(x, y, name, Ink::kMuted, kNameColumns - 1);
      canvas_.text(x + kNameColumns, y, value, ink, kNumbersColumns - kNameColumns);
      ++y;
    };
    add("Step", fmt::format("{} of {}", count_text(now_.step), count_text(about().steps)));
    if (about().epochs > 0) {
      add("Epoch", fmt::format("{} of {}", count_text(std::max<std::int64_t>(now_.epoch, 1)),
                               count_text(about().epochs)));
    }
    add("Training loss", now_.step > 0 ? short_value(now_.loss) : "-", curve_ink(0));
    if (!about().held_out.empty()) {
      const std::string name = capitalized(about().held_out);
      const bool none = figures_.held_out.x.empty();
      add(name + " loss",
          none ? "-"
               : fmt::format("{} at step {}", short_value(figures_.held_out.y.back()),
                             count_text(static_cast<std::int64_t>(figures_.held_out.x.back()))),
          curve_ink(1));
      if (figures_.accuracy) add(name + " accuracy", percent_text(*figures_.accuracy));
    }
    const auto units = static_cast<double>(std::max<std::int64_t>(about().units_per_step, 1));
    add(capitalized(about().unit) + "/s",
        now_.rate > 0
            ? fmt::format("{} ({} steps/s)", short_count(now_.rate), rate_text(now_.rate / units))
            : "-");
    add("Time left", clock_time(now_.left));
    add("Trained", clock_time(now_.seconds));
    add("Learning rate", short_value(now_.lr));
    add("Saved", now_.saved > 0 ? "step " + count_text(now_.saved) : "not yet");
    add("Memory", bytes_text(about().peak_bytes) + ", by the plan");
    add("Launches", fmt::format("{} a step", about().launches));
  }

  void plot(int width, int rows) {
    std::vector<Curve> curves = {figures_.training};
    Curve& training = curves.front();
    // metrics.jsonl has only some of the steps of a long run.
    if (static_cast<double>(now_.step) > (training.x.empty() ? 0 : training.x.back()))
      add_point(training, static_cast<double>(now_.step), now_.loss);
    if (!about().held_out.empty()) {
      curves.push_back(figures_.held_out);
      curves.back().name = about().held_out;
    }
    int x = canvas_.text(0, row_, "Loss", Ink::kBold);
    for (std::size_t i = 0; i < curves.size(); ++i) {
      x += 2;
      const bool marks = shows_marks(curves[i]);
      const char* const sample = canvas_.unicode() ? (marks ? "\u25cf" : "\u2501")
                                 : marks           ? "o"
                                                   : "-";
      canvas_.set(x, row_, sample, curve_ink(i));
      x += 2;
      x += canvas_.text(x, row_, curves[i].name, Ink::kMuted, width - x);
    }
    const std::string axis =
        (about().loss_unit.empty() ? "" : about().loss_unit + (options_.logarithmic ? ", " : "")) +
        (options_.logarithmic ? "logarithmic" : "");
    if (x + 2 + static_cast<int>(axis.size()) <= width)
      canvas_.text_before(width, row_, axis, Ink::kMuted);
    draw_curves(canvas_, {.x = 0, .y = row_ + 1, .columns = width, .rows = rows - 2}, curves,
                options_.logarithmic);
  }

  void panel(int bottom) {
    const std::vector<ScreenPanel> panels = panels_of(figures_);
    ScreenPanel selected = options_.panel;
    if (std::find(panels.begin(), panels.end(), selected) == panels.end()) selected = panels[0];
    int x = 0;
    for (const ScreenPanel each : panels) {
      const char* const name = each == ScreenPanel::kLaunches ? "Launches of a step"
                               : each == ScreenPanel::kLines  ? "Output"
                               : figures_.samples.empty()     ? "Predictions"
                                                              : "Samples";
      x += canvas_.text(x, row_, name, each == selected ? Ink::kBold : Ink::kMuted) + 3;
    }
    ++row_;
    if (selected == ScreenPanel::kLines) {
      lines(bottom);
    } else if (selected == ScreenPanel::kLaunches) {
      launches(bottom);
    } else if (figures_.samples.empty()) {
      predictions(bottom);
    } else {
      samples(bottom);
    }
  }

  // The last lines that fit.
  void lines(int bottom) {
    const std::size_t room = static_cast<std::size_t>(std::max(bottom - row_, 0));
    const std::vector<std::string>& all = figures_.printed;
    for (std::size_t i = all.size() - std::min(room, all.size()); i < all.size(); ++i, ++row_)
      text(0, all[i]);
  }

  void samples(int bottom) {
    for (auto each = figures_.samples.rbegin(); each != figures_.samples.rend(); ++each) {
      const std::string step = fmt::format("step {}  ", count_text(each->step));
      const int indent = static_cast<int>(step.size());
      if (row_ < bottom) text(0, step, Ink::kMuted);
      for (const std::string& line :
           wrapped(each->prompt + each->text, columns() - indent, canvas_.unicode())) {
        if (row_ >= bottom) return;
        text(indent, line);
        ++row_;
      }
    }
  }

  void predictions(int bottom) {
    const std::vector<RunPrediction>& all = *figures_.shot.predictions;
    const auto right = std::count_if(all.begin(), all.end(), [](const RunPrediction& each) {
      return each.predicted == each.actual;
    });
    text(0, fmt::format("{} of {} test images are right", right, all.size()), Ink::kMuted);
    ++row_;
    const int entry = 26;
    int x = 0;
    for (const RunPrediction& each : all) {
      if (x + entry > columns()) {
        x = 0;
        ++row_;
      }
      if (row_ >= bottom) return;
      const bool good = each.predicted == each.actual;
      const std::string percent = fmt::format("{:3.0f} %  ", each.probability * 100);
      const int used = canvas_.text(x, row_, percent, Ink::kMuted);
      canvas_.text(x + used, row_,
                   good ? each.predicted : fmt::format("{}, is {}", each.predicted, each.actual),
                   good ? Ink::kPlain : Ink::kError, entry - used - 1);
      x += entry;
    }
  }

  // The slowest ones that fit.
  void launches(int bottom) {
    const Profile& profile = *figures_.shot.profile;
    const double total = profile.microseconds();
    text(0,
         fmt::format("{} by {}, median of {} step{}; the slowest first", time_text(total),
                     profile.clock, profile.steps, profile.steps == 1 ? "" : "s"),
         Ink::kMuted);
    ++row_;
    std::vector<std::size_t> order(profile.launches.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return profile.launches[a].microseconds > profile.launches[b].microseconds;
    });
    for (const std::size_t i : order) {
      if (row_ >= bottom) return;
      const LaunchProfile& launch = profile.launches[i];
      canvas_.text_before(9, row_, time_text(launch.microseconds));
      canvas_.text_before(18, row_, percent_text(total > 0 ? launch.microseconds / total : 0),
                          Ink::kMuted);
      canvas_.text(20, row_, launch.kind, Ink::kPlain, 13);
      canvas_.text(34, row_, launch.domain, Ink::kPlain, 17);
      std::string ops;
      for (const std::string& op : launch.ops) ops += (ops.empty() ? "" : ", ") + op;
      text(52, ops, Ink::kMuted);
      ++row_;
    }
  }

  void keys(int row) {
    int x = 0;
    const auto key = [&](const char* name, const char* does) {
      if (x + 4 + static_cast<int>(std::string_view(does).size()) > columns()) return;
      x += canvas_.text(x, row, fmt::format(" {} ", name), Ink::kKey) + 1;
      x += canvas_.text(x, row, does, Ink::kMuted) + 2;
    };
    key("p", now_.pausing ? "resume" : "pause");
    key("s", "save");
    key("q", "stop");
    if (about().profiles) key("t", "time launches");
    key("l", options_.logarithmic ? "linear" : "logarithmic");
    if (panels_of(figures_).size() > 1) key("Tab", "next");
  }

  Canvas& canvas_;
  const RunFigures& figures_;
  const ScreenOptions& options_;
  const RunNow& now_;
  int row_ = 0;  // the first free one
};

}  // namespace

void RunFigures::take(RunSnapshot further) {
  if (further.whole) {
    for (Curve* const curve : {&training, &held_out}) {
      curve->x.clear();
      curve->y.clear();
    }
    samples.clear();
  }
  for (const RunLine& line : further.lines) {
    const LineJson json = LineJson::parse(line.json, nullptr, false);
    if (!json.is_object()) continue;
    const double step = number_in(json, "step");
    if (line.kind == "step") {
      add_point(training, step, number_in(json, "loss"));
    } else if (line.kind == "epoch") {
      add_point(held_out, step, number_in(json, "test_loss"));
      accuracy = number_in(json, "test_accuracy");
    } else if (line.kind == "validation") {
      add_point(held_out, step, number_in(json, "loss"));
    } else if (line.kind == "sample") {
      samples.push_back(
          {static_cast<std::int64_t>(step), text_in(json, "prompt"), text_in(json, "text")});
      if (samples.size() > kKeptSamples) samples.erase(samples.begin());
    }
  }
  further.lines.clear();
  shot = std::move(further);
}

std::vector<ScreenPanel> panels_of(const RunFigures& figures) {
  std::vector<ScreenPanel> panels;
  if (!figures.samples.empty() || figures.shot.predictions != nullptr)
    panels.push_back(ScreenPanel::kResults);
  if (figures.shot.profile != nullptr) panels.push_back(ScreenPanel::kLaunches);
  panels.push_back(ScreenPanel::kLines);
  return panels;
}

void draw_run(Canvas& canvas, const RunFigures& figures, const ScreenOptions& options) {
  if (canvas.columns() < kMinColumns || canvas.rows() < kMinRows) {
    const std::string lines[] = {
        fmt::format("The terminal is {}x{}.", canvas.columns(), canvas.rows()),
        fmt::format("Make it at least {}x{}.", kMinColumns, kMinRows),
        "The run continues: " + state_text(figures.shot.now)};
    for (int i = 0; i < 3; ++i) canvas.text(0, i, lines[i]);
    return;
  }
  ScreenPainter(canvas, figures, options).draw();
}

}  // namespace tensorgrad::cli
