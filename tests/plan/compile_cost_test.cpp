// SPDX-License-Identifier: MIT
// Checks that the cost of a compile is proportional to the size of the graph. The cost is counted
// in visits of nodes, views and groups, from the trace to the plan, so that it does not depend on a
// clock.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/visits.h"
#include "support/graph_builder.h"
#include "support/random_graph.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

// Maximum growth of the cost if the number of nodes doubles: twice, and a logarithm.
constexpr double kMaxGrowth = 2.4;

std::int64_t visits_of(const std::function<void()>& compile) {
  const std::int64_t before = Visits::count();
  compile();
  return Visits::count() - before;
}

void expect_proportional(const std::string& name, int size,
                         const std::function<void(int size)>& compile) {
  const std::int64_t some = visits_of([&] { compile(size); });
  const std::int64_t twice = visits_of([&] { compile(2 * size); });
  EXPECT_GT(some, size) << name;
  EXPECT_LT(static_cast<double>(twice), kMaxGrowth * static_cast<double>(some))
      << name << ": " << some << ", " << twice;
}

const DeviceOptions kCpu = {.kind = "cpu", .threads = 1};

struct CostBlock {
  nn::LayerNorm first{16}, second{16};
  nn::Linear q{16, 16}, k{16, 16}, v{16, 16}, out{16, 16}, up{16, 32}, down{32, 16};
  TG_MODULE(first, second, q, k, v, out, up, down)
  static Tensor heads(const Tensor& x) { return transpose(reshape(x, {1, 8, 2, 8}), 1, 2); }
  Tensor operator()(const Tensor& x) const {
    const Tensor h = first(x);
    const Tensor a =
        scaled_dot_product_attention(heads(q(h)), heads(k(h)), heads(v(h)), {.causal = true});
    const Tensor y = x + out(reshape(transpose(a, 1, 2), x.shape()));
    return y + down(gelu(up(second(y))));
  }
};

struct CostDecoder {
  nn::Embedding tokens{20, 16};
  std::vector<CostBlock> blocks;
  explicit CostDecoder(int layers) : blocks(static_cast<std::size_t>(layers)) {}
  TG_MODULE(tokens, blocks)
  Tensor operator()(Tensor x) const {
    x = tokens(x);
    for (const CostBlock& block : blocks) x = block(x);
    return linear(x, tokens.weight);
  }
};

struct CostMlp {
  std::vector<nn::Linear> layers;
  explicit CostMlp(int count) : layers(static_cast<std::size_t>(count), nn::Linear(8, 8)) {}
  TG_MODULE(layers)
  Tensor operator()(Tensor x) const {
    for (const nn::Linear& layer : layers) x = relu(layer(x));
    return x;
  }
};

struct CostConv {
  std::vector<nn::Conv2d> convolutions;
  std::vector<nn::BatchNorm2d> norms;
  explicit CostConv(int count)
      : convolutions(static_cast<std::size_t>(count), nn::Conv2d(2, 2, 3, {.padding = 1})),
        norms(static_cast<std::size_t>(count), nn::BatchNorm2d(2)) {}
  TG_MODULE(convolutions, norms)
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < norms.size(); ++i) x = relu(norms[i](convolutions[i](x))) + x;
    return x;
  }
};

struct CostLstm {
  nn::LSTM lstm{4, 4};
  TG_MODULE(lstm)
};

TEST(CompileCost, of_a_decoder_in_its_layers) {
  expect_proportional("decoder", 6, [](int layers) {
    compile(CostDecoder(layers),
            [](const CostDecoder& net, const Inputs& in) {
              return cross_entropy(net(in["x"]), in["y"]);
            },
            {.inputs = {{"x", {1, 8}, i32}, {"y", {1, 8}, i32}},
             .optimizer = optim::AdamW{},
             .device = kCpu});
  });
}

TEST(CompileCost, of_a_perceptron_in_its_layers) {
  expect_proportional("perceptron", 50, [](int layers) {
    compile(CostMlp(layers),
            [](const CostMlp& net, const Inputs& in) { return mean(square(net(in["x"]))); },
            {.inputs = {{"x", {4, 8}}}, .optimizer = optim::Adam{}, .device = kCpu});
  });
}

TEST(CompileCost, of_a_residual_network_in_its_layers) {
  expect_proportional("residual network", 12, [](int layers) {
    compile(CostConv(layers),
            [](const CostConv& net, const Inputs& in) { return mean(square(net(in["x"]))); },
            {.inputs = {{"x", {2, 2, 4, 4}}}, .optimizer = optim::Adam{}, .device = kCpu});
  });
}

