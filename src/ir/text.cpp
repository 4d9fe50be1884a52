// SPDX-License-Identifier: MIT
// IR text. A graph has one line per node, followed by its outputs and updates:
//
//   %3 = add(%1, %2) {axis=1} : f32[4,8] @ "mlp.cpp":41 "gelu"
//   output loss = %9
//   update %0 = %8
//
// Attributes are integers, lists [1,2], hexadecimal floats (f:) and quoted text. An output name
// that is not a word is quoted, too. A comment starts with `//`.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>

#include "base/numbers.h"
#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

}  // namespace

std::string attr_text(const AttrValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* s = std::get_if<std::string>(&value)) return quoted_text(*s);
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) return to_string(*l);
  return "f:" + hex_float(std::get<double>(value));
}

std::string print(const Node& node) {
  std::string text = std::string(node.op->name) + "(";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    text += (i > 0 ? ", %" : "%") + std::to_string(node.inputs[i]);
  }
  text += ')';
  if (!node.attrs.items().empty()) {
    text += " {";
    for (std::size_t i = 0; i < node.attrs.items().size(); ++i) {
      const auto& [key, value] = node.attrs.items()[i];
      text += (i > 0 ? ", " : "") + key + "=" + attr_text(value);
    }
    text += '}';
  }
  text += " : " + to_string(node.type);
  if (node.location.known())
    text += " @ " + quoted_text(node.location.file) + ":" + std::to_string(node.location.line);
  if (!node.origin.empty()) text += " " + quoted_text(node.origin);
  if (node.group >= 0) text += "  // group " + std::to_string(node.group);
  return text;
}

namespace {

// Returns a copy of the name that lives until the process ends.
const char* intern(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(text).first->c_str();
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name,
         const std::function<const OpDef*(std::string_view)>& find_op)
      : text_(text), name_(name), find_op_(find_op) {}

