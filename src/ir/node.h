// SPDX-License-Identifier: MIT
// A node: one op applied to values. Every node gives
// exactly one value, whose id is the node's index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/variant.h"
#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct OpDef;

// Index of a node in its graph.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;
// The origin of what autodiff gives where the loss has no gradient.
inline constexpr const char* kZeroGradient = "zero.grad";

// The type in which a value is computed: f32 for f16, which is a way of storing alone.
constexpr DType register_dtype(DType dtype) { return dtype == DType::kF16 ? DType::kF32 : dtype; }

// Element type and shape of a value.
struct Type {
  DType dtype = DType::kF32;
  Shape shape;

  bool operator==(const Type&) const = default;
};

// "f32[64,32]"
std::string to_string(const Type& type);

using AttrValue = Variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

// The fixed settings of a node, sorted by key. Reading one that is not there, or under another
// type, is an internal error.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items);

  void set(const std::string& key, AttrValue value);
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] const std::vector<std::int64_t>& list(std::string_view key) const;
  [[nodiscard]] const std::vector<std::pair<std::string, AttrValue>>& items() const {
    return items_;
  }

  bool operator==(const Attrs&) const = default;

 private:
  [[nodiscard]] const AttrValue* find(std::string_view key) const;
  template <class T>
  const T& get(std::string_view key) const;

  std::vector<std::pair<std::string, AttrValue>> items_;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  Type type;
  Attrs attrs;
  SourceLocation location;  // the user's line that made it
  std::string origin;  // the composite it is a part of: "gelu", "gelu.grad", "adamw"; may be empty
  int group = -1;      // the launch it belongs to, once fused; -1 before, and for views and leaves
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
