// SPDX-License-Identifier: MIT
// Hand-written programs, and their comparison with the oracle.
#include "program_harness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace tensorgrad::testing {
namespace {

// Like vector loops, these loops process whole multiples of 16 elements.
std::size_t padded(std::size_t n) { return (n + 15) / 16 * 16; }

// Returns element i of operand k.
template <class T>
T element(const CpuOperands& in, int k, std::size_t i) {
  return static_cast<const T*>(in.data[k])[i & in.mask[k]];
}

template <class T, class R, class F>
void loop(const CpuOperands& in, void* out, std::size_t n, F f) {
  for (std::size_t i = 0; i < padded(n); ++i) {
    static_cast<R*>(out)[i] = f(element<T>(in, 0, i), element<T>(in, 1, i));
  }
}

template <class T>
void add_block(const CpuOperands& in, void* out, std::size_t n) {
  loop<T, T>(in, out, n, [](T x, T y) { return x + y; });
}
template <class T>
void mul_block(const CpuOperands& in, void* out, std::size_t n) {
  loop<T, T>(in, out, n, [](T x, T y) { return x * y; });
}
template <class T>
void max_block(const CpuOperands& in, void* out, std::size_t n) {
  loop<T, T>(in, out, n, [](T x, T y) { return x > y ? x : y; });
}
template <class T>
void less_block(const CpuOperands& in, void* out, std::size_t n) {
  loop<T, std::uint32_t>(in, out, n, [](T x, T y) { return x < y ? 1u : 0u; });
}
void exp_block(const CpuOperands& in, void* out, std::size_t n) {
  for (std::size_t i = 0; i < padded(n); ++i) {
    static_cast<float*>(out)[i] = std::exp(element<float>(in, 0, i));
  }
}
void where_block(const CpuOperands& in, void* out, std::size_t n) {
  using U = std::uint32_t;
  for (std::size_t i = 0; i < padded(n); ++i) {
    static_cast<U*>(out)[i] = element<U>(in, element<U>(in, 0, i) != 0 ? 1 : 2, i);
  }
}
template <class T, class R>
void cast_block(const CpuOperands& in, void* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    static_cast<R*>(out)[i] = static_cast<R>(element<T>(in, 0, i));
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a template's name takes none
#define BY_TYPE(fn)                                    \
  [](DType dtype, DType) -> CpuBlockFn {               \
    if (dtype == DType::kF32) return fn<float>;        \
    if (dtype == DType::kI32) return fn<std::int32_t>; \
    return fn<std::uint32_t>;                          \
  }
// NOLINTEND(bugprone-macro-parentheses)

template <class T>
CpuBlockFn cast_from(DType result) {
  if (result == DType::kF32) return cast_block<T, float>;
  if (result == DType::kI32) return cast_block<T, std::int32_t>;
  return cast_block<T, std::uint32_t>;
}

}  // namespace

const PointwiseCode& op_add() {
  static const PointwiseCode code{
      "add", 2, {"{0} + {1}", "{0} + {1}", "{0} + {1}", ""}, BY_TYPE(add_block), {}};
  return code;
}
const PointwiseCode& op_mul() {
  static const PointwiseCode code{
      "mul", 2, {"{0} * {1}", "{0} * {1}", "{0} * {1}", ""}, BY_TYPE(mul_block), {}};
  return code;
}
const PointwiseCode& op_max() {
  static const PointwiseCode code{
      "max", 2, {"max({0}, {1})", "max({0}, {1})", "max({0}, {1})", ""}, BY_TYPE(max_block), {}};
  return code;
}
const PointwiseCode& op_less() {
  static const PointwiseCode code{
      "less", 2, {"{0} < {1}", "{0} < {1}", "{0} < {1}", ""}, BY_TYPE(less_block), {}};
  return code;
}
const PointwiseCode& op_exp() {
  static const PointwiseCode code{
      "exp", 1, {"exp({0})", "", "", ""}, [](DType, DType) -> CpuBlockFn { return exp_block; }, {}};
  return code;
}
const PointwiseCode& op_where() {
  static const PointwiseCode code{"where",
                                  3,
                                  {"select({2}, {1}, {0})", "select({2}, {1}, {0})",
                                   "select({2}, {1}, {0})", "select({2}, {1}, {0})"},
                                  [](DType, DType) -> CpuBlockFn { return where_block; },
                                  {}};
  return code;
}
const PointwiseCode& op_cast() {
  static const PointwiseCode code{"cast",
                                  1,
                                  {"{t}({0})", "{t}({0})", "{t}({0})", "{t}({0})"},
                                  [](DType dtype, DType result) -> CpuBlockFn {
                                    if (dtype == DType::kF32) return cast_from<float>(result);
                                    if (dtype == DType::kI32)
                                      return cast_from<std::int32_t>(result);
                                    return cast_from<std::uint32_t>(result);
                                  },
                                  {}};
  return code;
}

LaunchBuilder::LaunchBuilder(LaunchKind kind, const std::string& name) {
  program.launches.resize(1);
  launch().kind = std::move(kind);
  launch().name = name;
}

int LaunchBuilder::add(std::int64_t elements, BindMode mode) {
  const std::int64_t bytes = (elements * 4 + 255) / 256 * 256;
  const int number = static_cast<int>(program.buffers.size());
  program.buffers.push_back({"b" + std::to_string(number), BufferKind::kSlot, bytes, {}});
  launch().bindings.push_back({number, 0, bytes, mode});
  contents.emplace_back(static_cast<std::size_t>(bytes / 4), 0u);
  return number;
}

int LaunchBuilder::input(std::int64_t elements, DType dtype, std::uint32_t limit) {
  const int binding = add(elements, BindMode::kRead);
  for (std::int64_t i = 0; i < elements; ++i) {
    state_ = state_ * 1664525u + 1013904223u;
    const std::uint32_t random = state_ >> 8;
    const float value = static_cast<float>(random) / static_cast<float>(1 << 22) - 2.0f;
    contents.back()[static_cast<std::size_t>(i)] =
        dtype == DType::kF32 ? std::bit_cast<std::uint32_t>(value) : random % limit;
  }
  return binding;
}

int LaunchBuilder::output(std::int64_t elements) { return add(elements, BindMode::kWrite); }

int LaunchBuilder::in_place(std::int64_t elements) {
  const int binding = input(elements);
  launch().bindings.back().mode = BindMode::kReadWrite;
  return binding;
}

void LaunchBuilder::set(int binding, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    contents[static_cast<std::size_t>(binding)].at(i) = std::bit_cast<std::uint32_t>(values[i]);
  }
}

