// SPDX-License-Identifier: MIT
// Converts JavaScript values to the types of the public headers and back. Enums and structs are
// generated from the headers (enums.inc, structs.inc).
#pragma once

#include <cmath>
#include <concepts>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/tensorgrad.h"
#include "value.h"

namespace tensorgrad::web {

// The name of the value being converted, for errors: "softmax: axis".
struct Where {
  std::string path;
  Loc location;

  // Throws UserError: "softmax: axis: expected an integer, got 'x'".
  [[noreturn]] void expected(const std::string& what, const Value& got) const;
  [[nodiscard]] Where field(std::string_view name) const {
    return {path + ": " + std::string(name), location};
  }
};

// Returns the tensor with an id in the function being traced. Throws UserError if there is none.
Tensor traced_tensor(double id, const Where& where);
// Returns a new id by which JavaScript knows a tensor of that function.
std::uint32_t register_tensor(Tensor tensor);

// `EnumNames<T>::kNames`: JavaScript name and value of each enumerator. Generated.
template <class T>
struct EnumNames;

// Calls `visit(name, field)` for each field of a struct. Generated: visit_fields(visit, T&).

// Type<T>: tests whether a value fits T, for overload resolution, and converts it.
template <class T>
struct Type;

template <class T>
T read(const Value& value, const Where& where) {
  return Type<T>::read(value, where);
}

template <>
struct Type<bool> {
  static bool fits(const Value& v) { return v.kind == Kind::kBool; }
  static bool read(const Value& v, const Where& where) {
    if (!fits(v)) where.expected("true or false", v);
    return v.number != 0;
  }
};

template <std::integral T>
  requires(!std::same_as<T, bool>)
struct Type<T> {
  static bool fits(const Value& v) {
    return v.kind == Kind::kNumber && std::nearbyint(v.number) == v.number &&
           std::abs(v.number) <= 9007199254740991.0;
  }
  static T read(const Value& v, const Where& where) {
    if (!fits(v) || !std::in_range<T>(static_cast<std::int64_t>(v.number)))
      where.expected("an integer", v);
    return static_cast<T>(v.number);
  }
};

template <std::floating_point T>
struct Type<T> {
  static bool fits(const Value& v) { return v.kind == Kind::kNumber; }
  static T read(const Value& v, const Where& where) {
    if (!fits(v)) where.expected("a number", v);
    return static_cast<T>(v.number);
  }
};

template <>
struct Type<std::string> {
  static bool fits(const Value& v) { return v.kind == Kind::kString; }
  static std::string read(const Value& v, const Where& where) {
    if (!fits(v)) where.expected("a string", v);
    return std::string(v.text);
  }
};

template <>
struct Type<Tensor> {
  static bool fits(const Value& v) { return v.kind == Kind::kTensor; }
  static Tensor read(const Value& v, const Where& where) {
    if (!fits(v)) where.expected("a tensor", v);
    return traced_tensor(v.number, where);
  }
};

template <>
struct Type<Operand> {
  static bool fits(const Value& v) { return v.kind == Kind::kTensor || v.kind == Kind::kNumber; }
  static Operand read(const Value& v, const Where& where) {
    if (v.kind == Kind::kNumber) return {v.number, where.location};
    if (!fits(v)) where.expected("a tensor or a number", v);
    return {traced_tensor(v.number, where), where.location};
  }
};

template <class T>
struct Type<std::optional<T>> {
  static bool fits(const Value& v) { return !v.present() || Type<T>::fits(v); }
  static std::optional<T> read(const Value& v, const Where& where) {
    if (!v.present()) return std::nullopt;
    return Type<T>::read(v, where);
  }
};

// dtype of a JavaScript typed array with elements of type T. No array has kBytes + 1.
template <class T>
inline constexpr std::uint32_t kArrayOf = kBytes + 1;
template <>
inline constexpr std::uint32_t kArrayOf<float> = static_cast<std::uint32_t>(DType::kF32);
template <>
inline constexpr std::uint32_t kArrayOf<std::int32_t> = static_cast<std::uint32_t>(DType::kI32);
template <>
inline constexpr std::uint32_t kArrayOf<std::uint32_t> = static_cast<std::uint32_t>(DType::kU32);

template <class T>
struct Type<std::vector<T>> {
  static bool fits(const Value& v) {
    if (v.kind == Kind::kArray) return v.dtype == kArrayOf<T>;
    if (v.kind != Kind::kList) return false;
    for (const Value& each : v.items) {
      if (!Type<T>::fits(each)) return false;
    }
    return true;
  }
  static std::vector<T> read(const Value& v, const Where& where) {
    std::vector<T> all;
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (v.kind == Kind::kArray && v.dtype == kArrayOf<T>) {
        all.resize(v.count);
        if (v.count != 0) std::memcpy(all.data(), v.text.data(), v.text.size());
        return all;
      }
    }
    if (v.kind != Kind::kList) where.expected("an array", v);
    for (std::size_t i = 0; i < v.items.size(); ++i)
      all.push_back(Type<T>::read(v.items[i], where.field(std::to_string(i))));
    return all;
  }
};

