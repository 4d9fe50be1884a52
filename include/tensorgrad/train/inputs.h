// SPDX-License-Identifier: MIT
// Declaration of a program's inputs, and the values passed to them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tensorgrad/tensor.h"
#include "tensorgrad/train/host_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class DeviceTensor;
namespace detail {
struct DeviceValue;
}

/// Marks a dynamic dimension of an input, as in `{"x", {kDynamic, 28, 28}}`. Each call determines
/// its size from the number of elements passed. Allowed only in compiled functions, not in
/// training. An input can have at most one dynamic dimension. All dynamic dimensions have the same
/// size in a call.
inline constexpr std::int64_t kDynamic = -1;

/// Declaration of an input: its name, shape and dtype. A name must not be empty or begin with `_`.
/// The dtype is f32, f16, i32 or u32; compare inside the function to get booleans.
struct InputSpec {
  /// Declares an input, of dtype f32 by default.
  InputSpec(std::string n, Shape s, DType t = f32)
      : name(std::move(n)), shape(std::move(s)), dtype(t) {}

  std::string name;
  Shape shape;
  DType dtype;
};

/// Name of an input, output, objective or dataset entry, with the source line that mentions it.
/// Errors report that line.
struct NameRef {
  /// Refers to the name `n`; implicit, so that a string literal can be passed.
  NameRef(const char* n, Loc loc = Loc::current()) : name(n), location(loc) {}             // NOLINT
  NameRef(std::string n, Loc loc = Loc::current()) : name(std::move(n)), location(loc) {}  // NOLINT

  std::string name;
  SourceLocation location;
};

/// Inputs of a traced function or loss, by name. In training, this includes the batches drawn from
/// the dataset.
class Inputs {
 public:
  Inputs() = default;

  /// Wraps symbolic tensors; called by the library before it traces a function.
  explicit Inputs(std::map<std::string, Tensor> tensors) : tensors_(std::move(tensors)) {}

  /// Returns the tensor of an input. Throws UserError listing the inputs if the name is unknown.
  Tensor operator[](const NameRef& name) const;

 private:
  std::map<std::string, Tensor> tensors_;
};

/// Value passed to an input: elements in host memory, or a DeviceTensor. A DeviceTensor is kept
/// alive, and its indices are not checked to be in range.
struct FeedValue : HostView {
  /// Passes anything that converts to a HostView.
  template <class T>
    requires(std::convertible_to<const T&, HostView> && !std::derived_from<T, FeedValue>)
  FeedValue(const T& values) : HostView(values) {}  // NOLINT

  /// Passes `n` elements of type `t` at `d`.
  FeedValue(DType t, const void* d, std::size_t n) : HostView(t, d, n) {}

  /// Passes a tensor that stays on its device.
  FeedValue(const DeviceTensor& tensor);  // NOLINT

  std::shared_ptr<const detail::DeviceValue> on_device = {};  ///< Null for host memory.
};

/// Values of a call's inputs by name, for example `{{"x", pixels}, {"y", labels}}`.
using Feed = std::map<std::string, FeedValue>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