TEST(CompileCost, of_a_recurrent_network_in_its_steps) {
  expect_proportional("LSTM", 48, [](int steps) {
    compile(CostLstm{},
            [](const CostLstm& net, const Inputs& in) {
              return mean(square(net.lstm(in["x"]).output));
            },
            {.inputs = {{"x", {steps, 2, 4}}}, .optimizer = optim::Adam{}, .device = kCpu});
  });
}

using CostStep = std::function<Tensor(const Tensor& x, int i)>;

const std::map<std::string, CostStep>& cost_chains() {
  static const std::map<std::string, CostStep> all = {
      {"pointwise", [](const Tensor& x, int) { return x * 0.999 + 0.001; }},
      {"where",
       [](const Tensor& x, int i) { return where(x > 0.1 * (i % 7), x - 0.01, x + 0.01); }},
      {"transpose and add", [](const Tensor& x, int) { return transpose(x) + 1.0; }},
      {"narrow and pad", [](const Tensor& x, int) { return narrow(pad(x, {1, 0}), 1, 0, 8); }},
      {"reshape and transpose",
       [](const Tensor& x, int) { return reshape(transpose(reshape(x, {4, 16})), {8, 8}); }},
      {"roll", [](const Tensor& x, int) { return roll(x, {1}, {1}); }},
      {"shift and add", [](const Tensor& x, int) { return x + narrow(pad(x, {1, 0}), 1, 0, 8); }},
      {"concat",
       [](const Tensor& x, int) { return concat({narrow(x, 1, 1, 7), narrow(x, 1, 0, 1)}, 1); }},
      {"matmul", [](const Tensor& x, int) { return tanh(matmul(x, x)); }},
      {"rows", [](const Tensor& x, int) { return x - 0.5 * mean(x, 1, true); }},
      {"max", [](const Tensor& x, int) { return maximum(x, min(x, 1, true) + 0.1); }},
      {"cumsum", [](const Tensor& x, int) { return cumsum(x, 1) * 0.1; }},
      {"gather",
       [](const Tensor& x, int) {
         return take_along_dim(x, reshape(argsort(narrow(x, 0, 0, 1), 1), {1, 8}), 1);
       }},
      {"softmax", [](const Tensor& x, int) { return softmax(x, 1) * 8.0; }},
  };
  return all;
}

// Parameters are 0 for the CPU, and set for a GPU that runs small launches as one kernel.
void expect_proportional_chains(int join_bindings, int row_columns) {
  for (const auto& [name, step] : cost_chains()) {
    // Merging or inlining a launch visits all of its nodes, at most 1,024. If every step is merged,
    // the cost is linear only from that size on.
    const bool merges = name == "max" || name == "softmax";
    if (merges && join_bindings > 0) continue;  // fused as without joining
    const int size = merges ? 240 : 60;
    expect_proportional(name, size, [&](int length) {
      GraphBuilder s;
      const Tensor first = s.input({8, 8});
      Tensor x = first;
      for (int i = 0; i < length; ++i) x = step(x, i);
      s.output("y", x);
      s.output("g", grad(sum(x), {first})[0]);
      compile_for_test(s.graph(), 8, 0, true, join_bindings, row_columns);
    });
  }
}

TEST(CompileCost, of_chains_in_their_length) { expect_proportional_chains(0, 0); }
TEST(CompileCost, of_chains_for_joined_launches) { expect_proportional_chains(8, 64); }

TEST(CompileCost, of_many_results) {
  expect_proportional("results", 100, [](int count) {
    GraphBuilder s;
    const Tensor first = s.input({8, 8});
    Tensor x = first;
    for (int i = 0; i < count; ++i) {
      x = tanh(x) + first;
      s.output("y" + std::to_string(i), sum(x));
    }
    compile_for_test(s.graph(), 8);
  });
}

TEST(CompileCost, of_many_readers) {
  expect_proportional("readers", 100, [](int count) {
    GraphBuilder s;
    const Tensor first = s.input({8, 8});
    Tensor x = sum(first);
    for (int i = 0; i < count; ++i) x = x + sum(first * (1.0 + i));
    s.output("y", x);
    s.output("g", grad(x, {first})[0]);
    compile_for_test(s.graph(), 8);
  });
}

// Adds up several graphs of all families of ops, since the cost of a single graph varies.
TEST(CompileCost, of_random_graphs_in_their_ops) {
  expect_proportional("random graphs", 30, [](int ops) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const RandomGraph made = random_graph(seed, {.ops = ops});
      compile_for_test(made.graph, 8);
    }
  });
}

}  // namespace
}  // namespace tensorgrad::testing
