// SPDX-License-Identifier: MIT
// Models with a dynamic size: one file, whose results in onnxruntime match the function's for each
// size. The sizes differ from those that export_onnx traces.
#include <gtest/gtest.h>

#include <functional>

#include "onnx/made_up.h"
#include "support/models.h"
#include "support/onnxruntime.h"
#include "support/small_mamba.h"

namespace tensorgrad::testing {
namespace {

using InputsFor = std::function<std::map<std::string, HostTensor>(std::int64_t size)>;
const std::vector<std::int64_t> kSizes = {1, 2, 5, 16, 97};

// Exports the function into `runtime`, and records its results for each size.
void add_open(OnnxRuntime& runtime, const std::string& name, CompiledFunction forward,
              const InputsFor& inputs_for, const std::vector<std::int64_t>& sizes,
              const OnnxOptions& options = {}) {
  SCOPED_TRACE(name);
  ASSERT_NO_THROW(forward.export_onnx(runtime.path(name), options));
  for (const std::int64_t size : sizes) {
    const std::map<std::string, HostTensor> inputs = inputs_for(size);
    FeedView feed;
    for (const auto& [key, tensor] : inputs) feed.add(key, HostView(tensor));
    runtime.expect(name, inputs, forward.run(feed));
  }
}

void check_open(const std::string& name, CompiledFunction forward, const InputsFor& inputs_for,
                const std::vector<std::int64_t>& sizes = kSizes, const OnnxOptions& options = {}) {
  OnnxRuntime runtime("open_" + name);
  add_open(runtime, name, std::move(forward), inputs_for, sizes, options);
  runtime.check();
}

TEST(OnnxDynamicSizes, mlp_with_softmax_as_trained) {
  auto trainer =
      compile(Mlp{}, mlp_loss,
              {.inputs = mlp_inputs(), .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  for (int step = 0; step < 3; ++step) {
    const HostTensor x = made_up({16, 64}, step), t = indices({16}, 10);
    trainer.step({{"x", x}, {"t", t}});
  }
  const auto scores = [](const Mlp& net, const Inputs& in) {
    const Tensor logits = net.out(relu(net.hidden(in["pixels"])));
    return std::map<std::string, Tensor>{
        {"scores", softmax(logits)}, {"best", argmax(logits, 1)}, {"sure", max(logits, 1) > 0.1}};
  };
  check_open("mlp", trainer.attach(scores, {.inputs = {{"pixels", {kDynamic, 64}}}}),
             [](std::int64_t n) {
               return std::map<std::string, HostTensor>{{"pixels", made_up({n, 64})}};
             });
}

// Texts of any length, chunk by chunk, with the states of each kind of layer.
TEST(OnnxDynamicSizes, LanguageModelsWithStatesOverOpenLengths) {
  using Kind = nn::MixerKind;
  OnnxRuntime runtime("open_language_models");
  std::map<std::string, nn::LanguageModelConfig> models = {
      {"gpt2", nn::gpt2_config(11, 12, 1, 2, 48)}};
  for (const auto& [name, kind] : std::map<std::string, Kind>{{"mamba1", Kind::kMamba1},
                                                              {"mamba2", Kind::kMamba2},
                                                              {"mamba3", Kind::kMamba3},
                                                              {"attention", Kind::kAttention}}) {
    models[name] = small_mamba(11, {kind, Kind::kMlp}, 48);
  }
  nn::LanguageModelConfig& jamba = models["jamba"] =
      small_mamba(11, nn::mixer_schedule("mamba1 moe attention", 3), 48);
  jamba.mamba.b_c_dt_norm = jamba.mamba.b_c_dt_norm_weights = true;
  jamba.attention.rope_dims = 2;
  for (const auto& [name, config] : models) {
    SCOPED_TRACE(name);
    auto function =
        compile_function(nn::LanguageModel(config),
                         [](const nn::LanguageModel& net, const Inputs& in) {
                           return net.resume(in["tokens"], in["keep"]);
                         },
                         {.inputs = lm::Decoder::inputs(2), .device = {.kind = "cpu"}, .seed = 3});
    ASSERT_NO_THROW(function.export_onnx(
        runtime.path(name), {.size_name = "length", .sizes = {10, 23, 41}, .states = true}));
    bool first = true;
    for (const std::int64_t length : {6, 1, 1, 7, 2}) {
      const std::map<std::string, HostTensor> inputs = {
          {"tokens", indices({2, length}, 11)},
          {"keep", HostTensor::from({2}, std::vector<float>(2, first ? 0.0F : 1.0F))}};
      first = false;
      FeedView feed;
      for (const auto& [key, tensor] : inputs) feed.add(key, HostView(tensor));
      runtime.expect(name, inputs, function.run(feed));
    }
  }
  runtime.check();
}

struct SmallCnn {
  nn::Conv2d first{2, 6, {3, 3}, {.padding = 1}};
  nn::BatchNorm2d norm{6};
  nn::Conv2d second{6, 8, {3, 3}, {.stride = 2, .padding = 1, .groups = 2}};
  nn::Linear out{8 * 2 * 2, 5};
  TG_MODULE(first, norm, second, out)

  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm(first(x))), {3, 3}, {.stride = 2, .padding = 1});
    x = avg_pool2d(silu(second(x)), {2, 2});
    return log_softmax(out(flatten(x, 1)));
  }
};

TEST(OnnxDynamicSizes, cnn_with_running_statistics_and_pools) {
  const auto loss = [](const SmallCnn& net, const Inputs& in) {
    return mean(square(net(in["x"])));
  };
  auto trainer = compile(SmallCnn{}, loss,
                         {.inputs = {{"x", {4, 2, 16, 16}}},
                          .optimizer = optim::SGD{.lr = 0.1},
                          .device = {.kind = "cpu"}});
  const HostTensor x = made_up({4, 2, 16, 16});
  for (int step = 0; step < 3; ++step) trainer.step({{"x", x}});
  const auto forward = [](const SmallCnn& net, const Inputs& in) { return net(in["x"]); };
  check_open("cnn", trainer.attach(forward, {.inputs = {{"x", {kDynamic, 2, 16, 16}}}}),
             [](std::int64_t n) {
               return std::map<std::string, HostTensor>{{"x", made_up({n, 2, 16, 16})}};
             });
}

// The width is dynamic. With a stride, the output width is not an affine function of it, so the
// output's size has no name.
TEST(OnnxDynamicSizes, convolutions_along_an_open_axis) {
  const auto forward = [](const SmallCnn& net, const Inputs& in) {
    const Tensor x = relu(net.norm(net.first(in["x"])));
    return std::map<std::string, Tensor>{{"wide", x},
                                         {"narrow", net.second(x)},
                                         {"means", mean(x, {2, 3})},
                                         {"twice", interpolate(x, {1, 2 * x.size(3)})}};
  };
  check_open("widths", compile_function(SmallCnn{}, forward, on_cpu({{"x", {3, 2, 1, kDynamic}}})),
             [](std::int64_t n) {
               return std::map<std::string, HostTensor>{{"x", made_up({3, 2, 1, n})}};
             },
             kSizes, {.size_name = "width"});
}

struct Reader {
  nn::Embedding tokens{11, 16};
  nn::TransformerEncoderLayer first{16, 4, {.dim_feedforward = 32, .gelu = true}};
  nn::TransformerEncoderLayer second{16, 4, {.dim_feedforward = 32, .norm_first = true}};
  nn::RMSNorm norm{16};
  TG_MODULE(tokens, first, second, norm)

