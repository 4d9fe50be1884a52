// SPDX-License-Identifier: MIT
// Pointwise ops: types and error messages, integers, NaN, the random generator, WGSL, operators.
#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kernel/pointwise.h"
#include "kernel/scalar_math.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kI32, DType::kU32, DType::kBool};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- types -----------------------------------------------------------------------------------

Type infer(const OpDef& op, std::vector<Type> inputs, const Attrs& attrs = {}) {
  return op.infer(inputs, attrs);
}

template <class Error>
std::string message(const OpDef& op, std::vector<Type> inputs, const Attrs& attrs = {}) {
  try {
    op.infer(inputs, attrs);
  } catch (const Error& error) {
    return error.message();
  }
  return "no such error";
}

const Type kReals = {DType::kF32, {4}};
const Type kInts = {DType::kI32, {4}};
const Type kBools = {DType::kBool, {4}};

TEST(PointwiseTypes, result_has_type_of_operands_or_bool) {
  EXPECT_EQ(infer(ops::add, {kInts, kInts}), kInts);
  EXPECT_EQ(infer(ops::lt, {kInts, kInts}), kBools);
  EXPECT_EQ(infer(ops::isnan, {kReals}), kBools);
  EXPECT_EQ(infer(ops::where, {kBools, kReals, kReals}), kReals);
}

TEST(PointwiseTypes, cast_has_the_requested_type) {
  const Attrs to_bool = {{"dtype", static_cast<std::int64_t>(DType::kBool)}};
  EXPECT_EQ(infer(ops::cast, {kReals}, to_bool), kBools);
  EXPECT_EQ(message<DtypeError>(ops::bitcast, {kReals}, to_bool),
            "expected f32 or i32 or u32 as the target, got bool");
}

TEST(PointwiseTypes, wrong_types_and_shapes_are_rejected_by_name) {
  EXPECT_EQ(message<DtypeError>(ops::exp, {kInts}), "expected f32, got i32");
  EXPECT_EQ(message<DtypeError>(ops::add, {kReals, kInts}), "dtypes differ: a f32, b i32");
  EXPECT_EQ(message<DtypeError>(ops::bitwise_left_shift, {kReals, kReals}),
            "expected i32 or u32, got f32");
  EXPECT_EQ(message<DtypeError>(ops::where, {kReals, kReals, kReals}),
            "the condition must be bool, got f32");
  EXPECT_EQ(message<ShapeError>(ops::add, {{DType::kF32, {64, 32}}, {DType::kF32, {16, 8}}}),
            "shapes differ: a [64,32], b [16,8]");
  EXPECT_EQ(message<ShapeError>(ops::where, {{DType::kBool, {2}}, kReals, kReals}),
            "shapes differ: a [2], b [4], c [4]");
}

// ---- values ----------------------------------------------------------------------------------

// Evaluates the op on one element in double.
double eval(const OpDef& op, DType dtype, std::vector<double> operands, DType result) {
  std::vector<RefTensor> tensors;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool condition = operands.size() == 3 && i == 0;
    tensors.push_back({{condition ? DType::kBool : dtype, {1}}, {operands[i]}});
  }
  std::vector<const RefTensor*> inputs;
  inputs.reserve(tensors.size());
  for (const RefTensor& tensor : tensors) inputs.push_back(&tensor);
  Node node;
  node.op = &op;
  node.type = {result, {1}};
  RefTensor out{node.type, {}};
  op.eval({node, inputs}, out);
  return out.data.at(0);
}
double on_ints(const OpDef& op, double a, double b) {
  return eval(op, DType::kI32, {a, b}, DType::kI32);
}
double on_uints(const OpDef& op, double a, double b) {
  return eval(op, DType::kU32, {a, b}, DType::kU32);
}
double on_reals(const OpDef& op, std::vector<double> operands) {
  return eval(op, DType::kF32, std::move(operands), DType::kF32);
}

TEST(PointwiseIntegers, wrap_around) {
  EXPECT_EQ(on_ints(ops::add, 2147483647, 1), -2147483648.0);
  EXPECT_EQ(on_ints(ops::sub, -2147483648.0, 1), 2147483647);
  EXPECT_EQ(on_ints(ops::mul, 65536, 65536), 0);
  EXPECT_EQ(on_uints(ops::sub, 0, 1), 4294967295.0);
  EXPECT_EQ(eval(ops::neg, DType::kI32, {-2147483648.0}, DType::kI32), -2147483648.0);
  EXPECT_EQ(eval(ops::abs, DType::kI32, {-2147483648.0}, DType::kI32), -2147483648.0);
}

