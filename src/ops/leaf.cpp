// SPDX-License-Identifier: MIT
// Leaves and iota: values from storage, the host, literals or the index.
#include <bit>

#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Type attr_type(std::span<const Type>, const Attrs& attrs) {
  return {dtype_attr(attrs), attrs.list("shape")};
}

// Returns the type of a leaf with a name. Reads the required attributes now, so that missing ones
// are detected here.
Type named_type(std::span<const Type>, const Attrs& attrs) {
  static_cast<void>(attrs.text("name"));
  return attr_type({}, attrs);
}

// Offset and count are in elements of the arena, which may be larger than a tensor.
Type arena_part_type(std::span<const Type>, const Attrs& attrs) {
  const Type type = named_type({}, attrs);
  if (type.dtype == DType::kF16) dtype_error("a parameter must be f32; cast it at its use");
  const std::int64_t offset = attrs.integer("offset"), count = numel(type.shape);
  constexpr std::int64_t kMaxArena = std::int64_t{1} << 48;
  if (offset < 0 || count > kMaxArena || offset > kMaxArena - count) {
    shape_error("'" + attrs.text("name") +
                "': expected an offset from 0 to 2^48 minus the elements of " +
                to_string(type.shape) + ", got " + std::to_string(offset));
  }
  return type;
}

Type state_type(std::span<const Type>, const Attrs& attrs) {
  static_cast<void>(attrs.number("init"));
  return named_type({}, attrs);
}

Type constant_type(std::span<const Type>, const Attrs& attrs) {
  static_cast<void>(attrs.number("value"));
  return {dtype_attr(attrs), {}};
}

Type scalar_type(std::span<const Type>, const Attrs& attrs) {
  static_cast<void>(attrs.text("name"));
  const auto dtype = dtype_attr(attrs);
  if (dtype == DType::kF16) dtype_error("a runtime scalar must have four bytes, got f16");
  return {dtype, {}};
}

Type iota_type(std::span<const Type>, const Attrs& attrs) {
  const Type type = attr_type({}, attrs);
  check_axis(attrs.integer("axis"), type.shape);
  if (type.dtype == DType::kBool || type.dtype == DType::kF16) {
    dtype_error("expected f32, i32 or u32, got " + std::string(to_string(type.dtype)));
  }
  return type;
}

Type literal_type(std::span<const Type>, const Attrs& attrs) {
  const Type type = attr_type({}, attrs);
  if (type.dtype == DType::kF16) dtype_error("a literal must have four-byte elements, got f16");
  const auto given = static_cast<std::int64_t>(attrs.list("bits").size());
  if (given != numel(type.shape)) {
    shape_error(to_string(type.shape) + " has " + std::to_string(numel(type.shape)) +
                " elements, got " + std::to_string(given) + " values");
  }
  return type;
}

void eval_constant(const EvalContext& ctx, RefTensor& out) {
  out.data = {ctx.node.attrs.number("value")};
}

void eval_literal(const EvalContext& ctx, RefTensor& out) {
  for (const std::int64_t item : ctx.node.attrs.list("bits")) {
    const auto bits = static_cast<std::uint32_t>(item);
    switch (out.type.dtype) {
      case DType::kF32: out.data.push_back(std::bit_cast<float>(bits)); break;
      case DType::kI32: out.data.push_back(static_cast<std::int32_t>(bits)); break;
      default: out.data.push_back(bits);
    }
  }
}

void eval_iota(const EvalContext& ctx, RefTensor& out) {
  const AxisSplit split = split_at(out.type.shape, ctx.node.attrs.integer("axis"));
  out.data.reserve(static_cast<size_t>(numel(out.type.shape)));
  for (std::int64_t i = 0; i < numel(out.type.shape); ++i) {
    out.data.push_back(static_cast<double>(i / split.post % split.size));
  }
}

// Defines a leaf whose value the caller provides. attrs: name, shape, dtype, and those in the op's
// comment.
constexpr OpDef stored(const char* name, InferFn infer = named_type) {
  return make_op(name, OpKind::kLeaf, 0, infer, nullptr, nullptr);
}

}  // namespace

namespace ops {

// parameter{name, offset}: the part of the arena of one parameter. arena{name, offset}: a flat
// range of the arena.
constinit const OpDef parameter = stored("parameter", arena_part_type);
constinit const OpDef arena = stored("arena", arena_part_type);
// input{name}: set by the host for each step. data{name}: stays on the device.
constinit const OpDef input = stored("input");
constinit const OpDef data = stored("data");
// state{name, init}: keeps its value between steps; starts as `init`.
constinit const OpDef state = stored("state", state_type);
// scalar{name}: a runtime scalar of the step.
constinit const OpDef scalar = make_op("scalar", OpKind::kLeaf, 0, scalar_type, nullptr, nullptr);
constinit const OpDef constant =
    make_op("constant", OpKind::kLeaf, 0, constant_type, nullptr, eval_constant);
// literal{bits}: 32-bit patterns of all elements.
constinit const OpDef literal =
    make_op("literal", OpKind::kLeaf, 0, literal_type, nullptr, eval_literal);
constinit const OpDef iota = make_op("iota", OpKind::kGenerator, 0, iota_type, nullptr, eval_iota);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
