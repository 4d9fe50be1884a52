// SPDX-License-Identifier: MIT
// Generates the op definitions and builders from pointwise.def: types, gradients, evaluation in
// double.
#include "ops/pointwise.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "kernel/scalar_math.h"
#include "ops/pointwise_rows.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- the CPU column for scalars ----------------------------------------------------------------

// Functors named `exp_row` and so on. (A struct named `exp` would hide the function.)
}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::scalar_math {
namespace {
#define POINTWISE1(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    auto operator()(A a) const {                 \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE2(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    auto operator()(A a, A b) const {            \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE3(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    auto operator()(bool a, A b, A c) const {    \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE4(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    auto operator()(A a, A b, A c, A d) const {  \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE_TO(name, takes, cpu, ...) \
  struct name##_row {                       \
    template <class A, class T>             \
    auto operator()(A a, T to) const {      \
      return cpu;                           \
    }                                       \
  };
#include "ops/pointwise.def"
}  // namespace
}  // namespace tensorgrad::scalar_math

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- builders ----------------------------------------------------------------------------------

namespace {

// Returns the type of a number as operand `i`. At least one operand must be a value.
Type type_of_number(const OpDef& def, const std::vector<Arg>& args, std::size_t i) {
  const auto first = std::find_if(args.begin(), args.end(), [](auto& a) { return !a.is_number(); });
  Type type = first->value.type();
  if (def.arity != 3) return type;
  const Arg& other = args[3 - i];
  type.dtype = i == 0 ? DType::kBool : other.is_number() ? DType::kF32 : other.value.dtype();
  return type;
}

}  // namespace

Expr op::apply_pointwise(const OpDef& def, const std::vector<Arg>& args) {
  std::vector<Expr> values;
  for (const Arg& arg : args) {
    if (!arg.is_number()) values.push_back(arg.value);
  }
  CHECK(!values.empty(), std::string(def.name) + " of only numbers has no shape");
  Builder& builder = *values.front().builder;
  const bool upcasts = !takes_f16(def), half = upcasts && upcast(values);
  std::vector<Expr> inputs;
  inputs.reserve(args.size());
  auto value = values.begin();
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_number()) {
      inputs.push_back(*value++);
      continue;
    }
    Type type = type_of_number(def, args, i);
    if (upcasts) type.dtype = register_dtype(type.dtype);
    inputs.push_back(full(builder, args[i].number, type));
  }
  return downcast(apply(builder, def, inputs), half);
}

namespace op {
#define POINTWISE1(name, ...) \
  Expr name(Arg a) { return apply_pointwise(ops::name, {a}); }
#define POINTWISE2(name, ...) \
  Expr name(Arg a, Arg b) { return apply_pointwise(ops::name, {a, b}); }
#define POINTWISE3(name, ...) \
  Expr name(Arg a, Arg b, Arg c) { return apply_pointwise(ops::name, {a, b, c}); }
#define POINTWISE4(name, ...) \
  Expr name(Arg a, Arg b, Arg c, Arg d) { return apply_pointwise(ops::name, {a, b, c, d}); }
#define POINTWISE_TO(name, ...)                                                              \
  Expr name(Expr a, DType dtype) {                                                           \
    return apply(*a.builder, ops::name, {a}, {{"dtype", static_cast<std::int64_t>(dtype)}}); \
  }
#include "ops/pointwise.def"
}  // namespace op

Expr operator+(Arg a, Arg b) { return op::add(a, b); }
Expr operator-(Arg a, Arg b) { return op::sub(a, b); }
Expr operator*(Arg a, Arg b) { return op::mul(a, b); }
Expr operator/(Arg a, Arg b) { return op::div(a, b); }
Expr operator-(Expr a) { return op::neg(a); }

// ---- the gradient column -----------------------------------------------------------------------