TEST(PointwiseIntegers, division_truncates_and_division_by_zero_is_zero) {
  EXPECT_EQ(on_ints(ops::div, -7, 2), -3);
  EXPECT_EQ(on_ints(ops::fmod, -7, 2), -1);
  EXPECT_EQ(on_ints(ops::div, 7, 0), 0);
  EXPECT_EQ(on_ints(ops::fmod, 7, 0), 0);
  EXPECT_EQ(on_ints(ops::div, -2147483648.0, -1), -2147483648.0);
  EXPECT_EQ(on_ints(ops::fmod, -2147483648.0, -1), 0);
  EXPECT_EQ(on_uints(ops::div, 4294967295.0, 2), 2147483647);
  EXPECT_EQ(on_uints(ops::div, 7, 0), 0);
}

TEST(PointwiseIntegers, shift_by_the_count_modulo_32) {
  EXPECT_EQ(on_ints(ops::bitwise_left_shift, 1, 33), 2);
  EXPECT_EQ(on_ints(ops::bitwise_right_shift, -8, 1), -4);
  EXPECT_EQ(on_uints(ops::bitwise_right_shift, 4294967288.0, 1), 2147483644);
  EXPECT_EQ(on_ints(ops::bitwise_left_shift, 1, -1), -2147483648.0);
}

TEST(PointwiseCasts, out_of_range_saturates_and_nan_becomes_zero) {
  EXPECT_EQ(eval(ops::cast, DType::kF32, {-2.9}, DType::kI32), -2);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {3e9}, DType::kI32), 2147483647);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {-kInf}, DType::kI32), -2147483648.0);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {-1}, DType::kU32), 0);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {kInf}, DType::kU32), 4294967295.0);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {kNan}, DType::kI32), 0);
  EXPECT_EQ(eval(ops::cast, DType::kF32, {kNan}, DType::kBool), 1);
  EXPECT_EQ(eval(ops::cast, DType::kI32, {-1}, DType::kU32), 4294967295.0);
  EXPECT_EQ(eval(ops::bitcast, DType::kF32, {1}, DType::kU32), 0x3F800000);
}

TEST(PointwiseNan, passes_through_minimum_maximum_and_relu) {
  for (const OpDef* op : {&ops::minimum, &ops::maximum}) {
    EXPECT_TRUE(std::isnan(on_reals(*op, {kNan, 1}))) << op->name;
    EXPECT_TRUE(std::isnan(on_reals(*op, {1, kNan}))) << op->name;
  }
  EXPECT_TRUE(std::isnan(on_reals(ops::relu, {kNan})));
  EXPECT_EQ(on_reals(ops::sign, {kNan}), 0);
  EXPECT_EQ(eval(ops::eq, DType::kF32, {kNan, kNan}, DType::kBool), 0);
  EXPECT_EQ(eval(ops::ne, DType::kF32, {kNan, kNan}, DType::kBool), 1);
}

TEST(PointwisePow, matches_c_at_the_corners) {
  EXPECT_EQ(on_reals(ops::pow, {0, 0}), 1);
  EXPECT_EQ(on_reals(ops::pow, {-2, 3}), -8);
  EXPECT_TRUE(std::isnan(on_reals(ops::pow, {-2, 0.5})));
  EXPECT_EQ(on_reals(ops::pow, {0, -1}), kInf);
  EXPECT_EQ(on_reals(ops::pow, {kNan, 0}), 1);
  EXPECT_EQ(on_reals(ops::pow, {1, kNan}), 1);
}

// ---- random bits -----------------------------------------------------------------------------

std::vector<std::uint32_t> philox(std::vector<std::uint32_t> c, std::uint32_t k0,
                                  std::uint32_t k1) {
  using scalar_math::Uint;
  const auto block = scalar_math::philox_block<Uint>(
      {Uint{c[0]}, Uint{c[1]}, Uint{c[2]}, Uint{c[3]}}, Uint{k0}, Uint{k1});
  return {block.w0.v, block.w1.v, block.w2.v, block.w3.v};
}
using Bits = std::vector<std::uint32_t>;

