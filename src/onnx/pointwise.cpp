// SPDX-License-Identifier: MIT
// The ops of pointwise.def. If ONNX leaves a case undefined or an operator lacks the element type,
// composes the result from operations that are defined. This concerns integer overflow, division by
// zero, shifts, and casts of numbers that the new type cannot represent.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "onnx/writers.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::onnx {
namespace {

constexpr double kTwo31 = 0x1p31, kTwo32 = 0x1p32;

// i32 wraps in INT32; u32 needs wrapping in INT64.
std::string arithmetic(WriteContext& ctx, const char* name, std::vector<std::string> operands) {
  const std::string y = ctx.op(name, std::move(operands));
  return ctx.dtype() == DType::kU32 ? ctx.wrapped(y, DType::kU32) : y;
}
std::string add(WriteContext& ctx) { return arithmetic(ctx, "Add", ctx.all()); }
std::string sub(WriteContext& ctx) { return arithmetic(ctx, "Sub", ctx.all()); }
std::string mul(WriteContext& ctx) { return arithmetic(ctx, "Mul", ctx.all()); }
std::string square(WriteContext& ctx) { return arithmetic(ctx, "Mul", {ctx.in(0), ctx.in(0)}); }

// Integers have no fraction, and unsigned ones no sign, so the op is the identity.
template <const char* kName>
std::string of_real(WriteContext& ctx) {
  return ctx.op(ctx.dtype() == DType::kF32 ? kName : "Identity", ctx.all());
}
template <const char* kName>
std::string of_signed(WriteContext& ctx) {
  return ctx.op(ctx.dtype() == DType::kU32 ? "Identity" : kName, ctx.all());
}
constexpr char kFloor[] = "Floor", kCeil[] = "Ceil", kRound[] = "Round", kAbs[] = "Abs",
               kRelu[] = "Relu";

std::string neg(WriteContext& ctx) { return arithmetic(ctx, "Neg", ctx.all()); }
std::string bitwise_not(WriteContext& ctx) { return arithmetic(ctx, "BitwiseNot", ctx.all()); }
std::string isnan(WriteContext& ctx) {
  if (ctx.dtype() == DType::kF32) return ctx.op("IsNaN", ctx.all());
  return ctx.op("Not", {ctx.op("Equal", {ctx.in(0), ctx.in(0)})});
}

// Uses repeated squaring modulo 2^32, one step for each bit of the exponent. The operator Pow
// computes in floats.
std::string pow(WriteContext& ctx) {
  if (ctx.dtype() == DType::kF32) return ctx.op("Pow", ctx.all());
  const std::string one = ctx.wide(1), two = ctx.wide(2), none = ctx.wide(0);
  std::string x = ctx.wrapped(ctx.widened(0), DType::kU32), y = one;
  std::string n = ctx.wrapped(ctx.widened(1), DType::kU32);
  for (int bit = 0; bit < 32; ++bit) {
    const std::string odd = ctx.op("Equal", {ctx.op("Mod", {n, two}), one});
    const std::string more = ctx.wrapped(ctx.op("Mul", {y, x}), DType::kU32);
    y = ctx.op("Where", {odd, more, y});
    x = ctx.wrapped(ctx.op("Mul", {x, x}), DType::kU32);
    n = ctx.op("Div", {n, two});
  }
  if (ctx.dtype() == DType::kU32) return y;
  const std::string unit = ctx.op("Equal", {ctx.op("Abs", {ctx.widened(0)}), one});
  const std::string below = ctx.op("Less", {ctx.widened(1), none});
  const std::string lost = ctx.op("And", {below, ctx.op("Not", {unit})});
  return ctx.wrapped(ctx.op("Where", {lost, none, y}), DType::kI32);
}

// x / 0 = x % 0 = 0. Computed in INT64, in which the smallest i32 / -1 does not overflow.
std::string whole_division(WriteContext& ctx, const char* name, io::OnnxAttributes attributes) {
  const std::string a = ctx.widened(0), b = ctx.widened(1), none = ctx.wide(0);
  const std::string by_zero = ctx.op("Equal", {b, none});
  const std::string y =
      ctx.op(name, {a, ctx.op("Where", {by_zero, ctx.wide(1), b})}, std::move(attributes));
  return ctx.wrapped(ctx.op("Where", {by_zero, none, y}), ctx.dtype());
}
std::string div(WriteContext& ctx) {
  if (ctx.dtype() == DType::kF32) return ctx.op("Div", ctx.all());
  return whole_division(ctx, "Div", {});
}
std::string fmod(WriteContext& ctx) {
  const io::OnnxAttributes of_dividend = {{"fmod", std::int64_t{1}}};
  if (ctx.dtype() == DType::kF32) return ctx.op("Mod", ctx.all(), of_dividend);
  return whole_division(ctx, "Mod", of_dividend);
}

// The operators Min and Max propagate NaN. For INT64, onnxruntime 1.31 compares only 32 bits.
template <bool kMax>
std::string extreme(WriteContext& ctx) {
  if (ctx.dtype() != DType::kU32) return ctx.op(kMax ? "Max" : "Min", ctx.all());
  const std::string first = ctx.op(kMax ? "Greater" : "Less", ctx.all());
  return ctx.op("Where", {first, ctx.in(0), ctx.in(1)});
}

// The operator Sign propagates NaN, for which sign is 0. For INT64, onnxruntime 1.31 uses only 32
// bits.
std::string sign(WriteContext& ctx) {
  if (ctx.dtype() == DType::kU32)
    return ctx.cast(ctx.op("Greater", {ctx.in(0), ctx.wide(0)}), OnnxType::kInt64);
  std::string y = ctx.op("Sign", {ctx.in(0)});
  if (ctx.dtype() != DType::kF32) return y;
  return ctx.op("Where", {ctx.op("IsNaN", {ctx.in(0)}), ctx.number(0), y});
}

std::string trunc(WriteContext& ctx) {
  if (ctx.dtype() != DType::kF32) return ctx.op("Identity", ctx.all());
  const std::string x = ctx.in(0);
  return ctx.op("Where",
                {ctx.op("Less", {x, ctx.number(0)}), ctx.op("Ceil", {x}), ctx.op("Floor", {x})});
}

std::string exp2(WriteContext& ctx) { return ctx.op("Pow", {ctx.number(2), ctx.in(0)}); }
std::string log2(WriteContext& ctx) {
  return ctx.op("Mul", {ctx.op("Log", {ctx.in(0)}), ctx.number(1 / std::numbers::ln2)});
}
std::string rsqrt(WriteContext& ctx) { return ctx.op("Reciprocal", {ctx.op("Sqrt", {ctx.in(0)})}); }

// With u = exp(x) as rounded, computes (u - 1) x / log(u) near 0 (Higham 2002, section 1.14.1),
// otherwise u - 1.
std::string expm1(WriteContext& ctx) {
  const std::string x = ctx.in(0), one = ctx.number(1);
  const std::string u = ctx.op("Exp", {x}), less = ctx.op("Sub", {u, one});
  const std::string exact = ctx.op("Div", {ctx.op("Mul", {less, x}), ctx.op("Log", {u})});
  const std::string near = ctx.op("Less", {ctx.op("Abs", {x}), one});
  const std::string y = ctx.op("Where", {near, exact, less});
  return ctx.op("Where", {ctx.op("Equal", {u, one}), x, y});
}

// With u = 1 + x as rounded, computes log(u) x / (u - 1) (same source), or log(u) if u is x.
std::string log1p(WriteContext& ctx) {
  const std::string x = ctx.in(0), one = ctx.number(1);
  const std::string u = ctx.op("Add", {x, one}), log = ctx.op("Log", {u});
  const std::string exact = ctx.op("Mul", {log, ctx.op("Div", {x, ctx.op("Sub", {u, one})})});
  const std::string y = ctx.op("Where", {ctx.op("Equal", {u, x}), log, exact});
  return ctx.op("Where", {ctx.op("Equal", {u, one}), x, y});
}

// Also true for -0, whose reciprocal is -inf.
std::string is_negative(WriteContext& ctx, const std::string& x) {
  const std::string zero = ctx.number(0);
  return ctx.op("Or",
                {ctx.op("Less", {x, zero}), ctx.op("Less", {ctx.op("Reciprocal", {x}), zero})});
}

// Computes the angle of (b, a) from the quotient of the smaller and the larger coordinate, then
// moves it to its octant.
std::string atan2(WriteContext& ctx) {
  const std::string y = ctx.in(0), x = ctx.in(1);
  const std::string height = ctx.op("Abs", {y}), width = ctx.op("Abs", {x});
  const std::string small = ctx.op("Min", {height, width}), large = ctx.op("Max", {height, width});
  const std::string quotient = ctx.op("Div", {small, large});
  const std::string at_zero = ctx.op("Equal", {large, ctx.number(0)});
  const std::string diagonal =  // 0 / 0 is 0, infinity / infinity is 1
      ctx.op("Where", {ctx.op("Equal", {small, large}), ctx.number(1), quotient});
  std::string angle = ctx.op("Atan", {ctx.op("Where", {at_zero, ctx.number(0), diagonal})});
  angle = ctx.op("Where", {ctx.op("Greater", {height, width}),
                           ctx.op("Sub", {ctx.number(std::numbers::pi / 2), angle}), angle});
  angle = ctx.op(
      "Where", {is_negative(ctx, x), ctx.op("Sub", {ctx.number(std::numbers::pi), angle}), angle});
  return ctx.op("Where", {is_negative(ctx, y), ctx.op("Neg", {angle}), angle});
}

std::string isfinite(WriteContext& ctx) {
  if (ctx.dtype() != DType::kF32) return ctx.op("Equal", {ctx.in(0), ctx.in(0)});
  return ctx.op("Not",
                {ctx.op("Or", {ctx.op("IsNaN", {ctx.in(0)}), ctx.op("IsInf", {ctx.in(0)})})});
}

std::string ne(WriteContext& ctx) { return ctx.op("Not", {ctx.op("Equal", ctx.all())}); }

// BitShift only supports unsigned integers.
std::string left_shift(WriteContext& ctx) {
  const std::string bits = ctx.cast(ctx.wrapped(ctx.widened(0), DType::kU32), OnnxType::kUint64);
  const std::string count = ctx.op("Mod", {ctx.widened(1), ctx.wide(32)});
  const std::string y = ctx.op("BitShift", {bits, ctx.cast(count, OnnxType::kUint64)},
                               {{"direction", std::string("LEFT")}});
  // At most 2^63 - 1, since the shift is at most 31.
  return ctx.wrapped(ctx.cast(y, OnnxType::kInt64), ctx.dtype());
}

// a >> n is floor(a / 2^n), also for i32: (a - a mod 2^n) / 2^n.
std::string right_shift(WriteContext& ctx) {
  const std::string count = ctx.op("Mod", {ctx.widened(1), ctx.wide(32)});
  const std::string power = ctx.cast(
      ctx.op("BitShift",
             {ctx.emitter.number(1, OnnxType::kUint64), ctx.cast(count, OnnxType::kUint64)},
             {{"direction", std::string("LEFT")}}),
      OnnxType::kInt64);
  const std::string a = ctx.widened(0);
  const std::string y = ctx.op("Div", {ctx.op("Sub", {a, ctx.op("Mod", {a, power})}), power});
  return ctx.dtype() == DType::kI32 ? ctx.cast(y, OnnxType::kInt32) : y;
}

// Not every runtime supports bool operands to select from in the operator Where.
std::string where(WriteContext& ctx) {
  if (ctx.dtype(1) != DType::kBool) return ctx.op("Where", ctx.all());
  const std::string chosen = ctx.op("And", {ctx.in(0), ctx.in(1)});
  const std::string other = ctx.op("And", {ctx.op("Not", {ctx.in(0)}), ctx.in(2)});
  return ctx.op("Or", {chosen, other});
}

// Converts f32 to an integer: towards zero, saturating, NaN to 0.
std::string saturated(WriteContext& ctx, DType to) {
  const double least = to == DType::kI32 ? -kTwo31 : 0, past = to == DType::kI32 ? kTwo31 : kTwo32;
  const std::string number =
      ctx.op("Where", {ctx.op("IsNaN", {ctx.in(0)}), ctx.number(0), ctx.in(0)});
  const std::string inside = ctx.op("Clip", {number, ctx.number(least), ctx.number(past)});
  const std::string wide = ctx.cast(inside, OnnxType::kInt64), most = ctx.wide(past - 1);
  const std::string whole = ctx.op("Where", {ctx.op("Less", {wide, most}), wide, most});
  return to == DType::kI32 ? ctx.cast(whole, OnnxType::kInt32) : whole;
}

// f16 values are computed and passed as f32.
std::string round_to_f16(WriteContext& ctx) {
  return ctx.cast(ctx.cast(ctx.in(0), OnnxType::kFloat16), OnnxType::kFloat);
}

std::string cast(WriteContext& ctx) {
  const DType from = register_dtype(ctx.dtype()), to = register_dtype(ctx.node.type.dtype);
  if (ctx.node.type.dtype == DType::kF16 && ctx.dtype() != DType::kF16) {
    const std::string real = from == to ? ctx.in(0) : ctx.cast(ctx.in(0), OnnxType::kFloat);
    return ctx.cast(ctx.cast(real, OnnxType::kFloat16), OnnxType::kFloat);
  }
  if (from == to) return ctx.op("Identity", {ctx.in(0)});
  const bool whole = to == DType::kI32 || to == DType::kU32;
  if (from == DType::kF32 && whole) return saturated(ctx, to);
  if (from != DType::kBool && whole) return ctx.wrapped(ctx.widened(0), to);
  return ctx.cast(ctx.in(0), type_of(to));
}

// Composes the number from sign, exponent and fraction, with a table of powers of two.
std::string float_of_bits(WriteContext& ctx) {
  constexpr int kExponents = 256, kBias = 150;  // for the fraction as an integer
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> powers;
  for (int e = 0; e < kExponents; ++e) powers.push_back(std::ldexp(1.0, std::max(e, 1) - kBias));
  powers.back() = infinity;
  const std::string bits = ctx.wrapped(ctx.widened(0), DType::kU32);
  const std::string size = ctx.op("Mod", {bits, ctx.wide(kTwo31)});
  const std::string exponent = ctx.op("Div", {size, ctx.wide(0x1p23)});
  const std::string fraction = ctx.op("Mod", {size, ctx.wide(0x1p23)});
  const std::string subnormal = ctx.op("Equal", {exponent, ctx.wide(0)});
  const std::string whole =
      ctx.op("Where", {subnormal, fraction, ctx.op("Add", {fraction, ctx.wide(0x1p23)})});
  const std::string power =
      ctx.op("Gather", {ctx.emitter.numbers(powers, OnnxType::kFloat, {kExponents}), exponent});
  const std::string value = ctx.op("Mul", {ctx.cast(whole, OnnxType::kFloat), power});
  const std::string is_nan = ctx.op("Greater", {size, ctx.wide(255 * 0x1p23)});
  const std::string any = ctx.op(
      "Where",
      {is_nan, ctx.emitter.number(std::numeric_limits<double>::quiet_NaN(), OnnxType::kFloat),
       value});
  const std::string negative = ctx.op("GreaterOrEqual", {bits, ctx.wide(kTwo31)});
  return ctx.op("Where", {negative, ctx.op("Neg", {any}), any});
}

std::string bitcast(WriteContext& ctx) {
  const DType from = ctx.dtype(), to = ctx.node.type.dtype;
  if (from != to && to == DType::kF32) return float_of_bits(ctx);
  if (from != to && from == DType::kF32)
    refuse(ctx.node, "ONNX has no operator to bitcast " + std::string(to_string(from)) + " to " +
                         std::string(to_string(to)));
  return cast(ctx);
}

std::string philox(WriteContext& ctx) { refuse(ctx.node, "random numbers cannot be exported"); }

}  // namespace

