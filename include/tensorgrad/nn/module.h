// SPDX-License-Identifier: MIT
// Modules, parameters and buffers. A module is a plain struct with fields, TG_MODULE(fields...) and
// a call operator. The name of a parameter is the path of fields to it ("blocks.0.attn.weight").
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensorgrad/nn/init.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct HostTensor;

/// Trainable f32 tensor of a module. The object holds only the shape and the initial values; the
/// elements are on the device. A parameter is identified by its address in the model while tracing.
/// A copy is another parameter, but a parameter that is reached twice through a `std::shared_ptr`
/// counts once.
class Parameter {
 public:
  /// Declares a parameter. Throws ShapeError if the shape is invalid or does not match `init`.
  explicit Parameter(Shape shape, Init init = init::zeros(),
                     SourceLocation loc = SourceLocation::current());

  /// Returns the shape.
  [[nodiscard]] const Shape& shape() const { return shape_; }

  /// Returns the rule for the initial values.
  [[nodiscard]] const Init& initial() const { return init_; }

  /// Returns the line that declared the parameter.
  [[nodiscard]] const SourceLocation& location() const { return location_; }

  /// Returns the value in the function being traced. Throws UserError if the model being traced
  /// does not have the parameter, for example because its field is missing in TG_MODULE.
  operator Tensor() const;  // NOLINT(google-explicit-constructor)
  [[nodiscard]] Tensor tensor(SourceLocation location = {}) const;

 private:
  Shape shape_;
  Init init_;
  SourceLocation location_;
};

/// Tensor of a module that is not trained and keeps its value from step to step, such as a running
/// mean (`register_buffer` in PyTorch). It is a state() named by its path, and like a parameter it
/// is identified by its address in the model.
class Buffer {
 public:
  /// Declares a buffer whose elements start as `initial`. Throws ShapeError if the shape is
  /// invalid.
  explicit Buffer(Shape shape, double initial = 0, DType dtype = f32,
                  SourceLocation loc = SourceLocation::current());

  /// Returns a buffer that starts with these values, for example positions or a mask:
  /// ```cpp
  /// tg::Buffer scale =
  ///     tg::Buffer::from(tg::HostTensor::from({3}, std::vector{0.1F, 1.0F, 10.0F}));
  /// ```
  /// Throws ShapeError if the shape is invalid.
  static Buffer from(HostTensor values, SourceLocation loc = SourceLocation::current());

  /// Returns the values of from(), or null if all elements start as one number.
  [[nodiscard]] const std::shared_ptr<const HostTensor>& values() const { return values_; }

  /// Returns the shape.
  [[nodiscard]] const Shape& shape() const { return shape_; }

  /// Returns the element type.
  [[nodiscard]] DType dtype() const { return dtype_; }

  /// Returns the line that declared the buffer.
  [[nodiscard]] const SourceLocation& location() const { return location_; }

  /// Returns the value in the function being traced: the value passed to set() before, or the value
  /// at the start of the step. Throws UserError if the model being traced does not have the buffer,
  /// and DtypeError if the buffer is f16 and the function is trained.
  [[nodiscard]] Tensor tensor(SourceLocation location = {}) const;

  /// Sets the value for later reads and for the next step. Throws ShapeError if the shape or dtype
  /// differs; otherwise throws the errors of tensor().
  void set(Tensor value, SourceLocation location = {}) const;

 private:
  [[nodiscard]] std::int32_t leaf(Trace& trace, const SourceLocation& location) const;

  Shape shape_;
  double initial_;
  DType dtype_;
  SourceLocation location_;
  std::shared_ptr<const HostTensor> values_;
};

