// SPDX-License-Identifier: MIT
// A graph under test with values of its leaves. It can run in three places: the interpreter (in
// double), the CPU, and WebGPU. Everything depends only on seeds.
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

// Returns one device of each kind per process, since opening one is slow.
std::shared_ptr<Device> device_at(Where where);

// Sets an environment variable, and restores it when destroyed.
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

// Random numbers that are the same on all platforms (the distributions of <random> are not).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double real(double lo, double hi) { return lo + (hi - lo) * unit(); }
  std::int64_t whole(std::int64_t lo, std::int64_t hi);  // inclusive
  bool chance(double p) { return unit() < p; }
  // Returns `count` values of `dtype`: f32 in [lo, hi), integers from lo to hi, or booleans.
  Values values(DType dtype, std::int64_t count, double lo, double hi);

 private:
  std::mt19937_64 engine_;
};

// Returns the value of each output by name, and of each updated leaf as "update NAME".
ValueMap interpret_graph(const Graph& graph, const ValueMap& leaves, bool round_to_float = false);
// Like interpret_graph(), but compiled and run on a device. `max_bindings` 0 is the device's limit,
// `max_binding_bytes` 0 is none. Joins small launches if `join` is set and the device supports it.
ValueMap run_graph(const Graph& graph, const ValueMap& leaves, Where where, int max_bindings = 0,
                   std::int64_t max_binding_bytes = 0, bool join = true);
// `join_bindings` is that of PlanOptions, and `row_columns` is FuseOptions::row_epilogue_columns,
// which also allows operands of products and concats to be computed by their readers. If both are
// set, small launches may form fused sequences.
Compiled compile_for_test(const Graph& graph, int max_bindings, std::int64_t max_binding_bytes = 0,
                          bool stores_f16 = true, int join_bindings = 0, int row_columns = 0);

// Fails the test for each name with different values: integers must be equal, floats may differ by
// tolerance * (1 + |want|). NaN equals NaN. Shows `note` with the first difference.
void expect_close(const Graph& graph, const ValueMap& got, const ValueMap& want, double tolerance,
                  const std::string& note);

// Returns the type of `name` (an output or "update NAME").
Type type_of(const Graph& graph, const std::string& name);

// An open trace, with leaves whose values are drawn when they are created.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::uint64_t seed = 1) : draw(seed), scope_(trace_) {}

  Tensor input(const Shape& shape, double lo = -2, double hi = 2, DType dtype = f32);
  Tensor input(const Shape& shape, DType dtype, const Values& values);
  // Like input(), but creates another kind of leaf (state, data, parameter at `offset`).
  Tensor leaf(const OpDef& op, const std::string& name, const Shape& shape, DType dtype,
              const Values& values, std::int64_t offset = 0);
  Tensor boolean(const Shape& shape);
  void output(const std::string& name, const Tensor& value);

  [[nodiscard]] Graph& graph() { return trace_.graph; }
  // Compares the outputs at `where` with those of the interpreter.
  void check(Where where, double tolerance = 3e-5, bool round_to_float = false);

  Draw draw;
  ValueMap leaves = {{"_seed", {17}}, {"_step", {3}}};  // used by random ops

 private:
  Trace trace_;
  TraceScope scope_;
  int count_ = 0;
};

}  // namespace tensorgrad::testing