void LaunchBuilder::set_words(int binding, const std::vector<std::uint32_t>& values) {
  std::copy(values.begin(), values.end(), contents[static_cast<std::size_t>(binding)].begin());
}

int Scalar::push(Instr instr) {
  program_.instrs.push_back(std::move(instr));
  return static_cast<int>(program_.instrs.size()) - 1;
}

int Scalar::constant(float value) {
  return constant_u32(std::bit_cast<std::uint32_t>(value), DType::kF32);
}

int Scalar::constant_u32(std::uint32_t value, DType dtype) {
  Instr in;
  in.kind = InstrKind::kConst;
  in.dtype = dtype;
  in.bits = value;
  in.level = Level::kRow;
  return push(in);
}

int Scalar::runtime_scalars(int word, DType dtype) {
  Instr in;
  in.kind = InstrKind::kRuntimeScalar;
  in.dtype = dtype;
  in.index = word;
  in.level = Level::kRow;
  return push(in);
}

int Scalar::index(Level level) {
  Instr in;
  in.kind = InstrKind::kIndex;
  in.dtype = DType::kU32;
  in.level = level;
  return push(in);
}

int Scalar::coord(std::int64_t divisor, std::int64_t modulus, Level level) {
  Instr in;
  in.kind = InstrKind::kCoord;
  in.dtype = DType::kU32;
  in.level = level;
  in.divisor = divisor;
  in.modulus = modulus;
  return push(in);
}

int Scalar::load(int binding, const IndexMap& map, DType dtype, Level level) {
  program_.accesses.push_back({binding, dtype, level, map, 0, 0});
  Instr in;
  in.kind = InstrKind::kLoad;
  in.dtype = dtype;
  in.level = level;
  in.index = static_cast<int>(program_.accesses.size()) - 1;
  return push(in);
}