namespace op::gradients {
namespace {

constexpr double kLn2 = 0.693147180559945309;
constexpr double kTwoOverSqrtPi = 1.12837916709551257;

struct None {};
const None none{};
const Expr zero;

// Returns the gradient of an operand of minimum or maximum: 0 if it is not selected, half at a tie,
// otherwise all. If one of the operands is NaN, both get all.
Expr half_at_ties(Expr dy, Expr a, Expr b, Expr loses) {
  return where(loses, 0, where(eq(a, b), dy * 0.5, dy));
}

// Returns 1/n, or 0 if n is 0, with finite derivatives there too.
Expr reciprocal_or_zero(Expr n) {
  const Expr at_zero = eq(n, 0);
  return where(at_zero, 0, reciprocal(where(at_zero, 1, n)));
}

// Returns b a^(b-1), or 0 if b is 0 for any a. The exponent is replaced there to stay finite.
Expr pow_grad_base(Expr dy, Expr a, Expr b) {
  const Expr constant_one = eq(b, 0);
  return where(constant_one, 0, dy * (b * pow(a, where(constant_one, 1, b) - 1)));
}

// Returns a^b log a, or 0 if a is 0 and b >= 0, where the logarithm is taken of 1.
Expr pow_grad_exponent(Expr y, Expr dy, Expr a, Expr b) {
  const Expr at_zero = logical_and(eq(a, 0), ge(b, 0));
  return dy * (y * log(where(at_zero, 1, a)));
}

// Computes (e^(a/2))^2 / 2 + (e^(-a/2))^2 / 2, which does not overflow before the result does.
Expr cosh(Expr a) {
  const Expr up = exp(a * 0.5), down = exp(a * -0.5);
  return up * 0.5 * up + down * 0.5 * down;
}

// Only casts between float types propagate a gradient.
Expr cast_grad(Expr dy, Expr a) {
  const DType from = a.dtype(), to = dy.dtype();
  if (register_dtype(from) != DType::kF32) return zero;
  return from == to ? dy : cast(dy, from);
}

// std::tuple{...} with braces creates the nodes of the gradients in operand order.
#define POINTWISE1(name, takes, gives, cpu, wgsl, da, ...)                                         \
  struct name##_row {                                                                              \
    static auto rule([[maybe_unused]] Expr y, [[maybe_unused]] Expr dy, [[maybe_unused]] Expr a) { \
      return std::tuple{da};                                                                       \
    }                                                                                              \
  };
#define POINTWISE2(name, takes, gives, cpu, wgsl, da, db, ...)                                   \
  struct name##_row {                                                                            \
    static auto rule([[maybe_unused]] Expr y, [[maybe_unused]] Expr dy, [[maybe_unused]] Expr a, \
                     [[maybe_unused]] Expr b) {                                                  \
      return std::tuple{da, db};                                                                 \
    }                                                                                            \
  };
#define POINTWISE3(name, takes, gives, cpu, wgsl, da, db, dc, ...)                               \
  struct name##_row {                                                                            \
    static auto rule([[maybe_unused]] Expr y, [[maybe_unused]] Expr dy, [[maybe_unused]] Expr a, \
                     [[maybe_unused]] Expr b, [[maybe_unused]] Expr c) {                         \
      return std::tuple{da, db, dc};                                                             \
    }                                                                                            \
  };
#define POINTWISE4(name, takes, gives, cpu, wgsl, da, db, dc, dd, ...)                            \
  struct name##_row {                                                                             \
    static auto rule([[maybe_unused]] Expr y, [[maybe_unused]] Expr dy, [[maybe_unused]] Expr a,  \
                     [[maybe_unused]] Expr b, [[maybe_unused]] Expr c, [[maybe_unused]] Expr d) { \
      return std::tuple{da, db, dc, dd};                                                          \
    }                                                                                             \
  };
#define POINTWISE_TO(name, takes, cpu, wgsl, da, ...) \
  POINTWISE1(name, takes, Asked, cpu, wgsl, da, __VA_ARGS__)
#include "ops/pointwise.def"

template <class Rule, std::size_t... kIn>
constexpr auto cells(Rule rule, GradContext* ctx, std::index_sequence<kIn...>)
    -> decltype(rule(Expr{}, Expr{}, ((void)kIn, Expr{})...)) {
  return rule(ctx->y(), ctx->dy(), ctx->in(kIn)...);
}

ValueId id_of(None) { return kNoValue; }
ValueId id_of(Expr gradient) { return gradient.id; }

template <class Row, class Inputs>
std::vector<ValueId> run(GradContext& ctx) {
  return std::apply([](auto... cell) { return std::vector<ValueId>{id_of(cell)...}; },
                    cells(&Row::rule, &ctx, Inputs()));
}

template <class... Cell>
constexpr bool all_none(std::tuple<Cell...>*) {
  return (std::is_same_v<Cell, None> && ...);
}

template <class Row, std::size_t kArity>
constexpr GradFn function() {
  using Inputs = std::make_index_sequence<kArity>;
  using Cells = decltype(cells(&Row::rule, nullptr, Inputs()));
  return all_none(static_cast<Cells*>(nullptr)) ? nullptr : &run<Row, Inputs>;
}

}  // namespace
}  // namespace op::gradients