  Tensor operator()(Tensor text) const {
    Tensor x = tokens(text);
    x = second(first(x, {.causal = true}), {.key_padding_mask = text == 0});
    const Tensor heads = transpose(reshape(x, {x.size(0), x.size(1), 2, 8}), 1, 2);
    const Tensor turned = scaled_dot_product_attention(rope(heads), rope(heads), heads);
    x = reshape(transpose(turned, 1, 2), x.shape());
    return matmul(norm(x), transpose(tokens.weight));
  }
};

TEST(OnnxDynamicSizes, attention_over_open_batches_and_open_lengths) {
  const auto forward = [](const Reader& net, const Inputs& in) { return net(in["text"]); };
  const auto texts = [](std::int64_t n) {
    return std::map<std::string, HostTensor>{{"text", indices({n, 7}, 11)}};
  };
  const auto lengths = [](std::int64_t n) {
    return std::map<std::string, HostTensor>{{"text", indices({2, n}, 11)}};
  };
  check_open("texts", compile_function(Reader{}, forward, on_cpu({{"text", {kDynamic, 7}, i32}})),
             texts);
  check_open("lengths", compile_function(Reader{}, forward, on_cpu({{"text", {2, kDynamic}, i32}})),
             lengths, {1, 2, 5, 16, 33}, {.size_name = "length"});
}

// Positions are a table of 16 rows, so larger sizes are left out.
TEST(OnnxDynamicSizes, learned_positions_limit_the_size) {
  struct Placed {
    nn::Embedding tokens{11, 8}, places{16, 8};
    TG_MODULE(tokens, places)
  };
  const auto forward = [](const Placed& net, const Inputs& in) {
    const Tensor x = net.tokens(in["text"]);
    return x + narrow(net.places.weight, 0, 0, x.size(1));
  };
  check_open("places", compile_function(Placed{}, forward, on_cpu({{"text", {2, kDynamic}, i32}})),
             [](std::int64_t n) {
               return std::map<std::string, HostTensor>{{"text", indices({2, n}, 11)}};
             },
             {1, 2, 5, 16});
}

struct Gates {
  nn::LSTM lstm{5, 6, {.num_layers = 2, .batch_first = true}};
  nn::GRU gru{6, 4, {.batch_first = true}};
  TG_MODULE(lstm, gru)
};

TEST(OnnxDynamicSizes, lstm_and_gru_over_open_batches) {
  const auto forward = [](const Gates& net, const Inputs& in) {
    const auto [output, h, c] = net.lstm(in["x"]);
    return std::map<std::string, Tensor>{{"y", net.gru(output).output}, {"c", c}};
  };
  check_open(
      "gates", compile_function(Gates{}, forward, on_cpu({{"x", {kDynamic, 6, 5}}})),
      [](std::int64_t n) { return std::map<std::string, HostTensor>{{"x", made_up({n, 6, 5})}}; });
}

// ---- one op each -------------------------------------------------------------------------------

struct Nothing {
  Parameter weight{{6, 4}, init::normal(0, 1)};
  TG_MODULE(weight)
};

// Applies ops to x f32 [N, 6] and to `at` i32 [N] with indices below 6.
struct OpenCase {
  const char* name;
  std::function<Tensor(Tensor x, Tensor at, Tensor weight)> apply;
  std::int64_t least = 1;  // the smallest size that it supports
};

const std::vector<OpenCase>& open_cases() {
  static const std::vector<OpenCase> cases = {
      {"mean_of_the_batch", [](Tensor x, Tensor, Tensor) { return mean(x, 0); }},
      {"mean_of_all", [](Tensor x, Tensor, Tensor) { return mean(square(x)); }},
      {"mean_by_hand",
       [](Tensor x, Tensor, Tensor) { return sum(x, 0) / static_cast<double>(x.size(0)); }},
      {"sum_of_the_batch", [](Tensor x, Tensor, Tensor) { return sum(x, 0); }},
      {"largest", [](Tensor x, Tensor, Tensor) { return max(x, 0) - min(x); }},
      {"variance", [](Tensor x, Tensor, Tensor) { return var(x, 0); }, 2},
      {"variance_by_hand",
       [](Tensor x, Tensor, Tensor) {
         return sum(square(x - mean(x, 0)), 0) / static_cast<double>(x.size(0) - 1);
       },
       2},
      {"loss", [](Tensor x, Tensor at, Tensor) { return cross_entropy(x, at); }},
      {"loss_with_smoothing",
       [](Tensor x, Tensor at, Tensor) {
         return cross_entropy(x, at, {.ignore_index = 2, .label_smoothing = 0.1});
       },
       5},
      {"count", [](Tensor x, Tensor, Tensor) { return sum(ones_like(x)); }},
      {"argmax_in_the_batch", [](Tensor x, Tensor, Tensor) { return argmax(x, 0); }},
      {"argmin_of_all", [](Tensor x, Tensor, Tensor) { return argmin(x); }},
      {"softmax_over_the_batch", [](Tensor x, Tensor, Tensor) { return softmax(x, 0); }},
      {"logsumexp", [](Tensor x, Tensor, Tensor) { return logsumexp(x, 0); }},
      {"batch_statistics",
       [](Tensor x, Tensor, Tensor) {
         const auto [m, v] = batch_statistics(x);
         return batch_norm(x, m, v);
       }},
      {"layer_norm", [](Tensor x, Tensor, Tensor) { return layer_norm(x); }},
      {"concat_of_columns", [](Tensor x, Tensor, Tensor) { return concat({x, exp(x)}, 1); }},
      {"concat_of_rows", [](Tensor x, Tensor, Tensor) { return concat({x, x, ones({2, 6})}, 0); }},
      {"row_against_batch", [](Tensor x, Tensor, Tensor w) { return x * sum(w, 1) + 1.0; }},
      {"column_against_batch", [](Tensor x, Tensor, Tensor) { return x - max(x, 1, true); }},
      {"given_to_all",
       [](Tensor x, Tensor, Tensor w) { return broadcast_to(sum(w, 1), x.shape()); }},
      {"zeros_and_a_count",
       [](Tensor x, Tensor at, Tensor) { return zeros(x.shape()) + cast(unsqueeze(at, 1), f32); }},
      {"product", [](Tensor x, Tensor, Tensor w) { return matmul(x, w); }},
      {"product_with_itself", [](Tensor x, Tensor, Tensor) { return matmul(x, transpose(x)); }},
      {"product_over_the_batch", [](Tensor x, Tensor, Tensor) { return matmul(transpose(x), x); }},
      {"distances",
       [](Tensor x, Tensor, Tensor) { return sum(square(unsqueeze(x, 0) - unsqueeze(x, 1)), 2); }},
      {"einsum", [](Tensor x, Tensor, Tensor w) { return einsum("ni,ij->jn", {x, w}); }},
      {"rows_by_index", [](Tensor, Tensor at, Tensor w) { return index_select(w, 0, at); }},
      {"elements_by_index",
       [](Tensor x, Tensor at, Tensor) { return gather(x, 1, unsqueeze(at, 1)); }},
      {"rows_in_another_order",
       [](Tensor x, Tensor, Tensor) {
         return index_select(x, 0, argsort(squeeze(narrow(x, 1, 0, 1), 1)));
       }},
      {"places_in_the_batch",
       [](Tensor x, Tensor at, Tensor) {  // some are beyond it
         return gather(x, 0, broadcast_to(unsqueeze(at * 2, 1), x.shape()));
       }},
      {"embedding", [](Tensor, Tensor at, Tensor w) { return embedding(at, w); }},
      {"one_hot", [](Tensor, Tensor at, Tensor) { return one_hot(at, 6); }},
      {"added_by_index",
       [](Tensor x, Tensor at, Tensor) { return index_add(zeros({6, 6}), 0, at, x); }},
      {"added_to_the_batch",
       [](Tensor x, Tensor, Tensor) { return index_add(x, 0, arange(x.size(0)), exp(x)); }},
      {"counters",
       [](Tensor x, Tensor, Tensor) {
         return x * unsqueeze(cast(arange(x.size(0)), f32) * 2.0 + 1.0, 1);
       }},
      {"counters_of_all",
       [](Tensor x, Tensor, Tensor) { return iota(x.shape(), 0) * 6 + iota(x.shape(), 1); }},
      {"numbers_of_the_host",
       [](Tensor x, Tensor, Tensor) {
         std::vector<float> values;
         for (std::int64_t i = 0; i < x.size(0); ++i)
           values.push_back(static_cast<float>(7 - 2 * i));
         return x + constant(values, {x.size(0), 1});
       }},
      {"identity_matrix", [](Tensor x, Tensor, Tensor) { return matmul(eye(x.size(0)), x); }},
      {"triangle", [](Tensor x, Tensor, Tensor) { return tril(matmul(x, transpose(x)), -1); }},
      {"diagonal", [](Tensor x, Tensor, Tensor) { return diagonal(matmul(x, transpose(x))); }},
      {"diagonal_matrix", [](Tensor x, Tensor, Tensor) { return diag(sum(x, 1)); }},
      {"cumsum", [](Tensor x, Tensor, Tensor) { return cumsum(x, 0); }},
      {"cumprod", [](Tensor x, Tensor, Tensor) { return cumprod(x * 0.1 + 1.0, 0); }},
      {"cummax", [](Tensor x, Tensor, Tensor) { return cummax(x, 0).values; }},
      {"cummax_across", [](Tensor x, Tensor, Tensor) { return cummax(x, 1).values; }},
      {"recurrence", [](Tensor x, Tensor, Tensor) { return linear_recurrence(x, exp(x), 0); }},
      {"recurrence_across",
       [](Tensor x, Tensor, Tensor) {
         return linear_recurrence(x, x, 1, ones({x.size(0), 1}), true);
       }},
      {"sorted", [](Tensor x, Tensor, Tensor) { return sort(x, 0).values; }},
      {"top", [](Tensor x, Tensor, Tensor) { return topk(x, 3, 1).values; }},
      {"flipped", [](Tensor x, Tensor, Tensor) { return flip(x, {0, 1}); }},
      {"all_but_one", [](Tensor x, Tensor, Tensor) { return narrow(x, 0, 1, x.size(0) - 1); }, 2},
      {"last", [](Tensor x, Tensor, Tensor) { return narrow(x, 0, x.size(0) - 1, 1); }},
      {"padded", [](Tensor x, Tensor, Tensor) { return pad(x, {0, 1, 2, 3}, 0.5); }},
      {"padded_to_square", [](Tensor x, Tensor, Tensor) { return pad(x, {0, x.size(0)}, 0); }},
      {"tiled", [](Tensor x, Tensor, Tensor) { return tile(x, {2, 3}); }},
      {"repeated", [](Tensor x, Tensor, Tensor) { return repeat_interleave(x, 3, 0); }},
      {"flat", [](Tensor x, Tensor, Tensor) { return flatten(x * 2.0); }},
      {"windows", [](Tensor x, Tensor, Tensor) { return sum(unfold(x, 0, 2, 1), 2); }, 2},
      {"signal",
       [](Tensor x, Tensor, Tensor w) {
         const Tensor line = unsqueeze(transpose(x), 0);  // [1, 6, N]
         return conv1d(line, reshape(w, {4, 6, 1})) + mean(line);
       }},
      {"power", [](Tensor x, Tensor, Tensor) { return pow(abs(x), 1.5); }},
  };
  return cases;
}

TEST(OnnxDynamicSizes, each_op_matches_at_every_size) {
  OnnxRuntime runtime("open_ops");
  for (const OpenCase& each : open_cases()) {
    const auto function = [apply = each.apply](const Nothing& net, const Inputs& in) {
      return std::map<std::string, Tensor>{{"y", apply(in["x"], in["at"], net.weight)}};
    };
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : kSizes) {
      if (size >= each.least) sizes.push_back(size);
    }
    FunctionOptions options = on_cpu({{"x", {kDynamic, 6}}, {"at", {kDynamic}, i32}});
    options.dynamic_size = 5;
    add_open(
        runtime, each.name, compile_function(Nothing{}, function, options),
        [](std::int64_t n) {
          return std::map<std::string, HostTensor>{{"x", made_up({n, 6}, 2)},
                                                   {"at", indices({n}, 6)}};
        },
        sizes);
  }
  runtime.check();
}

