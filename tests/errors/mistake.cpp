// SPDX-License-Identifier: MIT
// Reads the expected message from a test's source file and compares it with the error.
#include "errors/mistake.h"

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;

struct Expectation {
  std::string message;
  unsigned line = 0;  // 0: no line in user code
};

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(' ') + 1 - from);
}

// Returns the expectation in the comment `// error: ` or `// throws: ` of the file.
Expectation read_expectation(const fs::path& file) {
  std::ifstream in(file);
  Expectation found;
  bool above = false;  // the comment is on its own lines, and the offending line follows
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    const std::string text = trimmed(line);
    if (above && text.starts_with("// ")) {
      found.message += " " + text.substr(3);
      continue;
    }
    if (above && found.line != 0) found.line = number;
    above = false;
    for (const std::string mark : {"// error: ", "// throws: "}) {
      const std::size_t at = line.find(mark);
      if (at == std::string::npos) continue;
      EXPECT_TRUE(found.message.empty()) << "a second expectation in line " << number;
      found = {line.substr(at + mark.size()), mark == "// error: " ? number : 0};
      above = text.starts_with(mark);
    }
  }
  EXPECT_FALSE(found.message.empty()) << "no `// error: MESSAGE` in " << file;
  return found;
}

fs::path temporary_folder() {
  struct Folder {
    fs::path path = fs::temp_directory_path() / ("tensorgrad_errors_" + std::to_string(getpid()));
    Folder() { fs::create_directories(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

std::string with_tmp(std::string text) {
  const std::string folder = temporary_folder().string();
  for (std::size_t at; (at = text.find(folder)) != std::string::npos;) {
    text.replace(at, folder.size(), "TMP");
  }
  return text;
}

bool fits(std::string_view message, std::string_view pattern) {
  const bool open = pattern.ends_with("...");
  if (open) pattern.remove_suffix(3);
  std::size_t at = 0;
  for (const char c : pattern) {
    const std::size_t from = at;
    if (c == '#') {
      while (at < message.size() && std::isdigit(static_cast<unsigned char>(message[at]))) ++at;
      if (at == from) return false;
    } else if (at == message.size() || message[at++] != c) {
      return false;
    }
  }
  return open || at == message.size();
}

std::map<std::string, std::vector<std::byte>> bits_of(
    const std::map<std::string, HostTensor>& tensors) {
  std::map<std::string, std::vector<std::byte>> bits;
  for (const auto& [name, tensor] : tensors) bits[name] = tensor.bytes;
  return bits;
}

}  // namespace

void expect_mistake(const std::string& file, const std::string& name,
                    const std::type_info& expected, void (*body)()) {
  const std::string base = fs::path(file).filename();
  EXPECT_EQ(base, name + ".cpp") << "the file must have the name of its mistake";
  const Expectation want = read_expectation(fs::path(TENSORGRAD_SOURCE_DIR "/tests/errors") / base);
  try {
    body();
  } catch (const Error& error) {
    EXPECT_STREQ(typeid(error).name(), expected.name());
    const std::string text = with_tmp(error.what());
    EXPECT_TRUE(fits(text.substr(0, text.find('\n')), want.message))
        << "expected: " << want.message << "\ngot: " << text;
    EXPECT_EQ(error.location().line, want.line) << text;
    if (want.line == 0 || !error.location().known()) return;
    EXPECT_EQ(fs::path(error.location().file).filename(), base);
    EXPECT_NE(text.find("\n  at " + to_string(error.location())), std::string::npos) << text;
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << want.message;
}

std::string temporary(const std::string& name) { return temporary_folder() / name; }

Example::Example() = default;

Example::~Example() {
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(bits_of(trainer.download_params()), bits_of(before_));
}

}  // namespace tensorgrad::testing
