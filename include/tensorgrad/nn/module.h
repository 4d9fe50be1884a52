// SPDX-License-Identifier: MIT
// Modules are plain structs: fields, TG_MODULE(fields...), and a forward function. A parameter's
// name is the path of field names to it ("blocks.0.attn.weight").
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

struct HostTensor;

// How a parameter's elements are made: by the seed, and the parameter's place in the order of all.
struct Init {
  enum class Kind {
    kConstant,
    kUniform,
    kNormal,
    kLiteral,
    kTruncatedNormal,
    kOrthogonal,
    kInverseSoftplus,
    kLogOfUniform
  };
  Kind kind = Kind::kConstant;
  double a = 0, b = 0;  // constant a; uniform in [a, b); normal with mean a, deviation b; gain a
  std::vector<float> values = {};   // literal
  std::optional<Shape> shape = {};  // literal: given with the values
  double lo = 0, hi = 0;            // bounds of a truncated normal; of what is made uniform
};

// Initial values, with the names and formulas of torch.nn.init.
namespace init {
Init zeros();
Init ones();
Init constant(double value);
Init uniform(double lo, double hi);
Init normal(double mean = 0, double stddev = 1);
// A normal distribution of which only [lo, hi] is drawn from.
Init trunc_normal(double mean = 0, double stddev = 1, double lo = -2, double hi = 2);
// As many as the parameter has, row-major.
Init literal(std::vector<float> values);
// Of the parameter's shape. Throws DtypeError where it is neither f32 nor f16.
Init literal(const HostTensor& values, Loc loc = Loc::current());
// Orthonormal rows or columns, whichever are fewer, times gain; axes after the first count as one
// (Saxe, McClelland and Ganguli 2014). The parameter has at least two axes.
Init orthogonal(double gain = 1);

// What softplus makes log-uniform in [lo, hi), and `floor` where that is less; 0 < lo < hi (the
// steps of Mamba, Gu and Dao 2023).
Init inverse_softplus(double lo, double hi, double floor = 0);
// The logarithm of a number that is uniform in [lo, hi), lo > 0.
Init log_of_uniform(double lo, double hi);

// Which numbers of inputs and outputs a weight has: for [out, in, k..] they are in * k.. and
// out * k... Throws ShapeError on fewer than two axes.
struct Fans {
  double in, out;
};
Fans fans(const Shape& shape, Loc loc = Loc::current());
enum class Fan { kIn, kOut };
// By which an activation changes the size of a signal, for the gain of the functions below: 1 for a
// linear layer and the sigmoid, 5/3 for tanh.
double leaky_relu_gain(double slope = 0);
// Uniform, or normal, of deviation gain / sqrt(fan) (He et al. 2015). PyTorch's own layers begin
// with kaiming_uniform of the gain leaky_relu_gain(sqrt(5)), which is +-1 / sqrt(fan_in).
Init kaiming_uniform(const Shape& shape, double gain = leaky_relu_gain(), Fan fan = Fan::kIn,
                     Loc loc = Loc::current());
Init kaiming_normal(const Shape& shape, double gain = leaky_relu_gain(), Fan fan = Fan::kIn,
                    Loc loc = Loc::current());
// Of deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Init xavier_uniform(const Shape& shape, double gain = 1, Loc loc = Loc::current());
Init xavier_normal(const Shape& shape, double gain = 1, Loc loc = Loc::current());
}  // namespace init

// How the parameters of a model begin, by their names and shapes; what it gives nothing for begins
// as its module says.
//   [](const std::string& name, const tg::Shape& shape) -> std::optional<tg::Init> {
//     if (name.ends_with(".bias")) return tg::init::zeros();
//     if (shape.size() < 2) return {};
//     return tg::init::literal(my_values(name, shape));
//   }
using InitFunction =
    std::function<std::optional<Init>(const std::string& name, const Shape& shape)>;

// A trained tensor, f32. It says what is to be made; the elements live on the device. What
// identifies it is its place in the model (its address while tracing): a copy is another parameter,
// and one reached twice through a shared_ptr is one.
class Parameter {
 public:
  explicit Parameter(Shape shape, Init init = init::zeros(),
                     std::source_location loc = std::source_location::current());

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const Init& initial() const { return init_; }
  [[nodiscard]] const Site& site() const { return site_; }
  // Its value in the function being traced. Throws UserError where the model that is traced does
  // not have it: a field is missing from a TG_MODULE.
  operator Tensor() const;  // NOLINT(google-explicit-constructor)
  [[nodiscard]] Tensor tensor(Site site = {}) const;

 private:
  Shape shape_;
  Init init_;
  Site site_;
};

// A tensor of a module that is not trained and keeps its value from step to step, such as a running
// mean (torch's register_buffer): a state() by the name of its path. Like a parameter it is known
// by its place in the model.
class Buffer {
 public:
  explicit Buffer(Shape shape, double initial = 0, DType dtype = f32,
                  std::source_location loc = std::source_location::current());

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Site& site() const { return site_; }
  // Its value in the function being traced: what the step began with, or what set() gave. Throws
  // UserError where the model that is traced does not have it.
  [[nodiscard]] Tensor tensor(Site site = {}) const;
  // What it holds from here on, and after the step. Throws ShapeError for another type.
  void set(Tensor value, Site site = {}) const;

 private:
  [[nodiscard]] std::int32_t leaf(Trace& trace, const Site& site) const;

  Shape shape_;
  double initial_;
  DType dtype_;
  Site site_;
};

// Gets every parameter and every buffer of a module, with its path.
// Throws UserError on a module that contains itself.
class ParameterVisitor {
 public:
  using Found = std::function<void(const std::string& path, const Parameter& parameter)>;
  using FoundBuffer = std::function<void(const std::string& path, const Buffer& buffer)>;
  explicit ParameterVisitor(Found found, FoundBuffer found_buffer = {})
      : found_(std::move(found)), found_buffer_(std::move(found_buffer)) {}

  void enter(std::string_view name);
  void leave();
  void parameter(std::string_view name, const Parameter& parameter);
  void buffer(std::string_view name, const Buffer& buffer);

 private:
  [[nodiscard]] std::string path(std::string_view name) const;
  Found found_;
  FoundBuffer found_buffer_;
  std::vector<std::string> names_;
};

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

// Names the fields that hold parameters, buffers or modules, in the order in which they are
// initialised.
#define TG_MODULE(...)                                                                      \
  void visit_fields(::tensorgrad::ParameterVisitor& tg_visitor) const {                     \
    ::tensorgrad::detail::visit_named(tg_visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }

}  // namespace tensorgrad