// ---- types and evaluation ----------------------------------------------------------------------

}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::pointwise {
namespace {

std::string listed(Takes takes) {
  std::string text;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI32, DType::kU32, DType::kBool}) {
    if (!contains(takes, dtype)) continue;
    text += (text.empty() ? "" : " or ") + std::string(to_string(dtype));
  }
  return text;
}

[[noreturn]] void refuse(Takes takes, DType given) {
  throw DtypeError("expected " + listed(takes) + ", got " + std::string(to_string(given)));
}

// Returns a text such as "a [64,32], b [16,8]".
template <class Text>
std::string operands(std::span<const Type> inputs, Text text) {
  std::string all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    all += (i == 0 ? "" : ", ") + std::string(1, static_cast<char>('a' + i)) + " " +
           std::string(text(inputs[i]));
  }
  return all;
}

Type infer_type(Takes takes, Gives gives, std::span<const Type> inputs, const Attrs& attrs) {
  // The first of three operands is a condition.
  const std::span<const Type> values = inputs.size() == 3 ? inputs.subspan(1) : inputs;
  const Type& last = inputs.back();
  if (inputs.size() == 3 && inputs[0].dtype != DType::kBool) {
    throw DtypeError("the condition must be bool, got " + std::string(to_string(inputs[0].dtype)));
  }
  for (const Type& type : values) {
    if (!contains(takes, type.dtype)) refuse(takes, type.dtype);
  }
  for (const Type& type : values) {
    if (type.dtype == last.dtype) continue;
    throw DtypeError("dtypes differ: " +
                     operands(inputs, [](const Type& t) { return to_string(t.dtype); }));
  }
  for (const Type& type : inputs) {
    if (type.shape == last.shape) continue;
    throw ShapeError("shapes differ: " +
                     operands(inputs, [](const Type& t) { return to_string(t.shape); }));
  }
  if (gives == Same) return last;
  if (gives == ToBool) return {DType::kBool, last.shape};
  const auto asked = dtype_attr(attrs);
  if (!contains(takes, asked)) {
    throw DtypeError("expected " + listed(takes) + " as the target, got " +
                     std::string(to_string(asked)));
  }
  return {asked, last.shape};
}
template <Takes kTakes, Gives kGives>
Type infer(std::span<const Type> inputs, const Attrs& attrs) {
  return infer_type(kTakes, kGives, inputs, attrs);
}

template <DType kType>
auto fetch(double v) {
  if constexpr (kType == DType::kF32)
    return scalar_math::Real{v};
  else if constexpr (kType == DType::kI32)
    return scalar_math::Int{static_cast<std::int32_t>(v)};
  else if constexpr (kType == DType::kU32)
    return scalar_math::Uint{static_cast<std::uint32_t>(v)};
  else
    return v != 0;
}
double stored(bool v) { return v ? 1 : 0; }
template <class T>
double stored(scalar_math::Scalar<T> v) {
  return static_cast<double>(v.v);
}

// Computes one element. kArity 0 denotes a cast.
template <class Row, int kArity, DType kFrom, DType kTo>
double element(const double* args) {
  const Row row{};
  const auto x = [&](std::size_t k) { return fetch<kFrom>(args[k]); };
  if constexpr (kArity == 0)
    return stored(row(x(0), scalar_math::To<decltype(fetch<kTo>(0))>()));
  else if constexpr (kArity == 1)
    return stored(row(x(0)));
  else if constexpr (kArity == 2)
    return stored(row(x(0), x(1)));
  else if constexpr (kArity == 3)
    return stored(row(args[0] != 0, x(1), x(2)));
  else
    return stored(row(x(0), x(1), x(2), x(3)));
}

template <class Row, int kArity, Takes kTakes, Gives kGives, int kPair = 0>
constexpr void fill(ScalarTable& table) {
  if constexpr (kPair < 16) {
    constexpr auto kFrom = static_cast<DType>(kPair / 4), kTo = static_cast<DType>(kPair % 4);
    if constexpr (maps(kTakes, kGives, kFrom, kTo))
      table[kPair / 4][kPair % 4] = &element<Row, kArity, kFrom, kTo>;
    fill<Row, kArity, kTakes, kGives, kPair + 1>(table);
  }
}
template <class Row, int kArity, Takes kTakes, Gives kGives>
constexpr ScalarTable scalars() {
  ScalarTable table{};
  fill<Row, kArity, kTakes, kGives>(table);
  return table;
}

std::size_t dtype_index(DType dtype) { return static_cast<std::size_t>(register_dtype(dtype)); }