// The vectors that the authors publish with their implementation (Random123, kat_vectors).
TEST(Philox, matches_the_known_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Bits{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Bits{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Bits{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, takes_word_index_modulo_4_of_block_index_over_4) {
  constexpr std::uint32_t kStream = 5, kSeed = 42, kStep = 9;
  for (std::uint32_t index = 0; index < 12; ++index) {
    const Bits block = philox({index / 4, kStep, 0, 0}, kSeed, kStream);
    EXPECT_EQ(eval(ops::philox, DType::kU32, {double(index), kStream, kSeed, kStep}, DType::kU32),
              block[index % 4]);
  }
}

// ---- WGSL ------------------------------------------------------------------------------------

TEST(PointwiseWgsl, has_text_exactly_for_types_with_a_block) {
  for (const OpDef* op : pointwise_ops()) {
    for (const DType from : kDTypes) {
      bool block = false;
      for (const DType to : kDTypes) block = block || op->code->block(from, to) != nullptr;
      EXPECT_EQ(!op->code->wgsl[static_cast<std::size_t>(from)].empty(), block)
          << op->name << " " << to_string(from);
    }
  }
}

// Adds the names of the helpers that `text` calls, directly or indirectly.
void add_helpers(std::string_view text, std::set<std::string>& names) {
  for (std::size_t at = text.find("tg_"); at != text.npos; at = text.find("tg_", at + 1)) {
    std::size_t end = at;
    while (end < text.size() && (std::isalnum(text[end]) != 0 || text[end] == '_')) ++end;
    const std::string name(text.substr(at, end - at));
    if (names.insert(name).second) add_helpers(wgsl_helper(name), names);
  }
}

TEST(PointwiseWgsl, calls_only_defined_helpers) {
  std::set<std::string> names;
  for (const OpDef* op : pointwise_ops()) {
    for (std::size_t from = 0; from < 4; ++from) {
      std::string text(op->code->wgsl[from]);
      if (text.find("{t}") == std::string::npos) {
        add_helpers(text, names);
        continue;
      }
      for (const DType to : kDTypes) {
        if (op->code->block(kDTypes[from], to) == nullptr) continue;
        std::string filled = text;
        for (std::size_t at; (at = filled.find("{t}")) != std::string::npos;) {
          filled.replace(at, 3, to_string(to));
        }
        add_helpers(filled, names);
      }
    }
  }
  EXPECT_GT(names.size(), 20U);
  for (const std::string& name : names) {
    EXPECT_NE(wgsl_helper(name).find("fn " + name + "("), std::string_view::npos) << name;
  }
  EXPECT_EQ(wgsl_helper("tg_nothing"), "");
}

TEST(PointwiseWgsl, uses_every_operand) {
  for (const OpDef* op : pointwise_ops()) {
    for (const std::string_view text : op->code->wgsl) {
      for (char k = '0'; k < '0' + op->arity && !text.empty(); ++k) {
        EXPECT_NE(text.find(std::string("{") + k + "}"), text.npos) << op->name;
      }
    }
  }
}

// ---- formulas --------------------------------------------------------------------------------

class PointwiseFormula : public ::testing::Test {
 protected:
  Expr input(const std::string& name, DType dtype) {
    return op::apply(builder_, ops::input, {},
                     {{"name", name},
                      {"dtype", static_cast<std::int64_t>(dtype)},
                      {"shape", std::vector<std::int64_t>{2, 3}}});
  }

  Graph graph_;
  Builder builder_{graph_, {"model.cpp", 7}, "test"};
};

TEST_F(PointwiseFormula, numbers_take_shape_and_dtype_of_the_other_side) {
  const Expr x = input("x", DType::kI32);
  const Expr y = 3 - x;
  EXPECT_EQ(y.type(), (Type{DType::kI32, {2, 3}}));
  EXPECT_EQ(graph_[y.id].op, &ops::sub);
  EXPECT_EQ(graph_[graph_[y.id].inputs[0]].type, y.type());
  EXPECT_EQ(graph_[y.id].location.line, 7U);
}

TEST_F(PointwiseFormula, numbers_of_where_take_the_dtype_of_the_other_branch) {
  const Expr condition = input("c", DType::kBool);
  EXPECT_EQ(op::where(condition, input("u", DType::kU32), 1).dtype(), DType::kU32);
  EXPECT_EQ(op::where(condition, 1, 0).dtype(), DType::kF32);
}

TEST_F(PointwiseFormula, errors_name_the_op_and_the_line) {
  const Expr x = input("x", DType::kI32);
  try {
    op::exp(x);
    FAIL();
  } catch (const DtypeError& error) {
    EXPECT_EQ(error.message(), "exp: expected f32, got i32");
    EXPECT_EQ(error.location().line, 7U);
  }
}

TEST_F(PointwiseFormula, two_numbers_without_a_tensor_are_rejected) {
  EXPECT_THROW(op::add(1, 2), InternalError);
}

}  // namespace
}  // namespace tensorgrad
