// SPDX-License-Identifier: MIT
#include "tracing.h"

#include <unordered_map>

#include "model.h"
#include "registry.h"

namespace tensorgrad::web {
namespace {

Tracing* innermost = nullptr;

const Op* find_op(std::string_view name) {
  static const auto known = [] {
    std::unordered_map<std::string_view, Op> all;
    for (const auto& table : op_tables()) {
      for (const auto& [each, op] : table) all.emplace(each, op);
    }
    return all;
  }();
  const auto at = known.find(name);
  return at == known.end() ? nullptr : &at->second;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void put(Writer& w, const Tape& tape) {
  w.list(2);
  w.list(tape.entries.size());
  for (const TapeEntry& entry : tape.entries) {
    w.list(2);
    w.array(kBytes, entry.message.size(), entry.message);
    w.list(entry.callbacks.size());
    for (const Tape& each : entry.callbacks) put(w, each);
  }
  w.array(kBytes, tape.result.size(), tape.result);
}

Tape read_tape(const Value& value) {
  const auto copy = [](std::string_view text) {
    const auto bytes = bytes_of(text);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  Tape tape;
  for (const Value& each : value.items.at(0).items) {
    TapeEntry entry;
    entry.message = copy(each.items.at(0).text);
    for (const Value& callback : each.items.at(1).items)
      entry.callbacks.push_back(read_tape(callback));
    tape.entries.push_back(std::move(entry));
  }
  tape.result = copy(value.items.at(1).text);
  return tape;
}

const Value& Call::at(std::size_t i) const {
  static const Value nothing;
  return i < arguments_.size() ? arguments_[i] : nothing;
}

void Call::limit(std::size_t most) const {
  if (arguments_.size() > most) {
    throw UserError(std::string(name_) + ": expected at most " + std::to_string(most) +
                        " arguments, got " + std::to_string(arguments_.size()),
                    location);
  }
}

void Call::no_overload(std::initializer_list<const char*> known) const {
  std::string text = std::string(name_) + ": the arguments (";
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    text += (i == 0 ? "" : ", ") + arguments_[i].description();
  text += ") fit none of the overloads: ";
  bool first = true;
  for (const char* each : known) {
    text += (first ? "(" : ", (") + std::string(each) + ")";
    first = false;
  }
  throw UserError(text, location);
}

Loc source_location(const Value& file, const Value& line) {
  static std::map<std::string, bool, std::less<>> files;  // their names live as long as the process
  auto at = files.find(file.text);
  if (at == files.end()) at = files.emplace(std::string(file.text), true).first;
  return {at->first.c_str(), static_cast<unsigned>(line.number)};
}

void call_op(const Value& message, Writer& result) {
  constexpr std::size_t kFirst = 3;
  if (message.kind != Kind::kList || message.items.size() < kFirst)
    throw InternalError("a call of JavaScript is malformed");
  const std::string_view name = message.items[0].text;
  const Loc location = source_location(message.items[1], message.items[2]);
  const Op* op = find_op(name);
  if (op == nullptr) throw UserError("unknown op '" + std::string(name) + "'", location);
  (*op)(Call(name, std::span(message.items).subspan(kFirst), location), result);
}

Tracing::Tracing(const Model& m, const Inputs& in) : model(m), inputs(in), outer_(innermost) {
  innermost = this;
}

Tracing::~Tracing() { innermost = outer_; }

bool Tracing::active() { return innermost != nullptr; }

Tracing& Tracing::current(std::string_view what, Loc loc) {
  if (innermost == nullptr) {
    throw UserError(std::string(what) +
                        ": ops can only be called in a function that is being traced: the loss of "
                        "compile(), or the function of attach() or compileFunction()",
                    loc);
  }
  return *innermost;
}

Tape Tracing::record() {
  Tape tape;
  recording_ = true;
  tape_ = &tape;
  if (!run_traced_function()) throw JavaScriptThrew();  // NOLINT(*-exception-baseclass)
  tape.result = take_reply();
  return tape;
}

Value Tracing::replay(const Tape& tape) {
  for (const TapeEntry& entry : tape.entries) {
    const TapeEntry* const done = std::exchange(done_, &entry);
    const std::size_t callbacks = std::exchange(callbacks_, 0);
    Writer result;
    call_op(decode(entry.message), result);
    done_ = done;
    callbacks_ = callbacks;
  }
  return decode(tape.result);
}

std::vector<std::byte> Tracing::call(std::span<const std::byte> message) {
  TapeEntry entry;
  entry.message.assign(message.begin(), message.end());
  TapeEntry* const before = std::exchange(entry_, &entry);
  Writer result;
  try {
    call_op(decode(entry.message), result);
  } catch (...) {
    entry_ = before;
    throw;
  }
  entry_ = before;
  if (recording_) tape_->entries.push_back(std::move(entry));
  return result.take();
}

Value Tracing::callback(const Value& function, const std::vector<std::vector<Tensor>>& arguments) {
  Writer encoded;
  encoded.list(arguments.size());
  for (const auto& each : arguments) put(encoded, each);
  if (!recording_) {
    if (callbacks_ >= done_->callbacks.size())
      throw InternalError("a callback is called more often than when it was recorded");
    return replay(done_->callbacks[callbacks_++]);
  }
  Tape tape;
  Tape* const before = std::exchange(tape_, &tape);
  const bool completed = run_callback(static_cast<int>(function.number), encoded.take());
  tape_ = before;
  if (!completed) throw JavaScriptThrew();  // NOLINT(*-exception-baseclass)
  kept_.push_back(tape.result = take_reply());
  entry_->callbacks.push_back(std::move(tape));
  return decode(kept_.back());
}

Tensor Tracing::tensor(double id, const Where& where) const {
  const auto i = static_cast<std::size_t>(id);
  if (i >= tensors_.size())
    throw UserError(where.path + ": the tensor belongs to another traced function", where.location);
  return tensors_[i];
}

std::uint32_t Tracing::add(Tensor tensor) {
  tensors_.push_back(tensor);
  return static_cast<std::uint32_t>(tensors_.size() - 1);
}

std::vector<Tensor> read_tensors(const Value& value, const Where& where) {
  if (value.kind == Kind::kTensor) return {read<Tensor>(value, where)};
  return read<std::vector<Tensor>>(value, where);
}

Tensor traced_tensor(double id, const Where& where) {
  return Tracing::current(where.path, where.location).tensor(id, where);
}

std::uint32_t register_tensor(Tensor tensor) {
  return Tracing::current("a tensor", {}).add(tensor);
}

}  // namespace tensorgrad::web
