// SPDX-License-Identifier: MIT
// Functions traced by JavaScript. JavaScript runs such a function once, which records its calls on
// a tape. The library replays the tape whenever it traces the function, in this instance of the
// module or in that of a worker.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert.h"

namespace tensorgrad::web {

class Model;
struct TapeEntry;

// Recorded calls and the encoded value that they return: of a whole function, or of a callback such
// as the function of checkpoint().
struct Tape {
  std::vector<TapeEntry> entries;
  std::vector<std::byte> result;
};

// A recorded call: its encoded arguments, and what its callbacks did, in the order of their calls.
struct TapeEntry {
  std::vector<std::byte> message;
  std::vector<Tape> callbacks;
};

void put(Writer& w, const Tape& tape);
Tape read_tape(const Value& value);

// JavaScript threw, and keeps the exception. Neither this nor the next is a std::exception, because
// the library must not catch it, for example to add context.
struct JavaScriptThrew {};

// Thrown at the end of a recorded function, because the library need not compile it.
struct Recorded {
  Tape tape;
};

// A function with a dynamic size has no tape for `size`.
struct NeedsTape {
  std::int64_t size;
};

// Arguments of a call of an op, a layer's constructor or a layer.
class Call {
 public:
  Call(std::string_view name, std::span<const Value> arguments, Loc loc)
      : location(loc), name_(name), arguments_(arguments) {}

  // Returns argument i. Throws UserError if it is missing or has another type. Not inlined:
  // hundreds of ops call it.
  template <class T>
  [[gnu::noinline]] T get(std::size_t i, const char* argument) const {
    return read<T>(at(i), where(argument));
  }
  // Returns argument i, or `fallback` if it is not given.
  template <class T>
  [[gnu::noinline]] T get(std::size_t i, const char* argument,
                          std::type_identity_t<T> fallback) const {
    const Value& value = at(i);
    return value.present() ? read<T>(value, where(argument)) : fallback;
  }

  // Returns true if the arguments fit the types; those from `required` on may be missing.
  template <class... T>
  [[nodiscard]] bool fits(std::size_t required) const {
    if (arguments_.size() > sizeof...(T)) return false;
    std::size_t i = 0;
    return (fits_one<T>(i++, required) && ...);
  }

  // Throws UserError if there are more than `most` arguments.
  void limit(std::size_t most) const;
  // Throws UserError that lists the overloads.
  [[noreturn]] void no_overload(std::initializer_list<const char*> known) const;

  [[nodiscard]] const Value& at(std::size_t i) const;
  [[nodiscard]] Where where(const char* argument) const {
    return {std::string(name_) + ": " + argument, location};
  }
  [[nodiscard]] std::string_view name() const { return name_; }

  // Returns the layer of the model that argument 0 names.
  template <class T>
  const T& layer() const;

  Loc location;

 private:
  template <class T>
  [[nodiscard]] bool fits_one(std::size_t i, std::size_t required) const {
    const Value& value = at(i);
    return value.present() ? Type<T>::fits(value) : i >= required;
  }

  std::string_view name_;
  std::span<const Value> arguments_;
};

// An op: reads its arguments and writes its result.
using Op = void (*)(const Call& call, Writer& result);

// Calls an op by an encoded list [name, file, line, arguments ...]. Throws UserError if the name is
// unknown.
void call_op(const Value& message, Writer& result);

// A function while it is traced. Keeps the tensors that JavaScript knows by number, in order of
// creation. The order is the same when the tape is replayed.
class Tracing {
 public:
  // Starts tracing a function of a model, until the end of the scope.
  Tracing(const Model& model, const Inputs& inputs);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  // Returns the innermost function being traced. Throws UserError if there is none.
  static Tracing& current(std::string_view what, Loc loc);
  static bool active();

  // Lets JavaScript run the function and returns its tape. Throws JavaScriptThrew.
  Tape record();
  // Replays a tape and returns its result.
  Value replay(const Tape& tape);

  // Calls an op and returns its encoded result. While recording, also appends it to the tape.
  std::vector<std::byte> call(std::span<const std::byte> message);
  // Calls the JavaScript function that an argument stands for, or replays it.
  Value callback(const Value& function, const std::vector<std::vector<Tensor>>& arguments);

  Tensor tensor(double id, const Where& where) const;
  std::uint32_t add(Tensor tensor);

  const Model& model;
  const Inputs& inputs;
  optim::Update* update = nullptr;  // set while an optimizer is traced

 private:
  Tracing* outer_;
  std::vector<Tensor> tensors_;
  bool recording_ = false;
  Tape* tape_ = nullptr;                      // the tape being recorded
  TapeEntry* entry_ = nullptr;                // the call being recorded
  const TapeEntry* done_ = nullptr;           // the call being replayed
  std::size_t callbacks_ = 0;                 // its callbacks so far
  std::vector<std::vector<std::byte>> kept_;  // bytes that decoded values refer to
};

// Reads the optimizer {lr, params, tape} that JavaScript traced. Without a tape, applying it
// records it: throws Recorded.
Optimizer traced_optimizer(const Value& value, const Where& where);
// The same, with a tape that can be replaced.
Optimizer traced_optimizer(const Value& value, const Where& where, std::shared_ptr<Tape> tape);

// Reads a list of tensors, or one.
std::vector<Tensor> read_tensors(const Value& value, const Where& where);

// Calls from WebAssembly to JavaScript; see exports.cpp.
bool run_traced_function();                                       // false if it threw
bool run_callback(int number, std::span<const std::byte> bytes);  // false if it threw
std::vector<std::byte> take_reply();                              // the result of either

}  // namespace tensorgrad::web