int Scalar::load_at(int binding, const IndexMap& map, int index, std::int64_t stride,
                    std::int64_t size, DType dtype, Level level) {
  const int loaded = load(binding, map, dtype, level);
  program_.instrs.back().kind = InstrKind::kLoadAt;
  program_.instrs.back().operands = {index};
  program_.accesses.back().at_stride = stride;
  program_.accesses.back().at_size = size;
  return loaded;
}

int Scalar::in_bounds(const IndexMap& map, int binding) {
  const int loaded = load(binding, map, DType::kBool);
  program_.instrs.back().kind = InstrKind::kInBounds;
  return loaded;
}

int Scalar::op(const PointwiseCode& code, const std::vector<int>& operands, DType result) {
  Instr in;
  in.kind = InstrKind::kOp;
  in.dtype = result;
  in.code = &code;
  in.operands = operands;
  in.level = Level::kRow;
  for (const int o : operands) {
    if (program_.instrs[static_cast<std::size_t>(o)].level == Level::kElement)
      in.level = Level::kElement;
  }
  return push(in);
}

int Scalar::reduce(ReduceOp reduce, int operand) {
  Instr in;
  in.kind = InstrKind::kReduce;
  const bool arg = reduce == ReduceOp::kArgMax || reduce == ReduceOp::kArgMin;
  in.dtype = arg ? DType::kI32 : type(operand);
  in.level = Level::kRow;
  in.reduce = reduce;
  in.operands = {operand};
  return push(in);
}

int Scalar::acc() {
  Instr in;
  in.kind = InstrKind::kAcc;
  return push(in);
}

Store store_to(int binding, const IndexMap& map, int value, DType dtype, Level level) {
  return {binding, dtype, level, map, value, -1};
}

OracleBuffers run_on(Device& device, const LaunchBuilder& built,
                     const RuntimeScalars& runtime_scalars) {
  std::vector<BufferHandle> handles;
  for (std::size_t i = 0; i < built.program.buffers.size(); ++i) {
    const BufferDecl& decl = built.program.buffers[i];
    handles.push_back(device.alloc(decl.bytes, decl.name));
    device.upload(handles.back(), 0, std::as_bytes(std::span(built.contents[i])));
  }
  const std::unique_ptr<Executable> executable = device.prepare(built.program, handles);
  device.wait(device.run(*executable, std::span(&runtime_scalars, 1)));
  OracleBuffers result = built.contents;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    device.wait(device.download(handles[i], 0, std::as_writable_bytes(std::span(result[i]))));
    device.free(handles[i]);
  }
  return result;
}

void expect_close(const LaunchBuilder& built, const OracleBuffers& given,
                  const OracleBuffers& wanted, Tolerance tolerance) {
  std::vector<DType> types(built.program.buffers.size(), DType::kF32);
  for (const Launch& launch : built.program.launches) {
    for (const Store& s : launch.stores) types[static_cast<std::size_t>(s.binding)] = s.dtype;
  }
  for (std::size_t b = 0; b < given.size(); ++b) {
    for (std::size_t i = 0; i < given[b].size(); ++i) {
      const double x = oracle_decode(given[b][i], types[b]),
                   y = oracle_decode(wanted[b][i], types[b]);
      const bool both_nan = std::isnan(x) && std::isnan(y);
      const double room =
          types[b] == DType::kF32 ? tolerance.absolute + tolerance.relative * std::abs(y) : 0;
      if (given[b][i] == wanted[b][i] || both_nan || std::abs(x - y) <= room) continue;
      ADD_FAILURE() << built.program.launches[0].name << ": buffer " << b << " element " << i
                    << " is " << x << ", the oracle says " << y;
      return;
    }
  }
}

void expect_as_oracle(const LaunchBuilder& built, const RuntimeScalars& runtime_scalars,
                      Tolerance tolerance, std::initializer_list<int> threads) {
  verify(built.program);
  const OracleBuffers given = run_on(*make_cpu_device({.threads = 1}), built, runtime_scalars);
  for (const int many : threads)
    EXPECT_EQ(given, run_on(*make_cpu_device({.threads = many}), built, runtime_scalars))
        << "1 and " << many << " threads differ";
  OracleBuffers wanted = built.contents;
  run_oracle(built.program, wanted, runtime_scalars);
  expect_close(built, given, wanted, tolerance);
}

}  // namespace tensorgrad::testing