template <class A, class B>
struct Type<std::pair<A, B>> {
  static std::pair<A, B> read(const Value& v, const Where& where) {
    if (v.kind != Kind::kList || v.items.size() != 2) where.expected("an array of 2", v);
    return {Type<A>::read(v.items[0], where), Type<B>::read(v.items[1], where)};
  }
};

template <>
struct Type<Axes> {
  static bool fits(const Value& v) { return Type<int>::fits(v) || Type<std::vector<int>>::fits(v); }
  static Axes read(const Value& v, const Where& where) {
    if (v.kind == Kind::kNumber) return {Type<int>::read(v, where)};
    return {Type<std::vector<int>>::read(v, where)};
  }
};

template <>
struct Type<Size2d> {
  static bool fits(const Value& v) {
    return Type<int>::fits(v) || (v.kind == Kind::kList && v.items.size() == 2);
  }
  static Size2d read(const Value& v, const Where& where) {
    if (v.kind == Kind::kNumber) return {Type<std::int64_t>::read(v, where)};
    if (!fits(v)) where.expected("an integer or [height, width]", v);
    return {Type<std::int64_t>::read(v.items[0], where),
            Type<std::int64_t>::read(v.items[1], where)};
  }
};

template <>
struct Type<PoolStride> {
  static PoolStride read(const Value& v, const Where& where) {
    return {Type<std::optional<Size2d>>::read(v, where)};
  }
};
template <>
struct Type<PoolStride1d> {
  static PoolStride1d read(const Value& v, const Where& where) {
    if (!v.present()) return {};
    return {Type<std::int64_t>::read(v, where)};
  }
};

template <class T>
  requires std::is_enum_v<T>
struct Type<T> {
  static bool fits(const Value& v) { return v.kind == Kind::kString; }
  static T read(const Value& v, const Where& where) {
    std::string names;
    for (const auto& [name, value] : EnumNames<T>::kNames) {
      if (v.kind == Kind::kString && v.text == name) return value;
      names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
    }
    where.expected("one of " + names, v);
  }
};

template <>
struct Type<optim::Hyperparameter> {
  static optim::Hyperparameter read(const Value& v, const Where& where) {
    if (v.kind == Kind::kObject)
      return optim::adjustable(Type<double>::read(v["adjustable"], where.field("adjustable")));
    return {Type<double>::read(v, where)};
  }
};

// A pattern, or a list of names that JavaScript computes from a function.
template <>
struct Type<ParamFilter> {
  static ParamFilter read(const Value& v, const Where& where);
};

template <>
struct Type<InputSpec> {
  static InputSpec read(const Value& v, const Where& where);
};

// Constructed by name: {make: "cosine", arguments: [...]}.
template <>
struct Type<Init> {
  static Init read(const Value& v, const Where& where);
};
template <>
struct Type<Schedule> {
  static Schedule read(const Value& v, const Where& where);
};
template <>
struct Type<Optimizer> {
  static Optimizer read(const Value& v, const Where& where);
};

// Initial values by parameter name, which JavaScript computes from a function.
template <>
struct Type<InitFunction> {
  static InitFunction read(const Value& v, const Where& where);
};

// Ranges of rows by parameter name, which JavaScript computes from a function.
using RowsFunction = std::function<std::vector<RowRange>(const std::string&, const Shape&)>;
template <>
struct Type<RowsFunction> {
  static RowsFunction read(const Value& v, const Where& where);
};

