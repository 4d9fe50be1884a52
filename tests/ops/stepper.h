// SPDX-License-Identifier: MIT
// Runs a sequence one step at a time with a function that is compiled once and whose states are
// inputs of the next call.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "state_space_loops.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

struct NoModel {
  TG_MODULE()
};

// Inputs of a call: per-step inputs [batch, 1, ..], inputs that are fixed for all steps, and
// states. A state has the name of the result that replaces it.
struct StepInput {
  const char* name;
  enum { kOfStep, kFixed, kState } kind;
  Shape shape;
};

class Stepper {
 public:
  template <class Function>
  Stepper(Where where, std::vector<StepInput> inputs, Function step)
      : inputs_(std::move(inputs)),
        forward_(compile_function(NoModel{},
                                  [step](const NoModel&, const Inputs& in) { return step(in); },
                                  {.inputs = specs(inputs_),
                                   .device = {.kind = to_string(where), .allow_software = true}})) {
  }

  // Runs all steps. `given` holds the inputs in order, over all steps; empty states start as zeros.
  // `state` names the state to return.
  ScanResults run(std::int64_t length, const std::vector<Values>& given, const std::string& state) {
    std::map<std::string, std::vector<float>> now;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::vector<float>& numbers = now[inputs_[i].name];
      numbers.assign(given[i].begin(), given[i].end());
      numbers.resize(static_cast<std::size_t>(numel(inputs_[i].shape)));
    }
    ScanResults r;
    std::vector<std::vector<float>> y;
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i].kind == StepInput::kOfStep) pick(given[i], t, length, now[inputs_[i].name]);
      const NamedTensors out = forward_.run(now);
      for (const StepInput& input : inputs_)
        if (input.kind == StepInput::kState) now[input.name] = out.at(input.name).floats();
      y.push_back(out.at("y").floats());
    }
    for (std::size_t b = 0; b < batches(); ++b) {
      for (const std::vector<float>& step : y) {
        const auto each = static_cast<std::ptrdiff_t>(step.size() / batches());
        const auto from = step.begin() + static_cast<std::ptrdiff_t>(b) * each;
        r.y.insert(r.y.end(), from, from + each);
      }
    }
    r.state.assign(now[state].begin(), now[state].end());
    return r;
  }

 private:
  [[nodiscard]] std::size_t batches() const {
    return static_cast<std::size_t>(inputs_.front().shape.front());
  }
  static std::vector<InputSpec> specs(const std::vector<StepInput>& inputs) {
    std::vector<InputSpec> all;
    for (const StepInput& input : inputs) all.emplace_back(input.name, input.shape);
    return all;
  }

  // Copies step t of [batch, L, ..].
  void pick(const Values& all, std::int64_t t, std::int64_t length, std::vector<float>& to) const {
    const std::size_t each = to.size() / batches();
    for (std::size_t b = 0; b < batches(); ++b) {
      for (std::size_t i = 0; i < each; ++i) {
        const std::size_t step = b * static_cast<std::size_t>(length) + static_cast<std::size_t>(t);
        to[b * each + i] = static_cast<float>(all[step * each + i]);
      }
    }
  }

  std::vector<StepInput> inputs_;
  CompiledFunction forward_;
};

// Compares the steps with `loop`. `draw` returns the inputs of both.
template <class G, std::size_t N>
void check_steps(Stepper& stepper, Drawn<G> (*draw)(GraphBuilder&, std::int64_t),
                 Values G::* const (&parts)[N], const std::function<ScanResults(const G&)>& loop,
                 std::size_t more_states = 0) {
  for (const std::int64_t length : kScanLengths) {
    GraphBuilder s(static_cast<std::uint64_t>(length));
    const G given = draw(s, length).given;
    std::vector<Values> all;
    for (const auto part : parts) all.push_back(given.*part);
    all.resize(N + more_states);
    const ScanResults got = stepper.run(length, all, "state"), want = loop(given);
    const std::string what = std::to_string(length) + " steps, ";
    expect_near(got.y, want.y, 3e-5, what + "y");
    expect_near(got.state, want.state, 3e-5, what + "state");
  }
}

}  // namespace tensorgrad::testing
