// SPDX-License-Identifier: MIT
// A node of a graph: one op applied to values. Each node produces exactly one value, whose id is
// the index of the node.
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
// Origin of the zeros that autodiff() returns for a value on which the loss does not depend.
inline constexpr const char* kZeroGradient = "zero.grad";

// Returns the type in which a value is computed: f32 for f16, which is only a storage type.
constexpr DType register_dtype(DType dtype) { return dtype == DType::kF16 ? DType::kF32 : dtype; }

// Element type and shape of a value.
struct Type {
  DType dtype = DType::kF32;
  Shape shape;

  bool operator==(const Type&) const = default;
};

// Returns "f32[64,32]".
std::string to_string(const Type& type);

using AttrValue = Variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

// Attributes of a node, sorted by key. Accessors throw InternalError if an attribute is missing or
// has another type.
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
  SourceLocation location;  // line in the user's code
  std::string origin;  // composite op it belongs to: "gelu", "gelu.grad", "adamw"; may be empty
  int group = -1;      // index of its launch after fusion; -1 before, and for views and leaves
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
