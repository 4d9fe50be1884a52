// SPDX-License-Identifier: MIT
// Ops with user-defined kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct CustomKernel;

/// Shape and element type of a tensor.
struct TensorType {
  Shape shape;                ///< Sizes of the axes; empty for a scalar.
  DType dtype = DType::kF32;  ///< Element type.

  bool operator==(const TensorType&) const = default;
};

/// Argument of a custom op's CPU kernel: the inputs, and the range of the result to compute.
/// Tensors are complete and row-major.
class CustomCall {
 public:
  /// Creates the argument of one call. Used by the CPU device.
  CustomCall(const CustomKernel& kernel TENSORGRAD_LIFETIMEBOUND,
             std::span<const void* const> inputs, void* result, std::int64_t begin,
             std::int64_t end)
      : first(begin), last(end), kernel_(kernel), inputs_(inputs), result_(result) {}

  const std::int64_t first, last;  ///< The kernel computes the elements [first, last).

  /// Returns the elements of input i: f32 as floats, i32 as ints, u32 and bool (0 or 1) as uints.
  /// Valid during the call. Throws DtypeError if the input has another type, and UserError if it
  /// does not exist.
  [[nodiscard]] std::span<const float> floats(std::size_t i) const TENSORGRAD_LIFETIMEBOUND;
  [[nodiscard]] std::span<const std::int32_t> ints(std::size_t i) const TENSORGRAD_LIFETIMEBOUND;
  [[nodiscard]] std::span<const std::uint32_t> uints(std::size_t i) const TENSORGRAD_LIFETIMEBOUND;

  /// Returns the shape of input i.
  [[nodiscard]] const Shape& shape(std::size_t i) const TENSORGRAD_LIFETIMEBOUND;

  /// Returns all elements of the result, f32 or i32. The kernel writes [first, last) only. Throws
  /// DtypeError if the result has the other type.
  [[nodiscard]] std::span<float> result() const TENSORGRAD_LIFETIMEBOUND;
  [[nodiscard]] std::span<std::int32_t> result_ints() const TENSORGRAD_LIFETIMEBOUND;

 private:
  [[nodiscard]] std::int64_t check(std::size_t i, DType wanted) const;

  const CustomKernel& kernel_;
  std::span<const void* const> inputs_;
  void* result_;
};

/// User-defined op, for functions that are impossible or slow with other ops. Each element of its
/// result must be a function of the inputs only. Custom ops are not fused with other ops.
/// ```cpp
/// const tg::CustomOp hypotenuse({
///     .name = "hypotenuse",
///     .infer = [](const std::vector<tg::TensorType>& in) { return in[0]; },
///     .cpu = [](const tg::CustomCall& c) {
///       for (std::int64_t i = c.first; i < c.last; ++i)
///         c.result()[i] = std::hypot(c.floats(0)[i], c.floats(1)[i]);
///     },
///     .wgsl = [](const std::vector<tg::TensorType>&) {
///       return "fn element(i: u32) -> f32 { return length(vec2(in0(i), in1(i))); }";
///     },
///     .backward = [](const std::vector<tg::Tensor>& in, tg::Tensor y, tg::Tensor dy) {
///       return std::vector{dy * in[0] / y, dy * in[1] / y};
///     },
/// });
/// tg::Tensor c = hypotenuse({a, b});
/// ```
class CustomOp {
 public:
  /// Definition of a custom op. `name`, `infer`, and one or both of `cpu` and `wgsl` are required.
  struct Definition {
    std::string name;  ///< Name of the op in errors, profiles and graphs.

    /// Returns the type of the result, f32 or i32, for inputs of the given types. Can throw
    /// ShapeError or DtypeError; the op's name and the caller's line are added.
    std::function<TensorType(const std::vector<TensorType>& inputs)> infer = {};

    /// Computes the elements [first, last) of the result on the CPU. It is called by several
    /// threads at once, for ranges that do not overlap. Its exceptions propagate out of the step.
    std::function<void(const CustomCall& call)> cpu = {};

    /// Returns WGSL functions for inputs of the given types. One of them is
    /// `fn element(i: u32) -> f32` (or `i32`), which returns element i of the result. It reads
    /// element j of the inputs with `in0(j)`, `in1(j)` and so on; beyond the end they return zero.
    std::function<std::string(const std::vector<TensorType>& inputs)> wgsl = {};

    /// Returns one gradient for each input, of the input's type; see custom_gradient(). It is
    /// written with ops, including custom ops. Without it, taking a gradient throws UserError.
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, Tensor y, Tensor dy)>
        backward = {};
  };

  /// Defines an op. Copies are the same op. Throws UserError if the name, `infer` or both kernels
  /// are missing. If one kernel is missing, the op throws UserError on the devices that need it.
  explicit CustomOp(Definition definition, Loc loc = Loc::current());

  /// Returns the result of the op for 1 to 7 inputs, which are f32, i32, u32 or bool. In mixed
  /// precision, f16 inputs are converted to f32. Throws UserError for any other number, and
  /// whatever `infer` throws.
  Tensor operator()(const std::vector<Tensor>& inputs, Loc loc = Loc::current()) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies are the same op
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
