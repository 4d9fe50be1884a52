// SPDX-License-Identifier: MIT
// Checks that XML as used by the plots is well-formed: one root, nested tags, quoted attributes,
// known entities. Returns the elements, so that tests can check positions and texts.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::test {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  // Returns all elements in the order of their start tags. Throws std::runtime_error if the text is
  // not well-formed.
  std::vector<XmlElement> read() {
    while (at_ < text_.size()) {
      if (text_[at_] == '<') {
        tag();
      } else {
        const std::string text = content('<');
        const bool blank = text.find_first_not_of(" \n") == std::string::npos;
        if (open_.empty() && !blank) fail("text outside of the root");
        if (!open_.empty() && !blank) elements_[open_.back()].text += text;
      }
    }
    if (!open_.empty()) fail("not closed: " + elements_[open_.back()].name);
    if (roots_ != 1) fail("not one root");
    return elements_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_));
  }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  // Returns the text up to `end`, with entities resolved.
  std::string content(char end) {
    std::string out;
    while (at_ < text_.size() && text_[at_] != end) {
      const char c = text_[at_];
      if (c == '<') fail("< in text");
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') fail("a control character");
      if (c == '&') {
        if (take("&amp;"))
          out += '&';
        else if (take("&lt;"))
          out += '<';
        else if (take("&gt;"))
          out += '>';
        else if (take("&quot;"))
          out += '"';
        else if (take("&#39;"))
          out += '\'';
        else
          fail("unknown entity");
        continue;
      }
      out += c;
      ++at_;
    }
    return out;
  }

  std::string word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':')) {
      ++at_;
    }
    if (at_ == start) fail("a name expected");
    return std::string(text_.substr(start, at_ - start));
  }

  void tag() {
    if (take("</")) {
      const std::string name = word();
      if (open_.empty() || elements_[open_.back()].name != name) fail("unexpected end of " + name);
      open_.pop_back();
      if (!take(">")) fail("> expected");
      return;
    }
    ++at_;
    XmlElement element{word(), {}, {}};
    for (;;) {
      const bool space = take(" ");
      if (take("/>") || take(">")) break;
      if (!space) fail("a space expected");
      const std::string name = word();
      if (!take("=\"")) fail("=\" expected");
      if (!element.attributes.emplace(name, content('"')).second) fail("attribute twice: " + name);
      if (!take("\"")) fail("\" expected");
    }
    if (open_.empty()) ++roots_;
    if (text_[at_ - 2] != '/') open_.push_back(elements_.size());
    elements_.push_back(std::move(element));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::size_t> open_;
  std::vector<XmlElement> elements_;
};

}  // namespace tensorgrad::test
