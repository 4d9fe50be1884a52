// SPDX-License-Identifier: MIT
#include "requests.h"

#include <unordered_map>

namespace tensorgrad::web {

RecoveryFunction Type<RecoveryFunction>::read(const Value& v, const Where& where) {
  return [listener = web::read<double>(v, where)](const Recovery& recovery) {
    Writer event;
    put(event, recovery);
    emit(listener, event.take());
  };
}

std::shared_ptr<Device> Type<std::shared_ptr<Device>>::read(const Value& v, const Where& where) {
  const int id = web::read<int>(v["program"], where);
  if (auto* trainer = trainers().find(id)) return trainer->base().same_device().opened;
  if (const auto* function = functions().find(id)) return function->function.same_device().opened;
  throw UserError(where.path + ": the program was freed, or belongs to another engine",
                  where.location);
}

Objects<TrainerObject>& trainers() {
  static Objects<TrainerObject> all;
  return all;
}

Objects<FunctionObject>& functions() {
  static Objects<FunctionObject> all;
  return all;
}

void answer(const Value& message, Writer& result) {
  static const auto known = [] {
    std::unordered_map<std::string_view, Handler> all;
    for (const HandlerTable table :
         {trainer_handlers(), function_handlers(), loader_handlers(), full_handlers()}) {
      for (const auto& [name, handler] : table) all.emplace(name, handler);
    }
    return all;
  }();
  const Loc location = source_location(message["file"], message["line"]);
  const auto at = known.find(message["call"].text);
  if (at == known.end())
    throw InternalError("unknown request '" + std::string(message["call"].text) + "'");
  at->second(Request(message, location), result);
  if (result.empty()) result.nothing();
}

std::shared_ptr<TracedFunction> TracedFunction::from(const Value& value) {
  auto result = std::make_shared<TracedFunction>();
  result->add(value["tapes"]);
  return result;
}

void TracedFunction::add(const Value& tapes) {
  for (const Value& each : tapes.items) {
    const auto size = static_cast<std::int64_t>(each.items.at(0).number);
    const Value& tape = each.items.at(1);
    if (tape.kind == Kind::kString) {
      failed_[size] = tape.text;
    } else {
      tapes_[size] = read_tape(tape);
    }
  }
}

std::map<std::string, Tensor> TracedFunction::operator()(
    const Model& model, const Inputs& in, const std::vector<InputSpec>& specs) const {
  std::int64_t size = 0;
  for (const InputSpec& spec : specs) {
    for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
      if (spec.shape[axis] == kDynamic) size = in[spec.name].shape()[axis];
    }
  }
  if (const auto failed = failed_.find(size); failed != failed_.end())
    throw UserError(failed->second);
  const auto tape = tapes_.find(size);
  if (tape == tapes_.end()) throw NeedsTape{size};
  Tracing tracing(model, in);
  const Value result = tracing.replay(tape->second);
  std::map<std::string, Tensor> outputs;
  for (std::size_t i = 0; i < result.keys.size(); ++i) {
    const std::string name(result.keys[i]);
    outputs[name] = read<Tensor>(result.items[i], {"the output '" + name + "'", {}});
  }
  return outputs;
}

FeedView read_feed(const Value& inputs, const Where& where) {
  FeedView feed;
  for (std::size_t i = 0; i < inputs.keys.size(); ++i) {
    const Value& value = inputs.items[i];
    const std::string name(inputs.keys[i]);
    if (value.kind != Kind::kArray || value.dtype >= kBytes)
      where.field("'" + name + "'").expected("a Float32Array, Int32Array or Uint32Array", value);
    feed.add(name, FeedValue(static_cast<DType>(value.dtype), value.text.data(), value.count));
  }
  return feed;
}

std::map<std::string, HostTensor> read_tensors_by_name(const Value& values, const Model& model,
                                                       const Where& where) {
  std::map<std::string, Shape> shapes;
  ParameterVisitor visitor(
      [&](const std::string& path, const Parameter& parameter) {
        shapes[path] = parameter.shape();
      },
      [&](const std::string& path, const Buffer& buffer) { shapes[path] = buffer.shape(); });
  model.visit_fields(visitor);
  std::map<std::string, HostTensor> all;
  for (std::size_t i = 0; i < values.keys.size(); ++i) {
    const std::string name(values.keys[i]);
    const Value& given = values.items[i];
    const Value& data = given.kind == Kind::kObject ? given["data"] : given;
    const Where here = where.field("'" + name + "'");
    if (data.kind != Kind::kArray || data.dtype >= kBytes)
      here.expected("a typed array or {shape, data}", data);
    Shape shape{static_cast<std::int64_t>(data.count)};
    if (given["shape"].present()) {
      shape = read<Shape>(given["shape"], here.field("shape"));
    } else if (const auto known = shapes.find(name); known != shapes.end()) {
      shape = known->second;
    }
    const HostView view(static_cast<DType>(data.dtype), data.text.data(), data.count);
    try {
      all.emplace(name, HostTensor::from(shape, view, where.location));
    } catch (Error& error) {
      error.add_context("in '" + name + "'");
      throw;
    }
  }
  return all;
}

void put_profile(Writer& w, const Profile& profile) {
  w.object(4);
  w.key("profile");
  put(w, profile);
  w.key("table");
  put(w, profile.table());
  w.key("html");
  put(w, profile.html());
  w.key("traceEvents");
  put(w, profile.trace_events());
}

void put_bytes(Writer& w, const std::vector<std::byte>& bytes) {
  w.array(kBytes, bytes.size(), bytes);
}

}  // namespace tensorgrad::web