// The trace for size 1 differs from the others, so only the given sizes are traced.
TEST(OnnxDynamicSizes, function_special_at_size_one_needs_sizes) {
  const auto forward = [](const Nothing&, const Inputs& in) {
    const Tensor x = in["x"];
    return linspace(0, 1, x.size(0)) + roll(x, {3}, {0});
  };
  check_open("apart", compile_function(Nothing{}, forward, on_cpu({{"x", {kDynamic}}})),
             [](std::int64_t n) { return std::map<std::string, HostTensor>{{"x", made_up({n})}}; },
             {5, 16, 97}, {.sizes = {4, 9, 31, 50}});
}

// Pairs up the rows of a batch, which must be even.
TEST(OnnxDynamicSizes, match_the_sizes_of_the_function) {
  const auto forward = [](const Nothing&, const Inputs& in) {
    const Tensor x = in["x"];
    return sum(reshape(x, {x.size(0) / 2, 2, 6}), 1);
  };
  FunctionOptions options = on_cpu({{"x", {kDynamic, 6}}});
  options.dynamic_size = 2;
  check_open(
      "pairs", compile_function(Nothing{}, forward, options),
      [](std::int64_t n) { return std::map<std::string, HostTensor>{{"x", made_up({n, 6})}}; },
      {2, 4, 16, 98});
}

}  // namespace
}  // namespace tensorgrad::testing
