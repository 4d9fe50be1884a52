// SPDX-License-Identifier: MIT
// Mistakes in the function that is traced: shapes, types, names, tensors of elsewhere.
#include "errors/mistake.h"

namespace tensorgrad::testing {
namespace {

using In = const Inputs&;

TEST(TraceErrors, matmul_of_shapes_that_do_not_fit) {
  expect_in_trace<ShapeError>("matmul: inner sizes differ: a [4,3], b [4,2]",
                              [](const Net&, In in) {
                                return sum(matmul(in["x"], in["y"]));  // error
                              });
}

TEST(TraceErrors, matmul_of_a_vector) {
  expect_in_trace<ShapeError>("matmul: at least two axes expected: a [3], b [3,2]",
                              [](const Net&, In) {
                                return sum(matmul(zeros({3}), zeros({3, 2})));  // error
                              });
}

TEST(TraceErrors, operator_on_shapes_that_do_not_broadcast) {
  expect_in_trace<ShapeError>("add: shapes do not broadcast: a [4,3], b [4,2]",
                              [](const Net&, In in) {
                                const Tensor x = in["x"];
                                const Tensor y = in["y"];
                                return sum(x + y);  // error
                              });
}

TEST(TraceErrors, layer_on_the_wrong_width) {
  expect_in_trace<ShapeError>("linear: inner sizes differ: x [4,2], weight [2,3] ([out, in])",
                              [](const Net& net, In in) {
                                return mean(net.fc(in["y"]));  // error
                              });
}

TEST(TraceErrors, types_that_differ) {
  expect_in_trace<DtypeError>("mul: dtypes differ: a f32, b i32", [](const Net&, In in) {
    return sum(in["x"] * reshape(in["i"], {4, 1}));  // error
  });
}

TEST(TraceErrors, op_that_does_not_take_the_type) {
  expect_in_trace<DtypeError>("exp: f32 expected, got i32", [](const Net&, In in) {
    return sum(exp(in["i"]));  // error
  });
}

TEST(TraceErrors, fraction_beside_integers) {
  expect_in_trace<DtypeError>("add: 0.500000 is not a whole number, and the other side is i32",
                              [](const Net&, In in) {
                                return sum(in["i"] + 0.5);  // error
                              });
}

TEST(TraceErrors, input_name_that_is_not_declared) {
  expect_in_trace<UserError>("there is no input 'image'; the inputs are i, x, y",
                             [](const Net& net, In in) {
                               return mean(net.fc(in["image"]));  // error
                             });
}

TEST(TraceErrors, axis_out_of_range) {
  expect_in_trace<ShapeError>("sum: axis 2 is not one of [4,3]", [](const Net&, In in) {
    return sum(in["x"], 2);  // error
  });
}

TEST(TraceErrors, axis_twice) {
  expect_in_trace<ShapeError>("max: an axis is named twice", [](const Net&, In in) {
    return max(in["x"], {0, -2});  // error
  });
}

TEST(TraceErrors, reshape_to_another_count) {
  expect_in_trace<ShapeError>("reshape: cannot make [5,2] (10 elements) of [4,3] (12 elements)",
                              [](const Net&, In in) {
                                return sum(reshape(in["x"], {5, 2}));  // error
                              });
}

TEST(TraceErrors, reshape_with_two_unknowns) {
  expect_in_trace<ShapeError>("reshape: cannot make [-1,-1] of [4,3]", [](const Net&, In in) {
    return sum(reshape(in["x"], {-1, -1}));  // error
  });
}

TEST(TraceErrors, narrow_beyond_the_end) {
  expect_in_trace<ShapeError>("narrow: [2,5) is not a range of axis 1 of [4,3]",
                              [](const Net&, In in) {
                                return sum(narrow(in["x"], 1, 2, 3));  // error
                              });
}

TEST(TraceErrors, permute_that_repeats_an_axis) {
  expect_in_trace<ShapeError>("permute: axes [0,0] do not name each axis of [4,3] once",
                              [](const Net&, In in) {
                                return sum(permute(in["x"], {0, 0}));  // error
                              });
}

TEST(TraceErrors, pad_by_a_negative_amount) {
  expect_in_trace<ShapeError>("pad: an amount to pad by must not be negative",
                              [](const Net&, In in) {
                                return sum(pad(in["x"], {-1, 0}));  // error
                              });
}

TEST(TraceErrors, concat_of_parts_that_differ) {
  expect_in_trace<ShapeError>("concat: parts differ on other axes than 0: [4,3] and [4,2]",
                              [](const Net&, In in) {
                                return sum(concat({in["x"], in["y"]}, 0));  // error
                              });
}

TEST(TraceErrors, gather_by_floats) {
  expect_in_trace<DtypeError>("gather: an index must be i32 or u32, got f32[4,2]",
                              [](const Net&, In in) {
                                return sum(gather(in["x"], 1, in["y"]));  // error
                              });
}

TEST(TraceErrors, cross_entropy_targets_of_the_wrong_shape) {
  expect_in_trace<ShapeError>("cross_entropy: targets must be [3] for logits [3,4], got [4]",
                              [](const Net&, In in) {
                                return cross_entropy(transpose(in["x"]), in["i"]);  // error
                              });
}

TEST(TraceErrors, mse_that_would_broadcast) {
  expect_in_trace<ShapeError>("mse: shapes differ: a [4,2], b [4,1]", [](const Net& net, In in) {
    return mse(net.fc(in["x"]), narrow(in["y"], 1, 0, 1));  // error
  });
}

TEST(TraceErrors, dropout_probability_of_one) {
  expect_in_trace<UserError>("dropout: the probability must lie in [0, 1), got 1.000000",
                             [](const Net&, In in) {
                               return sum(dropout(in["x"], 1.0));  // error
                             });
}

TEST(TraceErrors, size_of_zero) {
  expect_in_trace<ShapeError>("full: every size must be at least 1, got [2,0]",
                              [](const Net&, In in) {
                                return sum(in["x"]) + sum(zeros({2, 0}));  // error
                              });
}

TEST(TraceErrors, literal_with_too_few_values) {
  expect_in_trace<ShapeError>("literal: [3] has 3 elements, got 2 values", [](const Net&, In) {
    return sum(constant(std::vector<float>{1, 2}, {3}));  // error
  });
}

TEST(TraceErrors, loss_that_is_not_a_scalar) {
  expect_in_trace<ShapeError>(
      "gradient: the loss must be a scalar, got [4,2]; reduce it with mean() or sum()",
      [](const Net& net, In in) {
        const Tensor y = net.fc(in["x"]);
        return y * 2.0;  // error
      });
}

TEST(TraceErrors, loss_that_is_an_integer) {
  expect_in_trace<DtypeError>("gradient: the loss must be f32, got i32[]", [](const Net&, In in) {
    return sum(in["i"]);  // error
  });
}

TEST(TraceErrors, state_that_is_set_twice) {
  expect_in_trace<UserError>("set_state: 'count' is set twice", [](const Net&, In in) {
    const Tensor count = state("count", {});
    set_state("count", count + 1.0);
    set_state("count", count + 2.0);  // error
    return sum(in["x"]);
  });
}

TEST(TraceErrors, state_that_is_not_there) {
  expect_in_trace<UserError>("set_state: there is no state 'count'", [](const Net&, In in) {
    set_state("count", sum(in["x"]));  // error
    return sum(in["x"]);
  });
}

TEST(TraceErrors, op_outside_of_a_traced_function) {
  expect_mistake<UserError>(
      "full: ops may only be called in a function that is being traced (one given to compile, "
      "compile_forward or attach)",
      [] {
        static_cast<void>(full({2}, 1));  // error
      });
}

TEST(TraceErrors, tensor_of_another_trace) {
  Tensor kept;
  static_cast<void>(compiled([&](const Net& net, In in) {
    kept = in["x"];
    return mean(net.fc(kept));
  }));
  expect_in_trace<UserError>("exp: the tensor belongs to another traced function",
                             [&](const Net&, In) {
                               return sum(exp(kept));  // error
                             });
}

TEST(TraceErrors, empty_tensor) {
  expect_in_trace<UserError>("exp: the tensor is empty (default-constructed)", [](const Net&, In) {
    return sum(exp(Tensor{}));  // error
  });
}

struct Forgetful {
  nn::Linear fc{3, 2};
  Parameter scale{{2}};
  TG_MODULE(fc)
};

TEST(TraceErrors, parameter_that_tg_module_does_not_name) {
  expect_mistake<UserError>(
      "parameter [2] is not a part of the model that is traced: name its field in the TG_MODULE of "
      "its "
      "struct, and use the model that the traced function is given",
      [] {
        const auto loss = [](const Forgetful& net, In in) {
          const Tensor y = net.fc(in["x"]);
          return mean(y * net.scale);  // error
        };
        static_cast<void>(compile(
            Forgetful{}, loss,
            {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}}));
      });
}

struct Ring {
  Parameter weight{{2}};
  std::shared_ptr<Ring> next;
  TG_MODULE(weight, next)
};

TEST(TraceErrors, module_that_contains_itself) {
  auto inner = std::make_shared<Ring>();
  inner->next = inner;
  expect_mistake<UserError>(
      "model: the module 'next' contains itself",
      [&] {
        const auto loss = [](const Ring& net, In) { return sum(net.weight); };
        static_cast<void>(
            compile(*inner, loss, {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}}));
      },
      false);
  inner->next.reset();
}

TEST(TraceErrors, parameter_without_elements) {
  expect_mistake<ShapeError>("parameter: every size must be at least 1, got [0,2]", [] {
    const Parameter empty({0, 2});  // error
  });
}

}  // namespace
}  // namespace tensorgrad::testing
