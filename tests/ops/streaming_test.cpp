// SPDX-License-Identifier: MIT
// State space scans one step at a time, with a function that is compiled once and whose states are
// inputs of the next call, against loops over all steps in double.
#include "stepper.h"

namespace tensorgrad::testing {
namespace {

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

// All states start as zeros.
void check_rotary_steps(Where where, std::int64_t ranks) {
  const Shape b = {2, 1, 2, ranks, 4};
  Stepper stepper(
      where,
      {{"x", StepInput::kOfStep, {2, 1, 2, ranks, 3}},
       {"dt", StepInput::kOfStep, {2, 1, 2}},
       {"A", StepInput::kOfStep, {2, 1, 2}},
       {"lambda", StepInput::kOfStep, {2, 1, 2}},
       {"theta", StepInput::kOfStep, {2, 1, 2, 2}},
       {"B", StepInput::kOfStep, b},
       {"C", StepInput::kOfStep, b},
       {"state", StepInput::kState, {2, 2, 3, 4}},
       {"b before", StepInput::kState, {2, 2, ranks, 4}},
       {"x before", StepInput::kState, {2, 2, ranks, 3}},
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
      stepper, ranks == 1 ? draw_rotary_of_one_rank : draw_rotary, kRotaryParts,
      [](const RotaryGiven& g) { return one_by_one(g); }, 4);
}

TEST(SelectiveScan, steps_match_a_loop_on_cpu) { check_selective_steps(Where::kCpu); }
TEST(SelectiveScan, steps_match_a_loop_on_webgpu) { check_selective_steps(Where::kWebGpu); }
TEST(Ssd, steps_match_a_loop_on_cpu) { check_ssd_steps(Where::kCpu); }
TEST(Ssd, steps_match_a_loop_on_webgpu) { check_ssd_steps(Where::kWebGpu); }
TEST(RotaryScan, steps_match_a_loop_on_cpu) {
  for (const std::int64_t ranks : {1, 2}) check_rotary_steps(Where::kCpu, ranks);
}
TEST(RotaryScan, steps_match_a_loop_on_webgpu) {
  for (const std::int64_t ranks : {1, 2}) check_rotary_steps(Where::kWebGpu, ranks);
}

}  // namespace
}  // namespace tensorgrad::testing
