// SPDX-License-Identifier: MIT
// Tables that web/generate.py generates from the public headers.
#include "registry.h"

namespace tensorgrad::web {
namespace {

constexpr std::pair<std::string_view, Op> kOps[] = {
#include "ops.inc"
};

constexpr std::pair<std::string_view, MakeOptimizer> kOptimizers[] = {
#include "optimizers.inc"
};

constexpr std::pair<std::string_view, MakeSchedule> kSchedules[] = {
#include "schedules.inc"
};

namespace initial {
using namespace tensorgrad::init;  // NOLINT(google-build-using-namespace): for default values
constexpr std::pair<std::string_view, MakeInit> kInits[] = {
#include "inits.inc"
};
}  // namespace initial

}  // namespace

OpTable generated_ops() { return kOps; }
MakerTable<MakeOptimizer> optimizer_makers() { return kOptimizers; }
MakerTable<MakeSchedule> schedule_makers() { return kSchedules; }
MakerTable<MakeInit> init_makers() { return initial::kInits; }

}  // namespace tensorgrad::web
