// SPDX-License-Identifier: MIT
// Learning-rate schedules as data.
#include "tensorgrad/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>

#include "base/numbers.h"
#include "base/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Kind = Schedule::Kind;

void check_steps(const std::string& name, std::int64_t steps) {
  if (steps >= 1) return;
  throw UserError("schedule " + name + ": expected at least one step, got " +
                  std::to_string(steps));
}

void check_number(const std::string& name, const char* what, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw UserError("schedule " + name + ": " + what + ": expected a number of at least 0, got " +
                  format_text("%g", value));
}

void check_rising(const std::string& name, const std::vector<std::int64_t>& milestones,
                  std::int64_t least) {
  if (std::is_sorted(milestones.begin(), milestones.end()) &&
      (least == 0 || milestones.empty() || milestones[0] >= least)) {
    return;
  }
  throw UserError("schedule " + name + ": the milestones must be ascending" +
                  (least > 0 ? " and at least " + std::to_string(least) : ""));
}

constexpr std::size_t kLongestText = 1 << 14;

// Interpolates from `from` to `to` along half a cosine; `part` is in [0, 1].
double along_cosine(double from, double to, double part) {
  return to + 0.5 * (from - to) * (1.0 + std::cos(std::numbers::pi * part));
}

// Parses all of `text` as a number. Returns false if it is not a number.
bool number(const std::string& text, double& value) {
  std::string_view rest = text;
  const std::optional<double> read = take_float(rest);
  value = read.value_or(0);
  return read && rest.empty() && std::isfinite(value);
}
bool number(const std::string& text, std::int64_t& value) {
  char* end = nullptr;
  value = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && text.size() < 19 && end == text.c_str() + text.size();
}

}  // namespace

Schedule Schedule::ramp(Kind kind, const std::string& name, double from, double to,
                        std::int64_t steps) {
  check_steps(name, steps);
  check_number(name, "from", from);
  check_number(name, "to", to);
  Schedule s(kind);
  s.a_ = from;
  s.b_ = to;
  s.steps_ = steps;
  return s;
}

Schedule Schedule::decay(Kind kind, const std::string& name, double rate, double gamma) {
  check_number(name, "rate", rate);
  check_number(name, "gamma", gamma);
  Schedule s(kind);
  s.a_ = rate;
  s.b_ = gamma;
  return s;
}

Schedule Schedule::linear(double from, double to, std::int64_t steps) {
  return ramp(Kind::kLinear, "linear", from, to, steps);
}

Schedule Schedule::cosine(double from, double to, std::int64_t steps) {
  return ramp(Kind::kCosine, "cosine", from, to, steps);
}

Schedule Schedule::cosine_restarts(double from, double to, std::int64_t steps,
                                   std::int64_t factor) {
  Schedule s = ramp(Kind::kCosineRestarts, "cosine_restarts", from, to, steps);
  if (factor < 1) {
    throw UserError("schedule cosine_restarts: expected a factor of at least 1, got " +
                    std::to_string(factor));
  }
  s.milestones_ = {factor};
  return s;
}

Schedule Schedule::polynomial(double from, double to, std::int64_t steps, double power) {
  Schedule s = ramp(Kind::kPolynomial, "polynomial", from, to, steps);
  check_number("polynomial", "power", power);
  s.c_ = power;
  return s;
}

Schedule Schedule::exponential(double rate, double gamma) {
  return decay(Kind::kExponential, "exponential", rate, gamma);
}

Schedule Schedule::step(double rate, std::int64_t every, double gamma) {
  Schedule s = decay(Kind::kStep, "step", rate, gamma);
  check_steps("step", every);
  s.steps_ = every;
  return s;
}

Schedule Schedule::multi_step(double rate, std::vector<std::int64_t> milestones, double gamma) {
  Schedule s = decay(Kind::kMultiStep, "multi_step", rate, gamma);
  check_rising("multi_step", milestones, 0);
  s.milestones_ = std::move(milestones);
  return s;
}

Schedule Schedule::inverse_sqrt(double peak, std::int64_t warmup) {
  check_number("inverse_sqrt", "peak", peak);
  check_steps("inverse_sqrt: warmup", warmup);
  Schedule s(Kind::kInverseSqrt);
  s.a_ = peak;
  s.steps_ = warmup;
  return s;
}

