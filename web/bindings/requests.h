// SPDX-License-Identifier: MIT
// JavaScript calls that may wait for a device: of trainers, functions and language models.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model.h"

namespace tensorgrad::web {

// Arguments of a request by name, and where it was made.
class Request {
 public:
  Request(const Value& message, Loc loc) : location(loc), message_(message) {}

  template <class T>
  T get(std::string_view name) const {
    return read<T>(message_[name], where(name));
  }
  template <class T>
  T get(std::string_view name, std::type_identity_t<T> fallback) const {
    const Value& value = message_[name];
    return value.present() ? read<T>(value, where(name)) : fallback;
  }
  const Value& operator[](std::string_view name) const { return message_[name]; }
  [[nodiscard]] const Value& all() const { return message_; }
  [[nodiscard]] Where where(std::string_view name) const { return {std::string(name), location}; }

  Loc location;

 private:
  const Value& message_;
};

using Handler = void (*)(const Request& request, Writer& result);
using HandlerTable = std::span<const std::pair<std::string_view, Handler>>;

HandlerTable trainer_handlers();
HandlerTable function_handlers();
HandlerTable loader_handlers();
HandlerTable full_handlers();  // text and ONNX; those of the core module throw or are missing

// Stops the texts that a generator is producing.
void stop_generator(int id);

// Sends an event to a JavaScript listener, given by its number, while a request is answered.
void emit(double listener, std::span<const std::byte> event);

// Answers an encoded request {call, file, line, ...}.
void answer(const Value& message, Writer& result);

// A function traced by JavaScript, as one tape or one for each dynamic size.
class TracedFunction {
 public:
  // Reads {tapes: [[size, tape or error text], ...]}.
  static std::shared_ptr<TracedFunction> from(const Value& value);
  void add(const Value& tapes);

  // Replays the tape. Throws NeedsTape.
  std::map<std::string, Tensor> operator()(const Model& model, const Inputs& in,
                                           const std::vector<InputSpec>& specs) const;

 private:
  std::map<std::int64_t, Tape> tapes_;
  std::map<std::int64_t, std::string> failed_;  // sizes that the function does not accept
};

// Objects that JavaScript knows by number.
inline int next_object = 1;
template <class T>
class Objects {
 public:
  double add(T object) {
    all_.emplace(next_object, std::move(object));
    return next_object++;
  }
  T& at(const Request& request) {
    const auto found = all_.find(request.get<int>("id"));
    if (found == all_.end()) throw UserError("the object was freed", request.location);
    return found->second;
  }
  T* find(int id) {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : &found->second;
  }
  void remove(int id) { all_.erase(id); }

 private:
  std::map<int, T> all_;
};

using ModelFunction = std::function<std::map<std::string, Tensor>(const Model&, const Inputs&)>;

// The losses of a trainer as traced by JavaScript, in their order.
struct TracedLosses {
  std::vector<std::shared_ptr<TracedFunction>> losses;
  std::vector<std::shared_ptr<Tape>> optimizers;  // null for optimizers of the library
};

// A trainer of one loss, or of several objectives.
struct TrainerObject {
  std::variant<Trainer<Model>, MultiTrainer<Model>> trainer;
  TracedLosses traced;
  std::map<std::string, Objective> objectives = {};  // by name; empty if there is one loss
  int generation = 0;                                // number of times that its model was replaced

  [[nodiscard]] TrainerBase& base();
  [[nodiscard]] const Model& model() const;
  CompiledFunction attach(ModelFunction forward, const FunctionOptions& options, Loc loc);
};
struct FunctionObject {
  CompiledFunction function;
  Model model;
  std::shared_ptr<TracedFunction> traced;
  int generation = 0;  // number of times that the model of its trainer was replaced
};
Objects<TrainerObject>& trainers();
Objects<FunctionObject>& functions();
Objects<DataLoader>& loaders();

// Attaches the generators of a request {id, entry, options, file, line} to the trainer of a new
// model. Returns a function that replaces those of the previous model. Throws UserError if the new
// model does not fit one. In the full module; the core module has no generators.
std::function<void()> reattach_generators(const Request& r, TrainerObject& to);

// Calls f(), and adds the location of the user's call to its errors.
template <class F>
void with_context(const char* what, Loc location, const F& f) {
  try {
    f();
  } catch (Error& error) {
    error.add_context(what + to_string(SourceLocation(location)));
    throw;
  }
}

// Returns a function that replays the tapes of a loss with these inputs.
std::function<Tensor(const Model&, const Inputs&)> loss_function(
    const std::shared_ptr<TracedFunction>& traced, const std::vector<InputSpec>& inputs);

// Returns the inputs of a call. Refers to the request.
FeedView read_feed(const Value& inputs, const Where& where);
// Returns tensors by name. Each is {shape, data}, or data with the shape in the model.
std::map<std::string, HostTensor> read_tensors_by_name(const Value& values, const Model& model,
                                                       const Where& where);
void put_profile(Writer& w, const Profile& profile);

// Writes the content of a file.
void put_bytes(Writer& w, const std::vector<std::byte>& bytes);

}  // namespace tensorgrad::web
