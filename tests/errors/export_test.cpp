// SPDX-License-Identifier: MIT
// Functions that cannot be exported.
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {
namespace {

// Exports a function of a Net and an input x f32.
template <class Function>
void export_onnx(Function function, const Shape& x, const OnnxOptions& options = {},
                 Loc loc = Loc::current()) {
  compiled_function(function, x).export_onnx(temporary("model.onnx"), options, loc);
}

}  // namespace

TEST(OnnxExportErrors, custom_op) {
  const CustomOp twice({.name = "twice",
                        .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                        .wgsl =
                            [](const std::vector<TensorType>&) {
                              return "fn element(i: u32) -> f32 { return 2.0 * in0(i); }";
                            }});
  const auto doubled = [&](const Net& net, In in) { return FAULTY(twice({net.fc(in["x"])})); };
  const auto function =
      compile_function(Net{}, doubled, {.inputs = {{"x", {4, 3}}}, .device = {.kind = "null"}});
  EXPECT_ERROR(function.export_onnx(temporary("custom.onnx")), UserError,
               "export_onnx: twice: an op with a custom kernel cannot be exported");
}

TEST(OnnxExportErrors, bitcast) {
  const auto bits = [](const Net& net, In in) { return FAULTY(bitcast(net.fc(in["x"]), i32)); };
  EXPECT_ERROR(export_onnx(bits, {4, 3}), UserError,
               "export_onnx: bitcast: ONNX has no operator to bitcast f32 to i32");
}

TEST(OnnxExportErrors, dropout_in_training) {
  const auto dropped = [](const Net& net, In in) { return FAULTY(dropout(net.fc(in["x"]), 0.5)); };
  const auto function = compile_function(
      Net{}, dropped, {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}, .training = true});
  EXPECT_ERROR(function.export_onnx(temporary("dropout.onnx")), UserError,
               "export_onnx: dropout: random numbers cannot be exported");
}

TEST(OnnxExportErrors, metadata_key_twice) {
  const auto forward = [](const Net& net, In in) { return net.fc(in["x"]); };
  const OnnxOptions options = {.metadata = {{"a", "1"}, {"b", "2"}, {"a", "1"}}};
  EXPECT_ERROR(export_onnx(forward, {4, 3}, options), UserError,
               "export_onnx: OnnxOptions::metadata has the key 'a' more than once; expected "
               "different keys");
}

TEST(OnnxExportErrors, state_updated) {
  const auto counted = [](const Net& net, In in) {
    const Tensor runs = state("runs", {});
    FAULTY(set_state("runs", runs + 1.0));
    return net.fc(in["x"]) + runs;
  };
  EXPECT_ERROR(export_onnx(counted, {4, 3}), UserError,
               "export_onnx: the state 'runs' is updated, but an ONNX model keeps no state between "
               "runs; set OnnxOptions::states to export it as an input and an output");
}

TEST(OnnxExportErrors, output_named_like_input) {
  const auto named = [](const Net& net, In in) {
    return std::map<std::string, Tensor>{{"x", net.fc(in["x"])}};
  };
  EXPECT_ERROR(
      export_onnx(named, {4, 3}), UserError,
      "export_onnx: the output 'x' has the name of another input, output, parameter or state");
}

TEST(OnnxExportErrors, doc_not_utf8) {
  EXPECT_ERROR(export_onnx(predict, {4, 3}, {.doc = "\xff"}), IoError,
               temporary("model.onnx") + ": \"\\xff\" is not UTF-8");
}

TEST(OnnxExportErrors, two_traced_sizes) {
  EXPECT_ERROR(
      export_onnx(predict, {kDynamic, 3}, {.sizes = {8, 16, 8}}), UserError,
      "export_onnx: OnnxOptions::sizes must be at least 3 different sizes above 1, got [8,16,8]");
}

TEST(OnnxExportErrors, size_name_empty) {
  EXPECT_ERROR(
      export_onnx(predict, {kDynamic, 3}, {.size_name = ""}), UserError,
      "export_onnx: OnnxOptions::size_name is empty; expected a name for the dynamic size");
}

TEST(OnnxExportErrors, traced_size_too_large) {
  const auto placed = [](const Net& net, In in) {
    const Tensor x = in["x"];
    return x + FAULTY(narrow(net.fc.weight, 0, 0, x.size(0)));
  };
  EXPECT_ERROR(export_onnx(placed, {kDynamic, 3}, {.sizes = {2, 4, 8}}), ShapeError,
               "narrow: start 0 and length 4 do not fit axis 0 of [2,3]");
}

TEST(OnnxExportErrors, kernel_depends_on_dynamic_size) {
  const auto pooled = [](const Net&, In in) {
    const Tensor x = in["x"];
    return FAULTY(avg_pool2d(x, {2, x.size(3)}));
  };
  EXPECT_ERROR(export_onnx(pooled, {1, 2, 4, kDynamic}), UserError,
               "export_onnx: avg_pool2d: 'kernel_shape' of the operator AveragePool depends on the "
               "dynamic size, but must be a constant in the file");
}