Schedule Schedule::one_cycle(const OneCycle& cycle) {
  check_number("one_cycle", "peak", cycle.peak);
  check_steps("one_cycle", cycle.steps);
  if (!(cycle.div_factor > 0) || !(cycle.final_div_factor > 0)) {
    throw UserError("schedule one_cycle: div_factor and final_div_factor must be above 0");
  }
  Schedule s(Kind::kOneCycle);
  s.a_ = cycle.peak / cycle.div_factor;
  s.b_ = cycle.peak;
  s.c_ = s.a_ / cycle.final_div_factor;
  s.d_ = cycle.pct_start;
  s.steps_ = cycle.steps;
  s.milestones_ = {cycle.linear ? 1 : 0, cycle.three_phase ? 1 : 0};
  if (!s.valid()) {
    throw UserError("schedule one_cycle: pct_start: expected 0 to 1, got " +
                    std::to_string(cycle.pct_start));
  }
  return s;
}

Schedule Schedule::warmup(std::int64_t steps, Schedule after) {
  check_steps("warmup", steps);
  Schedule s = shift(steps, std::move(after));
  s.kind_ = Kind::kWarmup;
  return s;
}

Schedule Schedule::sequence(std::vector<Schedule> parts, std::vector<std::int64_t> milestones) {
  check_rising("sequence", milestones, 1);
  if (parts.size() != milestones.size() + 1) {
    throw UserError("schedule sequence: expected one milestone fewer than schedules, got " +
                    std::to_string(milestones.size()) + " for " + std::to_string(parts.size()) +
                    " schedules");
  }
  Schedule s(Kind::kSequence);
  s.parts_ = std::move(parts);
  s.milestones_ = std::move(milestones);
  return s;
}

Schedule Schedule::shift(std::int64_t by, Schedule schedule) {
  if (by < 0) throw UserError("schedule shift: expected at least 0, got " + std::to_string(by));
  Schedule s(Kind::kShift);
  s.steps_ = by;
  s.parts_ = {std::move(schedule)};
  return s;
}

double Schedule::at(std::int64_t step) const {
  const auto t = static_cast<double>(step), steps = static_cast<double>(steps_);
  const double part = steps_ > 0 ? std::min(t / steps, 1.0) : 1.0;
  switch (kind_) {
    case Kind::kConstant: return a_;
    case Kind::kLinear: return a_ + (b_ - a_) * part;
    case Kind::kCosine: return along_cosine(a_, b_, part);
    case Kind::kCosineRestarts: return restarts_at(step);
    case Kind::kPolynomial: return b_ + (a_ - b_) * std::pow(1.0 - part, c_);
    case Kind::kExponential: return a_ * std::pow(b_, t);
    case Kind::kWarmup:
      if (step >= steps_) return parts_[0].at(step - steps_);
      return parts_[0].at(0) * (t + 1.0) / (steps + 1.0);
    case Kind::kStep: {
      const std::int64_t falls = step / steps_;
      return a_ * std::pow(b_, static_cast<double>(falls));
    }
    case Kind::kMultiStep: {
      const auto reached =
          std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
      return a_ * std::pow(b_, static_cast<double>(reached));
    }
    case Kind::kOneCycle: return one_cycle_at(std::min(t, steps - 1.0));
    case Kind::kInverseSqrt: return a_ * std::min((t + 1.0) / steps, std::sqrt(steps / (t + 1.0)));
    case Kind::kSequence: return sequence_at(step);
    case Kind::kShift: return parts_[0].at(step + steps_);
  }
  return a_;
}

double Schedule::one_cycle_at(double t) const {
  const double last = static_cast<double>(steps_) - 1.0;
  const double up = d_ * static_cast<double>(steps_) - 1.0, down = 2.0 * up;
  const bool linear = milestones_[0] != 0, three_phase = milestones_[1] != 0;
  const auto between = [&](double from, double to, double begin, double end) {
    const double part = end > begin ? (t - begin) / (end - begin) : 1.0;
    return linear ? from + (to - from) * part : along_cosine(from, to, part);
  };
  if (t <= up) return between(a_, b_, 0, up);
  if (!three_phase) return between(b_, c_, up, last);
  return t <= down ? between(b_, a_, up, down) : between(a_, c_, down, last);
}

