// SPDX-License-Identifier: MIT
// Ops with kernels of your own, for what cannot be written with others, or not well.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

struct CustomKernel;

struct TensorType {
  Shape shape;
  DType dtype = DType::kF32;

  bool operator==(const TensorType&) const = default;
};

// What the CPU body of a custom op is given: its inputs, whole and row-major, and the elements
// [first, last) of the result that it is to write.
class CustomCall {
 public:
  CustomCall(const CustomKernel& kernel, std::span<const void* const> inputs, void* result,
             std::int64_t begin, std::int64_t end)
      : first(begin), last(end), kernel_(kernel), inputs_(inputs), result_(result) {}

  const std::int64_t first, last;

  // The elements of input i (f32, i32, u32; a bool is a u32 of 0 or 1). Throws DtypeError where it
  // is of another type.
  [[nodiscard]] std::span<const float> floats(std::size_t i) const;
  [[nodiscard]] std::span<const std::int32_t> ints(std::size_t i) const;
  [[nodiscard]] std::span<const std::uint32_t> words(std::size_t i) const;
  [[nodiscard]] const Shape& shape(std::size_t i) const;
  // All elements of the result; only [first, last) may be touched.
  [[nodiscard]] std::span<float> result() const;
  [[nodiscard]] std::span<std::int32_t> result_ints() const;

 private:
  [[nodiscard]] std::int64_t check(std::size_t i, DType wanted) const;

  const CustomKernel& kernel_;
  std::span<const void* const> inputs_;
  void* result_;
};

// An op that a user defines. Each element of its result is a function of the inputs alone; what it
// computes must depend on nothing else. Not fused with its neighbours.
//
//   const tg::CustomOp hypotenuse({
//       .name = "hypotenuse",
//       .infer = [](const std::vector<tg::TensorType>& in) { return in[0]; },
//       .cpu = [](const tg::CustomCall& c) {
//         for (std::int64_t i = c.first; i < c.last; ++i)
//           c.result()[i] = std::hypot(c.floats(0)[i], c.floats(1)[i]);
//       },
//       .wgsl = [](const std::vector<tg::TensorType>&) {
//         return "fn element(i: u32) -> f32 { return length(vec2(in0(i), in1(i))); }";
//       },
//       .backward = [](const std::vector<tg::Tensor>& in, tg::Tensor y, tg::Tensor dy) {
//         return std::vector{dy * in[0] / y, dy * in[1] / y};
//       },
//   });
//   tg::Tensor c = hypotenuse({a, b});
class CustomOp {
 public:
  struct Definition {
    std::string name;
    // The type of the result (f32 or i32) from those of the inputs. May throw ShapeError or
    // DtypeError with a text; the op's name and the caller's line are added.
    std::function<TensorType(const std::vector<TensorType>& inputs)> infer = {};
    // Writes elements [first, last). Called from several threads at once, for parts that do not
    // overlap. What it throws comes out of the step.
    std::function<void(const CustomCall& call)> cpu = {};
    // A shader's functions, among them `fn element(i: u32) -> f32` (or i32), which gives element i
    // of the result; in0(j), in1(j) ... are elements of the inputs, zero beyond their ends.
    std::function<std::string(const std::vector<TensorType>& inputs)> wgsl = {};
    // One gradient for each input, of its shape, written with ops (custom ones too); see
    // custom_gradient(). Without it the op cannot be differentiated.
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, Tensor y, Tensor dy)>
        backward = {};
  };
  // A device whose body is left out cannot run the op. Throws UserError where there is no name, no
  // infer, or neither body.
  explicit CustomOp(Definition definition, Loc loc = Loc::current());

  // At most 7 inputs.
  Tensor operator()(const std::vector<Tensor>& inputs, Loc loc = Loc::current()) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies are the same op
};

}  // namespace tensorgrad
