// SPDX-License-Identifier: MIT
// Declaration of a program's inputs, and the values passed to them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/tensor.h"
#include "tensorgrad/train/host_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class DeviceTensor;
namespace detail {
struct DeviceValue;
}

/// Marks a dynamic dimension of an input, as in `{"x", {kDynamic, 28, 28}}`. Each call determines
/// its size from the number of elements passed. An input can have at most one dynamic dimension.
/// All dynamic dimensions have the same size in a call. The function or training step is compiled
/// once for each size that occurs.
inline constexpr std::int64_t kDynamic = -1;

/// Returns the smallest of `sizes` that is at least `size`: to pad a dynamic dimension to one of a
/// few sizes (bucketing), so that few programs are compiled. Throws UserError if `size` is negative
/// or larger than all of `sizes`.
std::int64_t padded_size(std::int64_t size, const std::vector<std::int64_t>& sizes);

/// Declaration of an input: its name, shape and dtype. A name must not be empty or begin with `_`.
/// Values of a boolean input are passed as `std::vector<bool>` or as a boolean HostTensor.
struct InputSpec {
  /// Declares an input, of dtype f32 by default.
  InputSpec(std::string n, Shape s, DType t = f32)
      : name(std::move(n)), shape(std::move(s)), dtype(t) {}

  std::string name;  ///< Name by which the function reads the input and a call passes its value.
  Shape shape;       ///< Sizes of the axes; one may be kDynamic. Empty for a scalar.
  DType dtype;       ///< Type of the elements.
};

/// Name of an input, output, objective or dataset entry, with the source line that mentions it.
/// Errors report that line.
struct NameRef {
  /// Refers to the name `n`; implicit, so that a string literal can be passed.
  NameRef(const char* n, Loc loc = Loc::current()) : name(n), location(loc) {}             // NOLINT
  NameRef(std::string n, Loc loc = Loc::current()) : name(std::move(n)), location(loc) {}  // NOLINT

  std::string name;         ///< Name of the input, output, objective or dataset entry.
  SourceLocation location;  ///< Source line that mentions it, for errors.
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

/// Value passed to an input: elements in host memory, or a DeviceTensor. Views an lvalue and owns a
/// temporary. A DeviceTensor is kept alive, and its indices are not checked to be in range.
struct FeedValue : HostView {
  /// Views an lvalue that converts to a HostView, or anything that refers to elements of others,
  /// such as a span.
  template <class T>
    requires(std::convertible_to<const T&, HostView> && !std::derived_from<T, FeedValue>)
  FeedValue(const T& values) : HostView(values) {}  // NOLINT(google-explicit-constructor)

  /// Takes ownership of a temporary that owns its elements.
  template <class T>
    requires(detail::OwnsElements<T> && !std::is_lvalue_reference_v<T>)
  FeedValue(T&& values)  // NOLINT(google-explicit-constructor)
      : FeedValue(std::make_shared<const std::remove_cvref_t<T>>(std::forward<T>(values))) {}

  /// Passes booleans, which are copied.
  FeedValue(const std::vector<bool>& values);  // NOLINT(google-explicit-constructor)

  /// Views `n` elements of type `t` at `d`.
  FeedValue(DType t, const void* d, std::size_t n) : HostView(t, d, n) {}

  /// Passes a tensor that stays on its device.
  FeedValue(const DeviceTensor& tensor);  // NOLINT(google-explicit-constructor)

  std::shared_ptr<const detail::DeviceValue> on_device = {};  ///< Null for host memory.
  std::shared_ptr<const void> owner = {};  ///< Owner of the elements; null if they are viewed.

 private:
  template <class T>
  explicit FeedValue(std::shared_ptr<const T> values)
      : HostView(*values), owner(std::move(values)) {}
};

/// Values of a call's inputs by name, for example `{{"x", pixels}, {"y", labels}}`. Calls take
/// them in this form. Refers to the elements of lvalues, which must stay valid as long as the view
/// is used; owns those of temporaries. Use Feed to keep or return values.
class FeedView {
 public:
  using Map = std::map<std::string, FeedValue, std::less<>>;  ///< Values by name.

  /// Name and value of an input.
  struct Entry {
    NameRef name;     ///< Name of the input.
    FeedValue value;  ///< Its value.
  };

  FeedView() = default;

  /// Creates a view of values. Throws UserError if a name occurs twice.
  FeedView(std::initializer_list<Entry> entries);

  /// Creates a view of a map from names to what a FeedValue converts from, such as NamedTensors or
  /// NamedDeviceTensors. Views an lvalue and owns a temporary.
  template <class Values>
    requires(!std::derived_from<std::remove_cvref_t<Values>, FeedView> &&
             requires(const Values& values) {
               { values.begin()->first } -> std::convertible_to<std::string>;
               { values.begin()->second } -> std::convertible_to<FeedValue>;
             })
  FeedView(Values&& values) {  // NOLINT(google-explicit-constructor)
    for (auto& [name, value] : values) {
      if constexpr (std::is_lvalue_reference_v<Values>) {
        values_.emplace(name, FeedValue(value));
      } else {
        values_.emplace(name, FeedValue(std::move(value)));
      }
    }
  }

  /// Adds a value. Throws UserError if the name is already used.
  void add(const NameRef& name, FeedValue value);

  /// Returns the value of an input, or end() if there is none.
  [[nodiscard]] Map::const_iterator find(std::string_view name) const { return values_.find(name); }

  /// Returns whether there is a value of that name.
  [[nodiscard]] bool contains(std::string_view name) const { return values_.contains(name); }

  /// Returns the number of values.
  [[nodiscard]] std::size_t size() const { return values_.size(); }

  /// Returns whether there are no values.
  [[nodiscard]] bool empty() const { return values_.empty(); }

  /// Iterates over names and values, sorted by name.
  [[nodiscard]] Map::const_iterator begin() const { return values_.begin(); }
  [[nodiscard]] Map::const_iterator end() const { return values_.end(); }

 protected:
  Map values_;  ///< Values by name.
};

/// Values of a call's inputs by name that own their elements: copies of lvalues, and temporaries
/// moved in. Can be kept, returned and passed to any number of calls. Later changes of the copied
/// variables have no effect. Copies of a feed share its elements.
/// ```cpp
/// tg::Feed batch() { return {{"x", read_pixels()}, {"y", read_labels()}}; }
/// ```
class Feed : public FeedView {
 public:
  Feed() = default;

  /// Creates a feed. Throws UserError if a name occurs twice.
  Feed(std::initializer_list<Entry> entries);

  /// Copies what a view refers to, and shares what it owns.
  Feed(const FeedView& view);  // NOLINT(google-explicit-constructor)

  /// Adds a value. Throws UserError if the name is already used.
  void add(const NameRef& name, const FeedValue& value);  // NOLINT: copies the value
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