double Schedule::restarts_at(std::int64_t step) const {
  const std::int64_t factor = milestones_[0];
  std::int64_t length = steps_;
  if (factor == 1) step %= length;
  while (step >= length) {
    step -= length;
    if (length > std::numeric_limits<std::int64_t>::max() / factor) break;
    length *= factor;
  }
  return along_cosine(a_, b_, static_cast<double>(step) / static_cast<double>(length));
}

double Schedule::sequence_at(std::int64_t step) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
  const std::int64_t begin = next == milestones_.begin() ? 0 : *std::prev(next);
  return parts_[static_cast<std::size_t>(next - milestones_.begin())].at(step - begin);
}

// True if the invariants that at() requires hold.
bool Schedule::valid() const {
  const std::size_t parts = parts_.size(), count = milestones_.size();
  const bool rising = std::is_sorted(milestones_.begin(), milestones_.end());
  switch (kind_) {
    case Kind::kConstant:
    case Kind::kExponential: return parts == 0;
    case Kind::kMultiStep: return parts == 0 && rising;
    case Kind::kLinear:
    case Kind::kCosine:
    case Kind::kPolynomial:
    case Kind::kStep:
    case Kind::kInverseSqrt: return parts == 0 && steps_ >= 1;
    case Kind::kCosineRestarts:
      return parts == 0 && steps_ >= 1 && count == 1 && milestones_[0] >= 1;
    case Kind::kOneCycle: return parts == 0 && steps_ >= 1 && count == 2 && d_ >= 0 && d_ <= 1;
    case Kind::kWarmup: return parts == 1 && steps_ >= 1;
    case Kind::kShift: return parts == 1 && steps_ >= 0;
    case Kind::kSequence: return parts == count + 1 && rising && (count == 0 || milestones_[0] > 0);
  }
  return false;
}

// Writes
//   kind a b steps count milestones...,
// followed by the schedule after warmup; kinds from one_cycle on write
//   kind a b c d steps count milestones... count schedules...
std::string Schedule::text() const {
  const bool longer = kind_ >= Kind::kOneCycle;
  std::string text =
      std::to_string(static_cast<int>(kind_)) + " " + hex_float(a_) + " " + hex_float(b_) + " ";
  if (longer) text += hex_float(c_) + " " + hex_float(d_) + " ";
  text += std::to_string(steps_) + " " + std::to_string(milestones_.size());
  for (const std::int64_t milestone : milestones_) text += " " + std::to_string(milestone);
  if (longer) text += " " + std::to_string(parts_.size());
  for (const Schedule& part : parts_) text += " " + part.text();
  return text;
}

Schedule Schedule::parse(const std::string& text) {
  if (text.size() > kLongestText) throw IoError("schedule: the text is too long");
  const std::vector<std::string> words = split_words(text);
  std::size_t at = 0;
  try {
    const Schedule schedule = parse(words, at);
    if (at == words.size()) return schedule;
  } catch (const std::out_of_range&) {  // missing or wrong words; reported below
  }
  throw IoError("schedule: malformed text '" + text + "'");
}

// Schedules can be nested; the length of the text limits the depth.
Schedule Schedule::parse(const std::vector<std::string>& words, std::size_t& at) {
  const auto read = [&](auto& value) {
    if (!number(words.at(at++), value)) throw std::out_of_range("schedule");
  };
  const auto count = [&](std::size_t most) {
    std::int64_t value = 0;
    read(value);
    if (value < 0 || value > static_cast<std::int64_t>(most)) throw std::out_of_range("schedule");
    return static_cast<std::size_t>(value);
  };
  const std::size_t kind = count(static_cast<std::size_t>(Kind::kShift));
  Schedule s(static_cast<Kind>(kind));
  const bool longer = s.kind_ >= Kind::kOneCycle;
  read(s.a_);
  read(s.b_);
  if (longer) {
    read(s.c_);
    read(s.d_);
  }
  read(s.steps_);
  s.milestones_.resize(count(words.size()));
  for (std::int64_t& milestone : s.milestones_) read(milestone);
  const std::size_t parts = longer ? count(words.size()) : s.kind_ == Kind::kWarmup ? 1 : 0;
  for (std::size_t i = 0; i < parts; ++i) s.parts_.push_back(parse(words, at));
  if (!s.valid()) throw std::out_of_range("schedule");
  return s;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
