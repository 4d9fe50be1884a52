// SPDX-License-Identifier: MIT
// Compares scans, sorts, top-k and their reductions with PyTorch (make_fixtures.py): values,
// indices and gradients, for plain numbers, ties, NaN and infinities.
#include <cstring>
#include <limits>

#include "support/graph_builder.h"
#include "support/source_path.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct GoldenOp {
  const char* name;
  std::vector<Tensor> (*apply)(const Tensor& x);
};

std::vector<Tensor> both(const ValuesAndIndices& found) { return {found.values, found.indices}; }

const GoldenOp kOps[] = {
    {"cumsum", [](const Tensor& x) { return std::vector{cumsum(x, 1)}; }},
    {"cumprod", [](const Tensor& x) { return std::vector{cumprod(x, 0)}; }},
    {"cummax", [](const Tensor& x) { return both(cummax(x, 1)); }},
    {"cummin", [](const Tensor& x) { return both(cummin(x, 0)); }},
    {"sort", [](const Tensor& x) { return both(sort(x, 1)); }},
    {"sort_down", [](const Tensor& x) { return both(sort(x, 0, true)); }},
    {"topk", [](const Tensor& x) { return std::vector{topk(x, 3, 1).values}; }},
    {"topk_least", [](const Tensor& x) { return std::vector{topk(x, 2, 0, false).values}; }},
    {"logcumsumexp", [](const Tensor& x) { return std::vector{logcumsumexp(x, 1)}; }},
    {"prod", [](const Tensor& x) { return std::vector{prod(x, 1)}; }},
    {"any", [](const Tensor& x) { return std::vector{cast(any(x, 1), i32)}; }},
    {"all", [](const Tensor& x) { return std::vector{cast(all(x, 1), i32)}; }},
    {"count_nonzero", [](const Tensor& x) { return std::vector{count_nonzero(x, 1)}; }},
    {"std", [](const Tensor& x) { return std::vector{tensorgrad::std(x, 1)}; }},
    {"norm", [](const Tensor& x) { return std::vector{norm(x, 2, 1)}; }},
    {"norm_1", [](const Tensor& x) { return std::vector{norm(x, 1, 1)}; }},
    {"norm_inf", [](const Tensor& x) { return std::vector{norm(x, kInf, 1)}; }},
};

Values numbers(const StoredFile& file, const std::string& name) {
  const StoredTensor& tensor = file.tensors.at(name);
  Values values;
  for (std::size_t i = 0; i < tensor.data.size(); i += 4) {
    float real;
    std::int32_t whole;
    std::memcpy(&real, &tensor.data[i], 4);
    std::memcpy(&whole, &tensor.data[i], 4);
    values.push_back(tensor.dtype == "I32" ? whole : real);
  }
  return values;
}

// Runs every op on every input in one graph.
void check_against_pytorch(Where where) {
  const StoredFile file = read_safetensors(test::source_path("tests/golden/scan.safetensors"));
  GraphBuilder s;
  ValueMap want;
  const Tensor weight = s.input({24}, f32, numbers(file, "weight"));
  for (const char* which : {"plain", "ties", "odd"}) {
    for (const GoldenOp& op : kOps) {
      const Tensor x = s.input({4, 6}, f32, numbers(file, std::string("in/") + which));
      const std::string name = std::string(op.name) + "/" + which + "/";
      const std::vector<Tensor> results = op.apply(x);
      for (std::size_t i = 0; i < results.size(); ++i) {
        s.output(name + std::to_string(i), results[i]);
        want[name + std::to_string(i)] = numbers(file, name + std::to_string(i));
      }
      if (!file.tensors.contains(name + "grad")) continue;
      const std::int64_t count = numel(results[0].shape());
      const Tensor flat = reshape(results[0], {count});
      s.output(name + "grad", grad(sum(flat * narrow(weight, 0, 0, count)), {x})[0]);
      want[name + "grad"] = numbers(file, name + "grad");
    }
  }
  EXPECT_GT(want.size(), 80u);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), want, 2e-5, "PyTorch differs");
}

TEST(ScanGolden, is_as_pytorch_on_cpu) { check_against_pytorch(Where::kCpu); }
TEST(ScanGolden, is_as_pytorch_on_webgpu) { check_against_pytorch(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