// Given as the number of a listener.
using RecoveryFunction = std::function<void(const Recovery&)>;
template <>
struct Type<RecoveryFunction> {
  static RecoveryFunction read(const Value& v, const Where& where);
};

// Given as the number of a trainer or function that uses the device.
template <>
struct Type<std::shared_ptr<Device>> {
  static std::shared_ptr<Device> read(const Value& v, const Where& where);
};

#include "enums.inc"
#include "structs.inc"

// Throws UserError if an object has a key that is not a field.
void check_keys(const Value& value, const std::vector<std::string_view>& known, const Where& where);

template <class T>
concept Described = requires(T& t) { visit_fields([](std::string_view, auto&) {}, t); };

template <Described T>
struct Type<T> {
  static bool fits(const Value& v) { return v.kind == Kind::kObject; }
  static void read_into(T& result, const Value& v, const Where& where) {
    if (v.kind != Kind::kObject) where.expected("an object", v);
    std::vector<std::string_view> known;
    visit_fields(
        [&]<class F>(std::string_view name, F& field) {
          known.push_back(name);
          const Value& given = v[name];
          if (given.present()) field = Type<F>::read(given, where.field(name));
        },
        result);
    check_keys(v, known, where);
  }
  static T read(const Value& v, const Where& where) {
    T result{};
    read_into(result, v, where);
    return result;
  }
};

// ---- results -----------------------------------------------------------------------------------

inline void put(Writer& w, double value) { w.number(value); }
inline void put(Writer& w, float value) { w.number(value); }
template <std::integral T>
void put(Writer& w, T value) {
  if constexpr (std::same_as<T, bool>) {
    w.boolean(value);
  } else {
    w.number(static_cast<double>(value));
  }
}
inline void put(Writer& w, std::string_view text) { w.string(text); }
inline void put(Writer& w, const std::string& text) { w.string(text); }
inline void put(Writer& w, const char* text) { w.string(text); }
inline void put(Writer& w, const SourceLocation& location) {
  w.string(location.known() ? to_string(location) : "");
}
void put(Writer& w, Tensor tensor);
void put(Writer& w, const HostTensor& tensor);  // {dtype, shape, data}
inline void put(Writer& w, const std::vector<float>& values) {
  w.array(kArrayOf<float>, values.size(), std::as_bytes(std::span(values)));
}
inline void put(Writer& w, const std::vector<std::int32_t>& values) {
  w.array(kArrayOf<std::int32_t>, values.size(), std::as_bytes(std::span(values)));
}
template <class T>
  requires std::is_enum_v<T>
void put(Writer& w, T value) {
  for (const auto& [name, each] : EnumNames<T>::kNames) {
    if (each == value) return w.string(name);
  }
}
template <class T>
void put(Writer& w, const std::vector<T>& all);
template <class A, class B>
void put(Writer& w, const std::pair<A, B>& both);
template <class T>
void put(Writer& w, const std::map<std::string, T>& all);
template <class T>
void put(Writer& w, const std::optional<T>& value);
template <Described T>
void put(Writer& w, const T& value);

template <class T>
void put(Writer& w, const std::vector<T>& all) {
  w.list(all.size());
  for (const T& each : all) put(w, each);
}
template <class A, class B>
void put(Writer& w, const std::pair<A, B>& both) {
  w.list(2);
  put(w, both.first);
  put(w, both.second);
}
template <class T>
void put(Writer& w, const std::map<std::string, T>& all) {
  w.object(all.size());
  for (const auto& [name, each] : all) {
    w.key(name);
    put(w, each);
  }
}
template <class T>
void put(Writer& w, const std::optional<T>& value) {
  if (value) return put(w, *value);
  w.nothing();
}
template <Described T>
void put(Writer& w, const T& value) {
  auto& fields = const_cast<T&>(value);  // visited without modification
  std::size_t count = 0;
  visit_fields([&](std::string_view, auto&) { ++count; }, fields);
  w.object(count);
  visit_fields(
      [&](std::string_view name, auto& field) {
        w.key(name);
        put(w, field);
      },
      fields);
}

}  // namespace tensorgrad::web
