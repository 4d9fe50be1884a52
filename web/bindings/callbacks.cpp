// SPDX-License-Identifier: MIT
// Ops that take JavaScript functions. web/src/callbacks.ts has their counterparts.
#include "registry.h"

namespace tensorgrad::web {
namespace {

Tensor one_tensor(const Value& value, const Where& where) { return read<Tensor>(value, where); }

// The JavaScript function passed as argument i.
class Callback {
 public:
  Callback(const Call& call, std::size_t i, const char* argument)
      : number_(call.at(i)), where_(call.where(argument)) {}

  Value operator()(const std::vector<std::vector<Tensor>>& arguments) const {
    return Tracing::current(where_.path, where_.location).callback(number_, arguments);
  }
  [[nodiscard]] Tensor one(const std::vector<std::vector<Tensor>>& arguments) const {
    return one_tensor((*this)(arguments), result());
  }
  [[nodiscard]] std::vector<Tensor> many(const std::vector<std::vector<Tensor>>& arguments) const {
    return read_tensors((*this)(arguments), result());
  }

 private:
  [[nodiscard]] Where result() const { return {where_.path + ": its result", where_.location}; }

  const Value& number_;
  Where where_;
};

void checkpoint_op(const Call& c, Writer& w) {
  const Callback function(c, 0, "function");
  put(w, checkpoint([&](const std::vector<Tensor>& in) { return function.one({in}); },
                    c.get<std::vector<Tensor>>(1, "inputs"), c.location));
}

void custom_gradient_op(const Call& c, Writer& w) {
  const Callback forward(c, 1, "forward"), backward(c, 2, "backward");
  put(w, custom_gradient(
             c.get<std::vector<Tensor>>(0, "inputs"),
             [&](const std::vector<Tensor>& in) { return forward.one({in}); },
             [&](const std::vector<Tensor>& in, Tensor y, Tensor dy) {
               return backward.many({in, {y}, {dy}});
             },
             c.location));
}

void associative_scan_op(const Call& c, Writer& w) {
  const Callback combine(c, 0, "combine");
  const int axis = c.get<int>(2, "axis", 0);
  const bool reverse = c.get<bool>(3, "reverse", false);
  if (c.at(1).kind == Kind::kTensor) {
    const auto one = [&](Tensor a, Tensor b) { return combine.one({{a}, {b}}); };
    put(w, associative_scan(Combine(one), c.get<Tensor>(1, "x"), axis, reverse, c.location));
    return;
  }
  const auto many = [&](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    return combine.many({a, b});
  };
  put(w, associative_scan(CombineMany(many), c.get<std::vector<Tensor>>(1, "x"), axis, reverse,
                          c.location));
}

// JavaScript has inferred the result type and generated the kernel.
void custom_op(const Call& c, Writer& w) {
  TensorType result{c.get<Shape>(2, "shape"), c.get<DType>(3, "dtype")};
  CustomOp::Definition definition{.name = c.get<std::string>(0, "name"),
                                  .infer = [&](const std::vector<TensorType>&) { return result; },
                                  .wgsl = [text = c.get<std::string>(4, "wgsl")](
                                              const std::vector<TensorType>&) { return text; }};
  const Callback backward(c, 5, "backward");
  if (c.at(5).present()) {
    definition.backward = [&](const std::vector<Tensor>& in, Tensor y, Tensor dy) {
      return backward.many({in, {y}, {dy}});
    };
  }
  const CustomOp op(std::move(definition), c.location);
  put(w, op(c.get<std::vector<Tensor>>(1, "inputs"), c.location));
}

// Traces the ops that `function` calls in a scope, for example of mixed precision.
template <class Scope>
void scoped_op(const Call& c, Writer& w) {
  const Scope scope(c.get<bool>(0, "on"), c.location);
  put(w, Callback(c, 1, "function").many({}));
}

constexpr std::pair<std::string_view, Op> kCallbackOps[] = {
    {"checkpoint", checkpoint_op},
    {"customGradient", custom_gradient_op},
    {"associativeScan", associative_scan_op},
    {"$customOp", custom_op},
    {"$trainingMode", scoped_op<TrainingMode>},
    {"$autocast", scoped_op<Autocast>},
};

}  // namespace

OpTable callback_ops() { return kCallbackOps; }

}  // namespace tensorgrad::web