  Graph run() {
    for (skip(); at_ < text_.size(); skip()) {
      if (take("output")) {
        output();
      } else if (take("update")) {
        update();
      } else {
        node();
      }
    }
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const { fail(expected, line_); }
  [[noreturn]] void fail(const std::string& expected, int line) const {
    refuse("expected " + expected, line);
  }
  [[noreturn]] void refuse(const std::string& text, int line) const {
    throw IoError(name_ + ":" + std::to_string(line) + ": " + text);
  }

  // Skips whitespace and comments.
  void skip() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
      } else if (text_.substr(at_, 2) == "//") {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) == 0) {
        return;
      }
    }
  }

  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail("'" + std::string(token) + "'");
  }

  std::string word() {
    skip();
    std::string out;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      out += text_[at_++];
    }
    if (out.empty()) fail("a name");
    return out;
  }

  std::string text() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    expect("\"");
    return out;
  }

  std::int64_t integer() {
    skip();
    std::size_t end = at_;
    if (end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
    const std::string digits(text_.substr(at_, end - at_));
    if (digits.empty() || digits == "-" || digits.size() > 18) fail("an integer");
    at_ = end;
    return std::strtoll(digits.c_str(), nullptr, 10);
  }

  std::vector<std::int64_t> list() {
    expect("[");
    std::vector<std::int64_t> items;
    if (take("]")) return items;
    do items.push_back(integer());
    while (take(","));
    expect("]");
    return items;
  }

  ValueId value() {
    expect("%");
    const std::int64_t id = integer();
    if (id < 0 || id >= graph_.size()) fail("the number of an earlier value");
    return static_cast<ValueId>(id);
  }

  AttrValue attr() {
    skip();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"') return text();
    if (c == '[') return list();
    if (!take("f:")) return integer();
    std::string_view rest = text_.substr(at_);
    const std::optional<double> number = take_float(rest);
    if (!number) fail("a number");
    at_ = text_.size() - rest.size();
    return *number;
  }

  Type type() {
    Type type;
    const std::string dtype = word();
    bool known = false;
    for (const DType each : {DType::kF32, DType::kI32, DType::kU32, DType::kBool, DType::kF16}) {
      if (dtype != to_string(each)) continue;
      type.dtype = each;
      known = true;
    }
    if (!known) fail("an element type");
    type.shape = list();
    return type;
  }

  void node() {
    expect("%");
    if (integer() != graph_.size()) fail("%" + std::to_string(graph_.size()));
    expect("=");
    Node node;
    const std::string op = word();
    node.op = find_op_(op);
    if (node.op == nullptr) fail("the name of an op, got '" + op + "'");
    expect("(");
    if (!take(")")) {
      do node.inputs.push_back(value());
      while (take(","));
      expect(")");
    }
    if (take("{")) {
      do {
        const std::string key = word();
        expect("=");
        node.attrs.set(key, attr());
      } while (take(","));
      expect("}");
    }
    expect(":");
    node.type = type();
    const int line = line_;
    if (take("@")) {
      const std::string file = text();
      expect(":");
      node.location = SourceLocation(intern(file), static_cast<unsigned>(integer()));
    }
    skip();
    if (at_ < text_.size() && text_[at_] == '"') node.origin = text();
    checked(node, line);
  }

  void checked(const Node& node, int line) {
    if (node.op->arity >= 0 && node.inputs.size() != static_cast<size_t>(node.op->arity)) {
      fail(std::to_string(node.op->arity) + " inputs of " + node.op->name, line);
    }
    try {
      const ValueId id = graph_.add(*node.op, node.inputs, node.attrs, node.location, node.origin);
      check_name(id, line);
      if (graph_[id].type != node.type) fail("type " + to_string(graph_[id].type), line);
    } catch (const IoError&) {
      throw;
    } catch (const UserError& error) {
      refuse(error.message(), line);
    } catch (const Error& error) {  // a missing attribute; nodes of the library have all of them
      refuse(std::string(node.op->name) + ": " + error.message(), line);
    }
  }

  // Rejects duplicate names, since leaves are read and written by name.
  void check_name(ValueId id, int line) const {
    const Node& node = graph_[id];
    if (node.op->kind != OpKind::kLeaf || node.op->eval != nullptr) return;  // constants have none
    const std::string& name = node.attrs.text("name");
    if (graph_.find_leaf(*node.op, name) == id) return;
    refuse(std::string(node.op->name) + ": the name '" + name + "' is used twice", line);
  }

  void output() {
    skip();
    const std::string name = at_ < text_.size() && text_[at_] == '"' ? text() : word();
    const int line = line_;
    for (const GraphOutput& other : graph_.outputs) {
      if (other.name == name) refuse("two outputs are named '" + name + "'", line);
    }
    expect("=");
    graph_.outputs.push_back({name, value()});
  }

  void update() {
    const ValueId leaf = value();
    const int line = line_;
    const std::string what = "update %" + std::to_string(leaf);
    const std::string_view op = graph_[leaf].op->name;
    if (op != "state" && op != "arena" && op != "parameter") {
      refuse(what + ": expected a state, an arena or a parameter, got " + std::string(op), line);
    }
    for (const GraphUpdate& other : graph_.updates) {
      if (other.leaf == leaf) refuse(what + ": already updated", line);
    }
    expect("=");
    const ValueId to = value();
    if (graph_[to].type != graph_[leaf].type) {
      refuse(what + ": expected " + to_string(graph_[leaf].type) + ", got %" + std::to_string(to) +
                 " " + to_string(graph_[to].type),
             line);
    }
    graph_.updates.push_back({leaf, to});
  }

  std::string_view text_;
  const std::string& name_;
  const std::function<const OpDef*(std::string_view)>& find_op_;
  Graph graph_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string text;
  for (ValueId id = 0; id < graph.size(); ++id) {
    text += "%" + std::to_string(id) + " = " + print(graph[id]) + "\n";
  }
  for (const GraphOutput& output : graph.outputs) {
    text += "output " + (is_word(output.name) ? output.name : quoted_text(output.name)) + " = %" +
            std::to_string(output.value) + "\n";
  }
  for (const GraphUpdate& update : graph.updates) {
    text += "update %" + std::to_string(update.leaf) + " = %" + std::to_string(update.value) + "\n";
  }
  return text;
}

Graph parse(std::string_view text, const std::string& name,
            const std::function<const OpDef*(std::string_view)>& find_op) {
  return Parser(text, name, find_op).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
