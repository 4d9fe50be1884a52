// SPDX-License-Identifier: MIT
// A model described by JavaScript: a list of parameters, buffers and layers with their paths.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tracing.h"

namespace tensorgrad::web {

// A layer of any type. A layer is shared by the copies of its model, so that weights can be tied.
class AnyLayer {
 public:
  virtual ~AnyLayer() = default;
  virtual void visit(ParameterVisitor& visitor) const = 0;
};

template <class T>
class Layer final : public AnyLayer {
 public:
  template <class... Arguments>
  explicit Layer(Arguments&&... arguments) : value(std::forward<Arguments>(arguments)...) {}
  void visit(ParameterVisitor& visitor) const override { value.visit_fields(visitor); }
  T value;
};

template <class T, class... Arguments>
std::shared_ptr<const AnyLayer> make_layer(Arguments&&... arguments) {
  // Through a pointer to the base class, so that all layers share the code of one control block.
  return std::unique_ptr<const AnyLayer>(new Layer<T>(std::forward<Arguments>(arguments)...));
}

class Model {
 public:
  using Part = std::variant<std::shared_ptr<const Parameter>, std::shared_ptr<const Buffer>,
                            std::shared_ptr<const AnyLayer>>;
  struct Entry {
    std::vector<std::string> path;
    Part part;
  };

  // Reads the list of entries from web/src/module.ts. Throws what constructors of layers and
  // parameters throw.
  static Model from(const Value& entries);

  void visit_fields(ParameterVisitor& visitor) const;

  // Returns entry i, which is a T. Throws InternalError if it is something else.
  template <class T>
  [[nodiscard]] const T& entry(std::size_t i) const {
    const auto* part =
        i < entries_.size() ? std::get_if<std::shared_ptr<const T>>(&entries_[i].part) : nullptr;
    if (part == nullptr) throw InternalError("the model has no such entry");
    return **part;
  }

 private:
  std::vector<Entry> entries_;
};

static_assert(Module<Model>);

template <class T>
const T& Call::layer() const {
  const auto i = get<std::size_t>(0, "layer");
  const auto* layer =
      dynamic_cast<const Layer<T>*>(&Tracing::current(name_, location).model.entry<AnyLayer>(i));
  if (layer == nullptr) throw InternalError(std::string(name_) + ": the layer has another type");
  return layer->value;
}

// Returns a location whose file name lives as long as the process.
Loc source_location(const Value& file, const Value& line);

}  // namespace tensorgrad::web