void eval(const EvalContext& ctx, RefTensor& out) {
  const DType result = ctx.node.type.dtype;
  const PointwiseCode& code = *ctx.node.op->code;
  const ScalarFn function =
      code.scalar[dtype_index(ctx.inputs.back()->type.dtype)][dtype_index(result)];
  CHECK(function != nullptr, std::string(code.name));
  out.type = ctx.node.type;
  out.data.resize(ctx.inputs[0]->data.size());
  double args[4] = {};
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    for (std::size_t k = 0; k < ctx.inputs.size(); ++k) args[k] = ctx.inputs[k]->data[i];
    out.data[i] = function(args);
    if (result == DType::kF16) out.data[i] = scalar_math::round_to_f16({out.data[i]}).v;
  }
}

// ---- op definitions ----------------------------------------------------------------------------

// The WGSL column: one text for all element types, or either(f32, other types).
struct Wgsl {
  std::string_view real, other;
  constexpr Wgsl(const char* all) : real(all), other(all) {}  // NOLINT(google-explicit-constructor)
  constexpr Wgsl(const char* r, const char* o) : real(r), other(o) {}
};
constexpr Wgsl either(const char* real, const char* other) { return {real, other}; }

constexpr std::array<std::string_view, 4> texts(Takes takes, Wgsl wgsl) {
  std::array<std::string_view, 4> all;
  for (int i = 0; i < 4; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (contains(takes, dtype)) all[static_cast<std::size_t>(i)] = i == 0 ? wgsl.real : wgsl.other;
  }
  return all;
}

template <Row kRow>
CpuBlockFn block_of(DType from, DType to) {
  return block(kRow, from, to);
}

constexpr SampleRange range(double lo, double hi) { return {lo, hi}; }
template <class... Range>
constexpr std::size_t count(Range...) {
  return sizeof...(Range);
}

}  // namespace
}  // namespace tensorgrad::pointwise

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace ops {
// Names used in the columns of the table.
using namespace pointwise;  // NOLINT(google-build-using-namespace)

#define RECORD(name_, inputs_, shape_, takes_, gives_, wgsl_, ...)              \
  static constexpr PointwiseCode name_##_code = {                               \
      .name = #name_,                                                           \
      .arity = inputs_,                                                         \
      .wgsl = texts(takes_, wgsl_),                                             \
      .block = &block_of<kRow_##name_>,                                         \
      .scalar = scalars<scalar_math::name_##_row, shape_, takes_, gives_>()};   \
  static_assert(count(__VA_ARGS__) == inputs_, "one sample range per operand"); \
  constinit const OpDef name_ = {                                               \
      .name = #name_,                                                           \
      .kind = OpKind::kPointwise,                                               \
      .arity = inputs_,                                                         \
      .infer = &infer<takes_, gives_>,                                          \
      .grad = op::gradients::function<op::gradients::name_##_row, inputs_>(),   \
      .eval = &eval,                                                            \
      .view = nullptr,                                                          \
      .code = &name_##_code,                                                    \
      .samples = {__VA_ARGS__}};
#define POINTWISE1(name, takes, gives, cpu, wgsl, da, ...) \
  RECORD(name, 1, 1, takes, gives, wgsl, __VA_ARGS__)
#define POINTWISE2(name, takes, gives, cpu, wgsl, da, db, ...) \
  RECORD(name, 2, 2, takes, gives, wgsl, __VA_ARGS__)
#define POINTWISE3(name, takes, gives, cpu, wgsl, da, db, dc, ...) \
  RECORD(name, 3, 3, takes, gives, wgsl, __VA_ARGS__)
#define POINTWISE4(name, takes, gives, cpu, wgsl, da, db, dc, dd, ...) \
  RECORD(name, 4, 4, takes, gives, wgsl, __VA_ARGS__)
#define POINTWISE_TO(name, takes, cpu, wgsl, da, ...) \
  RECORD(name, 1, 0, takes, Asked, wgsl, __VA_ARGS__)
#include "ops/pointwise.def"
#undef RECORD
}  // namespace ops

std::span<const OpDef* const> pointwise_ops() {
  static constexpr const OpDef* kAll[] = {
#define POINTWISE1(name, ...) &ops::name,
#define POINTWISE2(name, ...) &ops::name,
#define POINTWISE3(name, ...) &ops::name,
#define POINTWISE4(name, ...) &ops::name,
#define POINTWISE_TO(name, ...) &ops::name,
#include "ops/pointwise.def"
  };
  return kAll;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
