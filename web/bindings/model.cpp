// SPDX-License-Identifier: MIT
#include "model.h"

#include "registry.h"

namespace tensorgrad::web {
namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

Model::Part make_part(const Value& entry, Loc location) {
  const std::string path(entry["path"].text);
  if (const Value& given = entry["parameter"]; given.present()) {
    const Where where{path, location};
    return std::make_shared<const Parameter>(
        read<Shape>(given["shape"], where.field("shape")),
        given["init"].present() ? read<Init>(given["init"], where.field("init")) : init::zeros(),
        location);
  }
  if (const Value& given = entry["buffer"]; given.present()) {
    const Where where{path, location};
    const Shape shape = read<Shape>(given["shape"], where.field("shape"));
    const DType dtype =
        given["dtype"].present() ? read<DType>(given["dtype"], where.field("dtype")) : f32;
    const Value& initial = given["initial"];
    if (initial.kind != Kind::kArray) {
      return std::make_shared<const Buffer>(
          shape, initial.present() ? read<double>(initial, where.field("initial")) : 0, dtype,
          location);
    }
    if (static_cast<DType>(initial.dtype) != dtype)
      where.field("initial").expected("elements of the buffer's dtype", initial);
    const HostView view(dtype, initial.text.data(), initial.count);
    return std::make_shared<const Buffer>(
        Buffer::from(HostTensor::from(shape, view, location), location));
  }
  const Value& layer = entry["layer"];
  const MakeLayer make =
      find_maker({layer_makers(), language_layer_makers()}, layer.text, {path, location});
  return make(Call(layer.text, entry["arguments"].items, location));
}

// Returns the parameter of a layer by its path in the layer.
const Parameter& find_parameter(const AnyLayer& layer, const std::string& wanted,
                                const Call& call) {
  const Parameter* found = nullptr;
  std::string names;
  ParameterVisitor visitor([&](const std::string& path, const Parameter& parameter) {
    if (path == wanted) found = &parameter;
    names += (names.empty() ? "" : ", ") + path;
  });
  layer.visit(visitor);
  if (found == nullptr) {
    throw UserError("the layer has no parameter '" + wanted + "'; available: " + names,
                    call.location);
  }
  return *found;
}

const Model& model_of(const Call& call) {
  return Tracing::current(call.name(), call.location).model;
}

constexpr std::pair<std::string_view, Op> kModelOps[] = {
    {"$input",
     [](const Call& c, Writer& w) {
       const auto name = c.get<std::string>(0, "name");
       put(w, Tracing::current(name, c.location).inputs[{name, c.location}]);
     }},
    {"$parameter",
     [](const Call& c, Writer& w) {
       put(w, model_of(c).entry<Parameter>(c.get<std::size_t>(0, "entry")).tensor(c.location));
     }},
    {"$layerParameter",
     [](const Call& c, Writer& w) {
       const auto& layer = model_of(c).entry<AnyLayer>(c.get<std::size_t>(0, "entry"));
       put(w, find_parameter(layer, c.get<std::string>(1, "name"), c).tensor(c.location));
     }},
    {"$buffer",
     [](const Call& c, Writer& w) {
       put(w, model_of(c).entry<Buffer>(c.get<std::size_t>(0, "entry")).tensor(c.location));
     }},
    {"$setBuffer",
     [](const Call& c, Writer& w) {
       model_of(c)
           .entry<Buffer>(c.get<std::size_t>(0, "entry"))
           .set(c.get<Tensor>(1, "value"), c.location);
       w.nothing();
     }},
};

}  // namespace

OpTable model_ops() { return kModelOps; }

Model Model::from(const Value& entries) {
  Model model;
  for (const Value& each : entries.items) {
    Entry entry;
    entry.path = split_path(each["path"].text);
    if (const Value& same = each["same"]; same.present()) {
      entry.part = model.entries_.at(static_cast<std::size_t>(same.number)).part;
    } else {
      entry.part = make_part(each, source_location(each["file"], each["line"]));
    }
    model.entries_.push_back(std::move(entry));
  }
  return model;
}

void Model::visit_fields(ParameterVisitor& visitor) const {
  for (const auto& [path, part] : entries_) {
    if (path.size() == 1 && path[0].empty()) {  // the model is one layer
      std::get<std::shared_ptr<const AnyLayer>>(part)->visit(visitor);
      continue;
    }
    for (std::size_t i = 0; i + 1 < path.size(); ++i) visitor.enter(path[i]);
    if (const auto* parameter = std::get_if<std::shared_ptr<const Parameter>>(&part)) {
      visitor.parameter(path.back(), **parameter);
    } else if (const auto* buffer = std::get_if<std::shared_ptr<const Buffer>>(&part)) {
      visitor.buffer(path.back(), **buffer);
    } else {
      visitor.enter(path.back());
      std::get<std::shared_ptr<const AnyLayer>>(part)->visit(visitor);
      visitor.leave();
    }
    for (std::size_t i = 0; i + 1 < path.size(); ++i) visitor.leave();
  }
}

}  // namespace tensorgrad::web