/// Visitor that calls a function for each parameter and buffer of a module, with its path.
/// ```cpp
/// tg::ParameterVisitor visitor([](const std::string& path, const tg::Parameter& parameter) {
///   std::cout << path << " " << tg::to_string(parameter.shape()) << "\n";
/// });
/// model.visit_fields(visitor);
/// ```
class ParameterVisitor {
 public:
  /// Function that is called for each parameter or buffer.
  using Found = std::function<void(const std::string& path, const Parameter& parameter)>;
  using FoundBuffer = std::function<void(const std::string& path, const Buffer& buffer)>;

  /// Creates a visitor. Ignores buffers if `found_buffer` is not set.
  explicit ParameterVisitor(Found found, FoundBuffer found_buffer = {})
      : found_(std::move(found)), found_buffer_(std::move(found_buffer)) {}

  /// Enters or leaves a field that is a module or a container. TG_MODULE calls these functions.
  /// enter() throws UserError if a module contains itself.
  void enter(std::string_view name);
  void leave();

  /// Reports a parameter or a buffer, which is a field of the current module.
  void parameter(std::string_view name, const Parameter& parameter);
  void buffer(std::string_view name, const Buffer& buffer);

 private:
  [[nodiscard]] std::string path(std::string_view name) const;
  Found found_;
  FoundBuffer found_buffer_;
  std::vector<std::string> names_;
};

/// Class with a member function `visit_fields`, for example from TG_MODULE.
template <class T>
concept Module =
    requires(const T& module, ParameterVisitor& visitor) { module.visit_fields(visitor); };

namespace detail {

template <class T>
inline constexpr bool kAlwaysFalse = false;
template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kIs<Template<Args...>, Template> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

template <class T>
void visit_field(ParameterVisitor& visitor, std::string_view name, const T& field) {
  if constexpr (std::is_same_v<T, Parameter>) {
    visitor.parameter(name, field);
  } else if constexpr (std::is_same_v<T, Buffer>) {
    visitor.buffer(name, field);
  } else if constexpr (Module<T>) {
    visitor.enter(name);
    field.visit_fields(visitor);
    visitor.leave();
  } else if constexpr (kIs<T, std::shared_ptr> || kIs<T, std::unique_ptr> ||
                       kIs<T, std::optional>) {
    if (field) visit_field(visitor, name, *field);
  } else if constexpr (kIs<T, std::vector> || kIsArray<T>) {
    visitor.enter(name);
    std::size_t index = 0;
    for (const auto& item : field) visit_field(visitor, std::to_string(index++), item);
    visitor.leave();
  } else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T> &&
                       !std::is_same_v<T, std::string>) {
    static_assert(
        kAlwaysFalse<T>,
        "TG_MODULE: a field must be a tensorgrad::Parameter or Buffer, a module (a struct with "
        "TG_MODULE), "
        "or a vector, array, optional, unique_ptr or shared_ptr of such; other containers are "
        "not searched for parameters");
  }
}

// The next name of a comma-separated list.
inline std::string_view next_name(std::string_view& list) {
  const std::size_t comma = list.find(',');
  std::string_view name = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return name;
}

template <class... Fields>
void visit_named([[maybe_unused]] ParameterVisitor& visitor,
                 [[maybe_unused]] std::string_view names, const Fields&... fields) {
  (visit_field(visitor, next_name(names), fields), ...);
}

}  // namespace detail

/// Declares the fields of a module that hold parameters, buffers or modules. Fields can be
/// containers of these: `std::vector`, `std::array`, `std::optional`, `std::unique_ptr` and
/// `std::shared_ptr`. Numbers, enumerators and strings are ignored. Parameters are initialized in
/// the order of the fields.
/// ```cpp
/// struct Net {
///   tg::nn::Linear fc1{784, 128}, fc2{128, 10};
///   TG_MODULE(fc1, fc2)
///   tg::Tensor operator()(tg::Tensor x) const { return fc2(tg::relu(fc1(x))); }
/// };
/// ```
#define TG_MODULE(...)                                                                      \
  void visit_fields(::tensorgrad::ParameterVisitor& tg_visitor) const {                     \
    ::tensorgrad::detail::visit_named(tg_visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
