// SPDX-License-Identifier: MIT
// A graph under test with the values of its leaves, and its run in three places: the interpreter
// (in double), the CPU, WebGPU. Everything is decided by seeds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/trace.h"

namespace tensorgrad::testing {

using Values = std::vector<double>;
using ValueMap = std::map<std::string, Values>;

enum class Where { kCpu, kWebGpu, kWebGpuDefaultLimits };
std::string to_string(Where where);

// One device of each kind per process: opening one is slow.
std::shared_ptr<Device> device_at(Where where);

// Sets an environment variable, and puts the old value back.
class ScopedEnv {
 public:
  ScopedEnv(const std::string& name, const std::string& value);
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;
  ~ScopedEnv();

 private:
  std::string name_, old_;
  bool had_;
};

// Random numbers that are the same everywhere (the distributions of <random> are not).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double real(double lo, double hi) { return lo + (hi - lo) * unit(); }
  std::int64_t whole(std::int64_t lo, std::int64_t hi);  // both included
  bool chance(double p) { return unit() < p; }
  // `count` values that `dtype` has: f32 in [lo, hi), integers from lo to hi, booleans.
  Values values(DType dtype, std::int64_t count, double lo, double hi);

 private:
  std::mt19937_64 engine_;
};

// Value of each output by name, and of each updated leaf as "update NAME".
ValueMap interpret_graph(const Graph& graph, const ValueMap& leaves, bool round_to_float = false);
// The same, compiled and run. `max_bindings` 0: the device's own limit; `max_binding_bytes` 0:
// none. Where the device joins launches, and `join` does not say otherwise, small ones are joined.
ValueMap run_graph(const Graph& graph, const ValueMap& leaves, Where where, int max_bindings = 0,
                   std::int64_t max_binding_bytes = 0, bool join = true);
// `join_bindings` is that of PlanOptions, `row_columns` that of FuseOptions; with both, small
// launches may be chains.
Compiled compile_for_test(const Graph& graph, int max_bindings, std::int64_t max_binding_bytes = 0,
                          bool stores_f16 = true, int join_bindings = 0, int row_columns = 0);

// Fails the test for each name where the two differ: integers at all, floats by more than
// tolerance * (1 + |want|). NaN equals NaN. Shows `note` with the first difference.
void expect_close(const Graph& graph, const ValueMap& got, const ValueMap& want, double tolerance,
                  const std::string& note);

// The type that `name` (an output or "update NAME") has.
Type type_of(const Graph& graph, const std::string& name);

// A trace that is open, with leaves whose values are drawn as they are made.
class Sketch {
 public:
  explicit Sketch(std::uint64_t seed = 1) : draw(seed), scope_(trace_) {}

  Tensor input(const Shape& shape, double lo = -2, double hi = 2, DType dtype = f32);
  Tensor input(const Shape& shape, DType dtype, const Values& values);
  // The same as a leaf of another kind (state, data, parameter at `offset`).
  Tensor leaf(const OpDef& op, const std::string& name, const Shape& shape, DType dtype,
              const Values& values, std::int64_t offset = 0);
  Tensor boolean(const Shape& shape);
  void output(const std::string& name, const Tensor& value);

  [[nodiscard]] Graph& graph() { return trace_.graph; }
  // Outputs at `where` against the interpreter.
  void check(Where where, double tolerance = 3e-5, bool round_to_float = false);

  Draw draw;
  ValueMap leaves = {{"_seed", {17}}, {"_step", {3}}};  // those two are of random numbers

 private:
  Trace trace_;
  TraceScope scope_;
  int count_ = 0;
};

}  // namespace tensorgrad::testing