TEST(OnnxExportErrors, half_of_dynamic_size) {
  const auto half = [](const Net&, In in) { return FAULTY(chunk(in["x"], 2)[0]); };
  EXPECT_ERROR(export_onnx(half, {kDynamic, 3}, {.sizes = {3, 7, 10, 12}}), UserError,
               "export_onnx: chunk: a number is 2 for a dynamic size of 3 and 4 for a dynamic size "
               "of 7; expected a * size + b with integers a and b, or 1 / (a * size + b)");
}

TEST(OnnxExportErrors, root_of_dynamic_size) {
  const auto scaled = [](const Net&, In in) {
    const Tensor x = in["x"];
    const double root = std::sqrt(static_cast<double>(x.size(0)));
    return FAULTY(x * root);
  };
  EXPECT_ERROR(
      export_onnx(scaled, {kDynamic, 3}), UserError,
      "export_onnx: mul: a number is 1.732050776 for a dynamic size of 3 and 2.645751238 for a "
      "dynamic size of 7; expected a * size + b with integers a and b, or 1 / (a * size + b)");
}

TEST(OnnxExportErrors, squares_up_to_dynamic_size) {
  const auto weighted = [](const Net&, In in) {
    const Tensor x = in["x"];
    std::vector<float> squares;
    for (std::int64_t i = 0; i < x.size(0); ++i) squares.push_back(static_cast<float>(i * i));
    return FAULTY(x * constant(squares, {x.size(0)}));
  };
  EXPECT_ERROR(export_onnx(weighted, {kDynamic}), UserError,
               "export_onnx: mul: a constant is [3] for a dynamic size of 3 and [7] for a dynamic "
               "size of 7; expected a * size + b evenly spaced integers along one of its axes");
}

TEST(OnnxExportErrors, size_one_traced_differently) {
  const auto apart = [](const Net&, In in) {
    const Tensor x = in["x"];
    if (x.size(0) == 1) return x;
    return FAULTY(exp(x));
  };
  EXPECT_ERROR(export_onnx(apart, {kDynamic, 3}), UserError,
               "export_onnx: exp: the operations traced for a dynamic size of 1 differ from those "
               "for larger sizes; set OnnxOptions::sizes to ignore size 1");
}

TEST(OnnxExportErrors, op_count_depends_on_dynamic_size) {
  const auto steps = [](const Net&, In in) {
    Tensor x = in["x"];
    const std::int64_t count = x.size(0);
    for (std::int64_t i = 0; i < count; ++i) x = FAULTY(sin(x));
    return x;
  };
  EXPECT_ERROR(export_onnx(steps, {kDynamic, 3}, {.sizes = {3, 7, 10}}), UserError,
               "export_onnx: sin: the traces for dynamic sizes 3 and 7 differ in more than sizes; "
               "OnnxOptions::sizes sets the traced sizes");
}

TEST(OnnxExportErrors, output_count_depends_on_dynamic_size) {
  const auto some = [](const Net&, In in) {
    const Tensor x = in["x"];
    std::map<std::string, Tensor> outputs = {{"all", exp(x)}};
    if (x.size(0) > 50) outputs["first"] = narrow(x, 0, 0, 50);
    return outputs;
  };
  EXPECT_ERROR(export_onnx(some, {kDynamic, 3}), UserError,
               "export_onnx: the outputs for dynamic sizes 3 and 54 differ in more than sizes");
}

TEST(WebExportErrors, path_is_file) {
  const std::string path = temporary("file");
  write_file_atomically(path, "no folder");
  const auto forward = compiled_function(predict);
  EXPECT_ERROR(forward.export_web(path), IoError,
               StartsWith(path + ": cannot create the folder: "));
}

TEST(WebExportErrors, custom_op_without_wgsl) {
  const CustomOp twice({.name = "twice",
                        .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                        .cpu = [](const CustomCall&) {}});
  const auto doubled = [&](const Net& net, In in) { return FAULTY(twice({net.fc(in["x"])})); };
  const auto function = compiled_function(doubled);
  EXPECT_ERROR(function.export_web(temporary("custom")), UserError,
               "custom op 'twice' has no WGSL body");
}

TEST(WebExportErrors, size_repeated) {
  const auto forward = compiled_function(predict, {kDynamic, 3});
  EXPECT_ERROR(forward.export_web(temporary("sizes"), {.sizes = {1, 8, 1}}), UserError,
               "export_web: WebOptions::sizes must be different sizes of at least 1, got [1,8,1]");
}

TEST(WebExportErrors, sizes_without_dynamic_size) {
  const auto forward = compiled_function(predict);
  EXPECT_ERROR(forward.export_web(temporary("sizes"), {.sizes = {4}}), UserError,
               "export_web: WebOptions::sizes is [4], but no input has a dynamic size");
}

TEST(WebExportErrors, doc_not_utf8) {
  const auto forward = compiled_function(predict);
  EXPECT_ERROR(forward.export_web(temporary("doc"), {.doc = "\xff"}), UserError,
               "export_web: a name or WebOptions::doc is not valid UTF-8");
}

}  // namespace tensorgrad::testing
