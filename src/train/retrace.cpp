// SPDX-License-Identifier: MIT
#include "train/retrace.h"

#include <algorithm>

#include "base/env.h"
#include "base/numbers.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

// Returns a text such as "multiply f32[3]" or "constant f32[] value=2".
std::string text_of(const Node& node) {
  std::string text = std::string(node.op->name) + " " + to_string(node.type);
  for (const auto& [key, value] : node.attrs.items()) {
    if (key == "dtype") continue;  // part of the type
    const auto* number = std::get_if<double>(&value);
    text += " " + key + "=" + (number != nullptr ? number_text(*number) : attr_text(value));
  }
  return text;
}

// Compares as text, so that NaN equals itself.
bool same_attrs(const Attrs& a, const Attrs& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && attr_text(x.second) == attr_text(y.second);
  };
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same);
}

}  // namespace

void Retrace::keep(const Graph& traced) {
  if (env_flag("TENSORGRAD_RETRACE")) compiled_ = traced;
}

void Retrace::check(const std::string& what, const std::function<Graph()>& trace) const {
  if (!compiled_) return;
  const Graph now = trace();
  const auto differs = [&](const std::string& change, const Node& at) {
    throw UserError(what + " traces differently than when it was compiled: " + change +
                        "; a host variable is read only when a function is traced: pass it as an "
                        "input, or declare it with scalar()",
                    at.location);
  };
  const auto common = static_cast<std::size_t>(std::min(compiled_->size(), now.size()));
  for (std::size_t i = 0; i < common; ++i) {
    const Node& before = compiled_->nodes[i];
    const Node& after = now.nodes[i];
    if (before.op != after.op || before.type != after.type ||
        !same_attrs(before.attrs, after.attrs))
      differs(text_of(before) + " is now " + text_of(after), after);
    if (before.inputs != after.inputs) differs(text_of(after) + " reads other values", after);
  }
  if (compiled_->size() > now.size())
    differs(text_of(compiled_->nodes[common]) + " is missing", compiled_->nodes[common]);
  if (compiled_->size() < now.size())
    differs(text_of(now.nodes[common]) + " is new", now.nodes[common]);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
