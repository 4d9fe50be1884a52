// SPDX-License-Identifier: MIT
// Finds the tests on the path from a store's value to the previous contents of its destination.
// Their programs are those of the launch, with views and coordinates shortened to one element per
// run.
#include "backend/cpu/unchanged_stores.h"

#include <numeric>
#include <string_view>

namespace tensorgrad::cpu {
namespace {

constexpr std::size_t kMaxTests = 4;
// For shorter runs, testing costs about as much as writing.
constexpr std::int64_t kMinRun = 8;

class Finder {
 public:
  explicit Finder(const Prepare& prepare)
      : prepare_(prepare), program_(prepare.launch.body), stores_(prepare.launch.stores) {}

  // Returns the tests, which must be the same for all stores; empty if there are none.
  std::vector<UnchangedTest> tests() const {
    std::vector<UnchangedTest> all;
    for (const Store& store : stores_) {
      std::vector<UnchangedTest> found;
      if (store.ring_word >= 0 || !leads_back(store.value, store, found)) return {};
      if (!all.empty() && found != all) return {};
      all = std::move(found);
    }
    return all;
  }

  // Returns the number of consecutive elements for which a value is the same; 0: all elements.
  [[nodiscard]] std::int64_t run_of(int value) const {
    std::vector<std::int64_t> runs;  // per instruction; operands come first
    for (int i = 0; i <= value; ++i) runs.push_back(run_of(instr(i), runs));
    return runs.back();
  }

  // Returns the launch's program with one element per run. Instructions that do not allow this are
  // unchanged.
  [[nodiscard]] ScalarProgram shortened(std::int64_t run) const {
    ScalarProgram made = program_;
    for (Instr& in : made.instrs) {
      if (in.kind == InstrKind::kCoord && in.divisor % run == 0) in.divisor /= run;
      const View* view = in.kind == InstrKind::kLoad ? view_of(in) : nullptr;
      if (view == nullptr || still(*view) % run != 0) continue;
      View& shorter = made.accesses[static_cast<std::size_t>(in.index)].map.views[0];
      shorter = *view;
      while (!shorter.shape.empty() && shorter.strides.back() == 0) {
        shorter.shape.pop_back();
        shorter.strides.pop_back();
      }
      shorter.shape.push_back(still(*view) / run);
      shorter.strides.push_back(0);
    }
    return made;
  }

 private:
  [[nodiscard]] const Instr& instr(int i) const {
    return program_.instrs[static_cast<std::size_t>(i)];
  }

  [[nodiscard]] std::int64_t run_of(const Instr& in, const std::vector<std::int64_t>& runs) const {
    switch (in.kind) {
      case InstrKind::kConst:
      case InstrKind::kRuntimeScalar: return 0;
      case InstrKind::kCoord: return in.divisor;
      case InstrKind::kLoad: {
        const View* view = view_of(in);
        return view == nullptr ? 1 : still(*view);
      }
      case InstrKind::kOp: {
        std::int64_t run = 0;
        for (const int operand : in.operands)
          run = std::gcd(run, runs[static_cast<std::size_t>(operand)]);
        return run;
      }
      default: return 1;
    }
  }

  // Returns the view of a load through a single unmasked view, otherwise null.
  [[nodiscard]] const View* view_of(const Instr& in) const {
    const IndexMap& map = program_.accesses[static_cast<std::size_t>(in.index)].map;
    return map.views.size() == 1 && !map.views[0].masked() ? &map.views[0] : nullptr;
  }

  // Returns the number of consecutive elements that read the same offset.
  static std::int64_t still(const View& view) {
    std::int64_t count = 1;
    for (std::size_t d = view.shape.size(); d > 0 && view.strides[d - 1] == 0; --d)
      count *= view.shape[d - 1];
    return count;
  }

  bool leads_back(int value, const Store& store, std::vector<UnchangedTest>& tests) const {
    const Instr& in = instr(value);
    if (in.kind == InstrKind::kLoad) {
      const Access& access = program_.accesses[static_cast<std::size_t>(in.index)];
      return prepare_.data[static_cast<std::size_t>(access.binding)] ==
                 prepare_.data[static_cast<std::size_t>(store.binding)] &&
             access.map == store.map && access.dtype == store.dtype;
    }
    if (in.kind != InstrKind::kOp || std::string_view(in.code->name) != "where" ||
        tests.size() == kMaxTests) {
      return false;
    }
    for (const bool on : {true, false}) {
      tests.push_back({in.operands[0], on});
      if (leads_back(in.operands[on ? 2 : 1], store, tests)) return true;
      tests.pop_back();
    }
    return false;
  }

  const Prepare& prepare_;
  const ScalarProgram& program_;
  const std::vector<Store>& stores_;
};

}  // namespace

std::unique_ptr<UnchangedStores> UnchangedStores::of(const Prepare& prepare) {
  const Finder finder(prepare);
  const std::vector<UnchangedTest> tests = finder.tests();
  if (tests.empty()) return nullptr;
  std::int64_t run = prepare.launch.rows * prepare.launch.cols;
  for (const UnchangedTest& test : tests) run = std::gcd(run, finder.run_of(test.value));
  if (run < kMinRun) return nullptr;
  return std::make_unique<UnchangedStores>(prepare, finder.shortened(run), tests, run);
}

UnchangedStores::UnchangedStores(const Prepare& prepare, ScalarProgram program,
                                 const std::vector<UnchangedTest>& tests, std::int64_t run)
    : program_(std::move(program)), tests_(tests), run_(run) {
  for (const UnchangedTest& test : tests_) {
    VectorProgramSpec spec;
    spec.program = &program_;
    spec.result = test.value;
    spec.rows = prepare.launch.rows * prepare.launch.cols / run;
    vector_programs_.push_back(std::make_unique<VectorProgram>(prepare, spec));
    vector_programs_.back()->lay_out(kStretchRuns, 0);
  }
}

std::size_t UnchangedStores::scratch_bytes() const {
  std::size_t most = 0;
  for (const auto& vector_program : vector_programs_)
    most = std::max(most, vector_program->scratch_bytes());
  return kStretchRuns * sizeof(Word) + most;
}

void UnchangedStores::start(const RuntimeScalars& runtime_scalars) {
  for (const auto& vector_program : vector_programs_) vector_program->start(runtime_scalars);
}

}  // namespace tensorgrad::cpu
