// SPDX-License-Identifier: MIT
// Propagates names whose values may differ between threads ("varying") through all functions until
// nothing changes, then checks the barriers. A name stands for all variables of that name in its
// function. A part of a variable stands for the whole.
#include "support/wgsl_uniformity.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace tensorgrad::testing {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns the identifiers of an expression, except those after a dot.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_letter(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    const bool number = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (!number && (i == 0 || text[i - 1] != '.')) names.push_back(text.substr(i, end - i));
    i = end;
  }
  return names;
}

// Returns the end of the parentheses or braces that open at `open`.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '{' || text[i] == '[' ? 1 : 0;
    depth -= text[i] == ')' || text[i] == '}' || text[i] == ']' ? 1 : 0;
    if (depth == 0) return i;
  }
  return text.size();
}

// Splits a list at the commas that are outside parentheses.
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (list[i] == '(' || list[i] == '[')) i = closing(list, i);
    if (i < list.size() && list[i] != ',') continue;
    parts.push_back(list.substr(from, std::min(i, list.size()) - from));
    from = i + 1;
  }
  return parts;
}

struct Function {
  std::vector<std::string> parameters;
  std::string body;
  std::set<std::string> varying;
  bool waits = false;          // for other threads, directly or in a callee
  bool gives_varying = false;  // whatever its arguments are
};

class Uniformity {
 public:
  explicit Uniformity(const std::string& wgsl) {
    std::string text;
    for (std::size_t i = 0; i < wgsl.size(); ++i) {
      if (wgsl.compare(i, 2, "//") == 0) i = std::min(wgsl.find('\n', i), wgsl.size() - 1);
      text += wgsl[i];
    }
    find_globals(text);
    find_functions(text);
  }

  std::vector<std::string> run() {
    for (std::size_t before = 0, now = 1; before != now;) {
      before = now;
      found_.clear();
      for (auto& [name, function] : functions_) look_at(name, function);
      now = 1;
      for (const auto& [name, function] : functions_) {
        now +=
            function.varying.size() + (function.waits ? 1 : 0) + (function.gives_varying ? 1 : 0);
      }
    }
    return {found_.begin(), found_.end()};
  }

 private:
  // Control flow that depends on varying conditions.
  struct Flow {
    bool apart = false;      // some threads are not here
    bool left_loop = false;  // some threads have left the loop or its iteration
    bool left_function = false;
  };

  void find_globals(const std::string& text) {
    for (std::size_t at = text.find("var<"); at != std::string::npos; at = text.find("var<", at)) {
      const std::size_t close = text.find('>', at);
      const std::string space = text.substr(at + 4, close - at - 4);
      at = close;
      const bool constant = space == "uniform" || space == "storage" || space == "storage, read";
      if (!constant) memory_.insert(names_in(text.substr(close, 80)).at(0));
    }
  }

  void find_functions(const std::string& text) {
    for (std::size_t at = text.find("fn "); at != std::string::npos; at = text.find("fn ", at)) {
      if (at > 0 && is_letter(text[at - 1])) {
        at += 3;
        continue;
      }
      const std::size_t open = text.find('(', at), close = closing(text, open);
      const std::size_t begin = text.find('{', close), end = closing(text, begin);
      Function function;
      function.body = text.substr(begin + 1, end - begin - 1);
      for (const std::string& each : parts_of(text.substr(open + 1, close - open - 1))) {
        const std::size_t colon = each.find(':');
        if (colon == std::string::npos) continue;
        std::string name = each.substr(0, colon);
        std::string builtin;
        if (const std::size_t mark = name.find("@builtin("); mark != std::string::npos) {
          builtin = name.substr(mark + 9, closing(name, mark + 8) - mark - 9);
          name = name.substr(closing(name, mark + 8) + 1);
        }
        function.parameters.push_back(names_in(name).at(0));
        const bool same = builtin.empty() || builtin == "workgroup_id" ||
                          builtin == "num_workgroups" || builtin == "subgroup_size";
        if (!same) function.varying.insert(function.parameters.back());
      }
      functions_.emplace(names_in(text.substr(at + 3, open - at - 3)).at(0), function);
      at = end;
    }
  }

  void look_at(const std::string& name, Function& function) {
    name_ = name;
    function_ = &function;
    for (int pass = 0; pass < 2; ++pass) {
      Flow flow;
      block(function.body, flow);
    }
  }

  [[nodiscard]] bool varies(const std::string& expression) const {
    std::string rest = expression;  // without values that are uniform by definition
    for (std::size_t at; (at = rest.find("workgroupUniformLoad(")) != std::string::npos;) {
      rest.erase(at, closing(rest, at + 20) - at + 1);
    }
    for (const std::string& name : names_in(rest)) {
      const auto called = functions_.find(name);
      if (function_->varying.contains(name) || memory_.contains(name) ||
          name.starts_with("subgroup") || name.starts_with("atomic") ||
          (called != functions_.end() && called->second.gives_varying)) {
        return true;
      }
    }
    return false;
  }

  // Follows calls of the shader's functions: their arguments, and whether they wait.
  void follow_calls(const std::string& text, const Flow& flow) {
    for (std::size_t open = text.find('('); open != std::string::npos;
         open = text.find('(', open + 1)) {
      std::size_t at = open;
      while (at > 0 && is_letter(text[at - 1])) --at;
      const std::string name = text.substr(at, open - at);
      const auto found = functions_.find(name);
      if (found != functions_.end()) {
        Function& callee = found->second;
        const std::vector<std::string> given =
            parts_of(text.substr(open + 1, closing(text, open) - open - 1));
        for (std::size_t i = 0; i < std::min(given.size(), callee.parameters.size()); ++i)
          if (varies(given[i])) callee.varying.insert(callee.parameters[i]);
        if (!callee.waits) continue;
      } else if (name != "workgroupBarrier" && name != "storageBarrier" &&
                 name != "workgroupUniformLoad" && !name.starts_with("subgroup")) {
        continue;
      }
      function_->waits = true;
      note(flow, name + "()");
    }
  }

