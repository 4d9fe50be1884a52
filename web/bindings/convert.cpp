// SPDX-License-Identifier: MIT
#include "convert.h"

#include <algorithm>
#include <set>

#include "registry.h"

namespace tensorgrad::web {
namespace {

// Calls the maker named by {make, arguments, file, line}.
template <class Make>
auto make_by_name(MakerTable<Make> table, const Value& v, const Where& where) {
  const std::string name(v["make"].text);
  const Make make = find_maker({table}, name, where);
  return make(Call(name, v["arguments"].items, source_location(v["file"], v["line"])));
}

}  // namespace

void Where::expected(const std::string& what, const Value& got) const {
  throw UserError(path + ": expected " + what + ", got " + got.description(), location);
}

void check_keys(const Value& value, const std::vector<std::string_view>& known,
                const Where& where) {
  for (const std::string_view key : value.keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string names;
    for (const auto each : known) names += (names.empty() ? "" : ", ") + std::string(each);
    throw UserError(where.path + ": unknown option '" + std::string(key) + "'; available: " + names,
                    where.location);
  }
}

ParamFilter Type<ParamFilter>::read(const Value& v, const Where& where) {
  if (v.kind == Kind::kString) return {std::string(v.text)};
  const auto list = web::read<std::vector<std::string>>(v, where);
  const std::set<std::string> names(list.begin(), list.end());
  return {[names](const std::string& name, const Shape&) { return names.contains(name); }};
}

InputSpec Type<InputSpec>::read(const Value& v, const Where& where) {
  const std::string name(v["name"].text);
  const Where here = where.field(name);
  const Value& dtype = v["dtype"];
  return {name, web::read<Shape>(v["shape"], here.field("shape")),
          dtype.present() ? web::read<DType>(dtype, here.field("dtype")) : f32};
}

Init Type<Init>::read(const Value& v, const Where& where) {
  if (v.kind != Kind::kObject) where.expected("initial values, such as init.zeros()", v);
  return make_by_name(init_makers(), v, where);
}

Schedule Type<Schedule>::read(const Value& v, const Where& where) {
  if (v.kind == Kind::kNumber) return {v.number};
  if (v.kind != Kind::kObject) where.expected("a number or a schedule", v);
  return make_by_name(schedule_makers(), v, where);
}

Optimizer Type<Optimizer>::read(const Value& v, const Where& where) {
  if (v.kind != Kind::kObject) where.expected("an optimizer, such as optim.adam()", v);
  const std::string name(v["make"].text);
  if (name == "custom") return traced_optimizer(v, {"the optimizer", where.location});
  return find_maker({optimizer_makers()}, name, where)(v["options"], {name, where.location});
}

InitFunction Type<InitFunction>::read(const Value& v, const Where& where) {
  std::map<std::string, Init> all;
  for (std::size_t i = 0; i < v.keys.size(); ++i) {
    const std::string name(v.keys[i]);
    all.emplace(name, web::read<Init>(v.items[i], where.field(name)));
  }
  return [all](const std::string& name, const Shape&) -> std::optional<Init> {
    const auto at = all.find(name);
    if (at == all.end()) return std::nullopt;
    return at->second;
  };
}

RowsFunction Type<RowsFunction>::read(const Value& v, const Where& where) {
  std::map<std::string, std::vector<RowRange>> all;
  for (std::size_t i = 0; i < v.keys.size(); ++i) {
    const std::string name(v.keys[i]);
    using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
    for (const auto& [begin, end] : web::read<Pairs>(v.items[i], where.field(name)))
      all[name].push_back({begin, end});
  }
  return [all](const std::string& name, const Shape&) {
    const auto at = all.find(name);
    return at == all.end() ? std::vector<RowRange>{} : at->second;
  };
}

void put(Writer& w, Tensor tensor) {
  w.tensor(register_tensor(tensor), tensor.shape(), tensor.dtype());
}

void put(Writer& w, const HostTensor& tensor) {
  w.object(3);
  w.key("dtype");
  put(w, tensor.dtype);
  w.key("shape");
  w.list(tensor.shape.size());
  for (const std::int64_t size : tensor.shape) w.number(static_cast<double>(size));
  w.key("data");
  if (tensor.dtype == DType::kF16) {
    put(w, tensor.floats());
  } else {
    w.array(static_cast<std::uint32_t>(tensor.dtype), tensor.bytes.size() / kWordBytes,
            tensor.bytes);
  }
}

}  // namespace tensorgrad::web
