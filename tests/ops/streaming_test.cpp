// SPDX-License-Identifier: MIT
// Scans of state spaces one step at a time, by a function that is compiled once, whose states go
// into the next call: against loops over all steps in double.
#include <map>

#include "state_space_loops.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct NoModel {
  TG_MODULE()
};

// What a call takes: of each step [2, 1, ..], what is the same in all, and states, whose names are
// those of the results that replace them.
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
        forward_(compile_forward(NoModel{},
                                 [step](const NoModel&, const Inputs& in) { return step(in); },
                                 {.inputs = specs(inputs_),
                                  .device = {.kind = to_string(where), .allow_software = true}})) {}

  // `given`: of the inputs in their order, of all steps; states that are empty begin as zeros.
  // `state`: the one that is told in the end.
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
      const Outputs out = forward_.run(Feed(now.begin(), now.end()));
      for (const StepInput& input : inputs_)
        if (input.kind == StepInput::kState) now[input.name] = out.at(input.name).floats();
      y.push_back(out.at("y").floats());
    }
    for (std::size_t b = 0; b < kBatches; ++b) {
      for (const std::vector<float>& step : y) {
        const auto each = static_cast<std::ptrdiff_t>(step.size() / kBatches);
        const auto from = step.begin() + static_cast<std::ptrdiff_t>(b) * each;
        r.y.insert(r.y.end(), from, from + each);
      }
    }
    r.state.assign(now[state].begin(), now[state].end());
    return r;
  }

 private:
  static constexpr std::size_t kBatches = 2;

  static std::vector<InputSpec> specs(const std::vector<StepInput>& inputs) {
    std::vector<InputSpec> all;
    for (const StepInput& input : inputs) all.emplace_back(input.name, input.shape);
    return all;
  }

  // Step t of [2, L, ..].
  static void pick(const Values& all, std::int64_t t, std::int64_t length, std::vector<float>& to) {
    const std::size_t each = to.size() / kBatches;
    for (std::size_t b = 0; b < kBatches; ++b) {
      for (std::size_t i = 0; i < each; ++i) {
        const std::size_t step = b * static_cast<std::size_t>(length) + static_cast<std::size_t>(t);
        to[b * each + i] = static_cast<float>(all[step * each + i]);
      }
    }
  }

  std::vector<StepInput> inputs_;
  Forward forward_;
};

// `draw` gives what the loop and the steps take.
template <class G, std::size_t N>
void check_steps(Stepper& stepper, Drawn<G> (*draw)(Sketch&, std::int64_t),
                 Values G::* const (&parts)[N], const std::function<ScanResults(const G&)>& loop,
                 std::size_t more_states = 0) {
  for (const std::int64_t length : kScanLengths) {
    Sketch s(static_cast<std::uint64_t>(length));
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

using Named = std::map<std::string, Tensor>;

void check_selective_steps(Where where) {
  for (const auto discretization : {Discretization::kEuler, Discretization::kZeroOrderHold}) {
    Stepper stepper(where,
                    {{"u", StepInput::kOfStep, {2, 1, 5}},
                     {"delta", StepInput::kOfStep, {2, 1, 5}},
                     {"A", StepInput::kFixed, {5, 3}},
                     {"B", StepInput::kOfStep, {2, 1, 3}},
                     {"C", StepInput::kOfStep, {2, 1, 3}},
                     {"state", StepInput::kState, {2, 5, 3}},
                     {"D", StepInput::kFixed, {5}},
                     {"z", StepInput::kOfStep, {2, 1, 5}}},
                    [=](const Inputs& in) {
                      const SelectiveScan scan =
                          selective_scan(in["u"], in["delta"], in["A"], in["B"], in["C"],
                                         {.D = in["D"],
                                          .z = in["z"],
                                          .initial_state = in["state"],
                                          .discretization = discretization});
                      return Named{{"y", scan.y}, {"state", scan.state}};
                    });
    check_steps<SelectiveGiven>(
        stepper, draw_selective, kSelectiveParts,
        [=](const SelectiveGiven& g) { return one_by_one(g, discretization); });
  }
}

void check_ssd_steps(Where where) {
  Stepper stepper(where,
                  {{"x", StepInput::kOfStep, {2, 1, 4, 3}},
                   {"dt", StepInput::kOfStep, {2, 1, 4}},
                   {"A", StepInput::kFixed, {4}},
                   {"B", StepInput::kOfStep, {2, 1, 2, 5}},
                   {"C", StepInput::kOfStep, {2, 1, 2, 5}},
                   {"state", StepInput::kState, {2, 4, 3, 5}}},
                  [](const Inputs& in) {
                    const Ssd made = ssd(in["x"], in["dt"], in["A"], in["B"], in["C"],
                                         {.initial_state = in["state"]});
                    return Named{{"y", made.y}, {"state", made.state}};
                  });
  check_steps<SsdGiven>(stepper, draw_ssd, kSsdParts,
                        [](const SsdGiven& g) { return one_by_one(g); });
}

// From nothing: what comes before the first step is zeros.
void check_rotary_steps(Where where) {
  Stepper stepper(
      where,
      {{"x", StepInput::kOfStep, {2, 1, 2, 2, 3}},
       {"dt", StepInput::kOfStep, {2, 1, 2}},
       {"A", StepInput::kOfStep, {2, 1, 2}},
       {"lambda", StepInput::kOfStep, {2, 1, 2}},
       {"theta", StepInput::kOfStep, {2, 1, 2, 2}},
       {"B", StepInput::kOfStep, {2, 1, 2, 2, 4}},
       {"C", StepInput::kOfStep, {2, 1, 2, 2, 4}},
       {"state", StepInput::kState, {2, 2, 3, 4}},
       {"b before", StepInput::kState, {2, 2, 2, 4}},
       {"x before", StepInput::kState, {2, 2, 2, 3}},
       {"phase", StepInput::kState, {2, 2, 2}}},
      [](const Inputs& in) {
        const RotaryState before{in["state"], in["b before"], in["x before"], in["phase"]};
        const RotaryScan scan = rotary_scan(in["x"], in["dt"], in["A"], in["lambda"], in["theta"],
                                            in["B"], in["C"], {.initial_state = before});
        return Named{{"y", scan.y},
                     {"state", scan.state.state},
                     {"b before", scan.state.b},
                     {"x before", scan.state.x},
                     {"phase", scan.state.phase}};
      });
  check_steps<RotaryGiven>(
      stepper, draw_rotary, kRotaryParts, [](const RotaryGiven& g) { return one_by_one(g); }, 4);
}

TEST(SelectiveScan, step_by_step_is_that_of_a_loop_on_cpu) { check_selective_steps(Where::kCpu); }
TEST(SelectiveScan, step_by_step_is_that_of_a_loop_on_webgpu) {
  check_selective_steps(Where::kWebGpu);
}
TEST(Ssd, step_by_step_is_that_of_a_loop_on_cpu) { check_ssd_steps(Where::kCpu); }
TEST(Ssd, step_by_step_is_that_of_a_loop_on_webgpu) { check_ssd_steps(Where::kWebGpu); }
TEST(RotaryScan, step_by_step_is_that_of_a_loop_on_cpu) { check_rotary_steps(Where::kCpu); }
TEST(RotaryScan, step_by_step_is_that_of_a_loop_on_webgpu) { check_rotary_steps(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