  void note(const Flow& flow, const std::string& what) {
    if (flow.apart) found_.insert(name_ + ": " + what + " " + why_);
  }

  static std::size_t skip_space(const std::string& text, std::size_t at) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
    return at;
  }
  static bool word_at(const std::string& text, std::size_t at, const std::string& word) {
    return text.compare(at, word.size(), word) == 0 &&
           (at + word.size() == text.size() || !is_letter(text[at + word.size()]));
  }

  void block(const std::string& text, Flow& flow) {
    for (std::size_t at = skip_space(text, 0); at < text.size(); at = skip_space(text, at)) {
      if (text[at] == '{') {
        const std::size_t end = closing(text, at);
        block(text.substr(at + 1, end - at - 1), flow);
        at = end + 1;
      } else if (word_at(text, at, "if")) {
        at = branch(text, at, flow);
      } else if (word_at(text, at, "for") || word_at(text, at, "while") ||
                 word_at(text, at, "loop")) {
        at = loop(text, at, flow);
      } else {
        const std::size_t end = std::min(text.find(';', at), text.size());
        statement(text.substr(at, end - at), flow);
        at = end + 1;
      }
    }
  }

  std::size_t branch(const std::string& text, std::size_t at, Flow& flow) {
    const std::size_t open = text.find_first_of("({", at);
    const std::size_t begin = text[open] == '(' ? text.find('{', closing(text, open)) : open;
    const std::string condition = text.substr(at, begin - at);
    follow_calls(condition, flow);
    Flow inside = flow;
    const bool differs = varies(condition.substr(2));
    const std::string reason = why_;
    if (differs && !flow.apart) why_ = "under " + condition;
    inside.apart |= differs;
    std::size_t end = closing(text, begin);
    block(text.substr(begin + 1, end - begin - 1), inside);
    at = skip_space(text, end + 1);
    if (word_at(text, at, "else")) {
      at = skip_space(text, at + 4);
      if (word_at(text, at, "if")) {
        end = branch(text, at, inside);
      } else {
        end = closing(text, at);
        block(text.substr(at + 1, end - at - 1), inside);
        ++end;
      }
      at = end;
    }
    flow.left_loop |= inside.left_loop;
    flow.left_function |= inside.left_function;
    flow.apart |= inside.left_loop || inside.left_function;
    if (!flow.apart || !differs) why_ = reason;
    return at;
  }

  std::size_t loop(const std::string& text, std::size_t at, Flow& flow) {
    const std::size_t open = text.find_first_of("({", at);
    const std::size_t begin = text[open] == '(' ? text.find('{', closing(text, open)) : open;
    const std::size_t end = closing(text, begin);
    std::vector<std::string> head;  // of `for`: initializer, condition, update
    if (text[open] == '(') {
      std::string inner = text.substr(open + 1, closing(text, open) - open - 1);
      for (std::size_t cut; (cut = inner.find(';')) != std::string::npos; inner.erase(0, cut + 1))
        head.push_back(inner.substr(0, cut));
      head.push_back(inner);
    }
    const bool three = head.size() == 3;
    if (three) statement(head[0], flow);
    const std::string condition = three ? head[1] : head.empty() ? "" : head[0];
    Flow inside = flow;
    const std::string reason = why_;
    // Twice, because threads that leave the loop in one iteration are absent in the next.
    for (int pass = 0; pass < 2; ++pass) {
      follow_calls(condition, inside);
      if (varies(condition) && !inside.apart) {
        why_ = "in a loop while " + condition;
        inside.apart = true;
      }
      block(text.substr(begin + 1, end - begin - 1), inside);
      if (three) statement(head[2], inside);
    }
    flow.left_function |= inside.left_function;
    flow.apart |= inside.left_function;
    if (!flow.apart) why_ = reason;
    return end + 1;
  }

  void statement(const std::string& text, Flow& flow) {
    follow_calls(text, flow);
    const std::vector<std::string> names = names_in(text);
    if (names.empty()) return;
    if (names[0] == "return") {
      if (flow.apart) flow.left_function = true;
      function_->gives_varying |= varies(text.substr(text.find("return") + 6));
      return;
    }
    if (names[0] == "break" || names[0] == "continue") {
      if (flow.apart) flow.left_loop = true;
      return;
    }
    const bool declares = names[0] == "let" || names[0] == "var" || names[0] == "const";
    if (declares && names.size() < 2) return;
    const std::string& target = names[declares ? 1 : 0];
    const std::size_t after = text.find(target) + target.size();
    const std::size_t equals = text.find('=', after);
    const bool steps = text.find("++") != std::string::npos || text.find("--") != std::string::npos;
    if (equals == std::string::npos && !steps) return;
    const std::string value = text.substr(declares ? std::min(equals, text.size()) : after);
    if ((flow.apart && !declares) || varies(value)) function_->varying.insert(target);
  }

  std::map<std::string, Function> functions_;
  std::set<std::string> memory_;  // variables that threads write
  std::set<std::string> found_;
  std::string name_, why_;
  Function* function_ = nullptr;
};

}  // namespace

bool waits_for_others(const std::string& wgsl) {
  return wgsl.find("Barrier(") != std::string::npos ||
         wgsl.find("workgroupUniformLoad(") != std::string::npos ||
         wgsl.find("subgroupShuffle") != std::string::npos;
}

std::vector<std::string> barriers_not_reached_by_all(const std::string& wgsl) {
  return Uniformity(wgsl).run();
}

}  // namespace tensorgrad::testing
