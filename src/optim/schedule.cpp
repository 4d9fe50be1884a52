// SPDX-License-Identifier: MIT
// Learning-rate schedules as data.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <sstream>

#include "tensorgrad/optim.h"

namespace tensorgrad {
namespace {

void check_steps(const char* name, std::int64_t steps) {
  if (steps < 1) {
    throw UserError(std::string("schedule ") + name + ": at least one step expected, got " +
                    std::to_string(steps));
  }
}

constexpr std::size_t kLongestText = 1 << 14;

std::string hex(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

// The whole of `text` as a finite number.
bool number(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && std::isfinite(value);
}

}  // namespace

Schedule Schedule::linear(double from, double to, std::int64_t steps) {
  check_steps("linear", steps);
  Schedule s(from);
  s.kind_ = Kind::kLinear;
  s.b_ = to;
  s.steps_ = steps;
  return s;
}

Schedule Schedule::cosine(double from, double to, std::int64_t steps) {
  check_steps("cosine", steps);
  Schedule s = linear(from, to, steps);
  s.kind_ = Kind::kCosine;
  return s;
}

Schedule Schedule::warmup(std::int64_t steps, Schedule after) {
  check_steps("warmup", steps);
  Schedule s(0.0);
  s.kind_ = Kind::kWarmup;
  s.steps_ = steps;
  s.after_ = std::make_shared<const Schedule>(std::move(after));
  return s;
}

Schedule Schedule::step(double rate, std::int64_t every, double gamma) {
  check_steps("step", every);
  Schedule s(rate);
  s.kind_ = Kind::kStep;
  s.b_ = gamma;
  s.steps_ = every;
  return s;
}

Schedule Schedule::multi_step(double rate, std::vector<std::int64_t> milestones, double gamma) {
  if (!std::is_sorted(milestones.begin(), milestones.end())) {
    throw UserError("schedule multi_step: the milestones must rise");
  }
  Schedule s(rate);
  s.kind_ = Kind::kMultiStep;
  s.b_ = gamma;
  s.milestones_ = std::move(milestones);
  return s;
}

double Schedule::at(std::int64_t step) const {
  const auto t = static_cast<double>(step);
  const double part = steps_ > 0 ? std::min(t / static_cast<double>(steps_), 1.0) : 1.0;
  switch (kind_) {
    case Kind::kConstant: return a_;
    case Kind::kLinear: return a_ + (b_ - a_) * part;
    case Kind::kCosine: return b_ + 0.5 * (a_ - b_) * (1.0 + std::cos(std::numbers::pi * part));
    case Kind::kWarmup:
      if (step >= steps_) return after_->at(step - steps_);
      return after_->at(0) * (t + 1.0) / static_cast<double>(steps_ + 1);
    case Kind::kStep: return a_ * std::pow(b_, static_cast<double>(step / steps_));
    case Kind::kMultiStep: {
      const auto reached =
          std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
      return a_ * std::pow(b_, static_cast<double>(reached));
    }
  }
  return a_;
}

std::string Schedule::text() const {
  std::string text = std::to_string(static_cast<int>(kind_)) + " " + hex(a_) + " " + hex(b_) + " " +
                     std::to_string(steps_) + " " + std::to_string(milestones_.size());
  for (const std::int64_t milestone : milestones_) text += " " + std::to_string(milestone);
  return after_ ? text + " " + after_->text() : text;
}

// Warmups may follow one another, but not so many that a hostile text could exhaust the stack.
Schedule Schedule::parse(const std::string& text) {
  if (text.size() > kLongestText) throw IoError("schedule: the text is longer than any schedule's");
  const auto malformed = [&] { return IoError("schedule: malformed text '" + text + "'"); };
  std::istringstream in(text);
  int kind = 0;
  std::string a, b;
  std::size_t count = 0;
  Schedule s(0.0);
  in >> kind >> a >> b >> s.steps_ >> count;
  const bool good = in && kind >= 0 && kind <= static_cast<int>(Kind::kMultiStep) && count < 100000;
  const bool needs_steps =
      kind != static_cast<int>(Kind::kConstant) && kind != static_cast<int>(Kind::kMultiStep);
  if (!good || (needs_steps && s.steps_ < 1)) throw malformed();
  s.kind_ = static_cast<Kind>(kind);
  if (!number(a, s.a_) || !number(b, s.b_)) throw malformed();
  s.milestones_.resize(count);
  for (std::int64_t& milestone : s.milestones_) in >> milestone;
  if (!in) throw malformed();
  std::string rest;
  std::getline(in, rest, '\0');
  const bool more = rest.find_first_not_of(' ') != std::string::npos;
  if (more != (s.kind_ == Kind::kWarmup) ||
      !std::is_sorted(s.milestones_.begin(), s.milestones_.end())) {
    throw malformed();
  }
  if (s.kind_ == Kind::kWarmup) {
    s.after_ = std::make_shared<const Schedule>(parse(rest));
  }
  return s;
}

}  // namespace tensorgrad