std::string WriteContext::wrapped(const std::string& x, DType to) {
  std::string word = op("Mod", {x, wide(kTwo32)});
  if (to == DType::kU32) return word;
  const std::string negative = op("GreaterOrEqual", {word, wide(kTwo31)});
  return cast(op("Where", {negative, op("Sub", {word, wide(kTwo32)}), word}), OnnxType::kInt32);
}

void add_pointwise(Writers& writers) {
  const Writers all = {{&ops::minimum, extreme<false>},
                       {&ops::maximum, extreme<true>},
                       {&ops::pow, pow},
                       {&ops::neg, neg},
                       {&ops::abs, of_signed<kAbs>},
                       {&ops::floor, of_real<kFloor>},
                       {&ops::ceil, of_real<kCeil>},
                       {&ops::round, of_real<kRound>},
                       {&ops::exp, "Exp"},
                       {&ops::log, "Log"},
                       {&ops::sqrt, "Sqrt"},
                       {&ops::reciprocal, "Reciprocal"},
                       {&ops::sin, "Sin"},
                       {&ops::cos, "Cos"},
                       {&ops::tan, "Tan"},
                       {&ops::tanh, "Tanh"},
                       {&ops::sinh, "Sinh"},
                       {&ops::asinh, "Asinh"},
                       {&ops::acosh, "Acosh"},
                       {&ops::atanh, "Atanh"},
                       {&ops::sigmoid, "Sigmoid"},
                       {&ops::softplus, "Softplus"},
                       {&ops::relu, of_signed<kRelu>},
                       {&ops::erf, "Erf"},
                       {&ops::isnan, isnan},
                       {&ops::eq, "Equal"},
                       {&ops::lt, "Less"},
                       {&ops::le, "LessOrEqual"},
                       {&ops::gt, "Greater"},
                       {&ops::ge, "GreaterOrEqual"},
                       {&ops::logical_and, "And"},
                       {&ops::logical_or, "Or"},
                       {&ops::logical_xor, "Xor"},
                       {&ops::logical_not, "Not"},
                       {&ops::bitwise_and, "BitwiseAnd"},
                       {&ops::bitwise_or, "BitwiseOr"},
                       {&ops::bitwise_xor, "BitwiseXor"},
                       {&ops::bitwise_not, bitwise_not},
                       {&ops::detach, "Identity"},
                       {&ops::add, add},
                       {&ops::sub, sub},
                       {&ops::mul, mul},
                       {&ops::square, square},
                       {&ops::div, div},
                       {&ops::fmod, fmod},
                       {&ops::sign, sign},
                       {&ops::trunc, trunc},
                       {&ops::round_to_f16, round_to_f16},
                       {&ops::exp2, exp2},
                       {&ops::log2, log2},
                       {&ops::rsqrt, rsqrt},
                       {&ops::expm1, expm1},
                       {&ops::log1p, log1p},
                       {&ops::atan2, atan2},
                       {&ops::isfinite, isfinite},
                       {&ops::ne, ne},
                       {&ops::bitwise_left_shift, left_shift},
                       {&ops::bitwise_right_shift, right_shift},
                       {&ops::where, where},
                       {&ops::cast, cast},
                       {&ops::bitcast, bitcast},
                       {&ops::philox, philox}};
  writers.insert(all.begin(), all.end());
}

}  // namespace tensorgrad::onnx
