// SPDX-License-Identifier: MIT
// A locale with a decimal comma, whether or not the machine has one installed.
#pragma once

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <stdexcept>
#include <string>

#include "support/temp_dir.h"

namespace tensorgrad::test {

// Sets a locale in which C functions and new streams write 1234.5 as "1.234,5". Restores the old
// one when destroyed. Throws std::runtime_error if localedef cannot make the locale.
class DecimalComma {
 public:
  DecimalComma() : streams_(std::locale::global(std::locale(std::locale(), new Comma))) {
    std::ofstream(folder_ / "comma") << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                        "grouping 3;3\nEND LC_NUMERIC\n";
    // -c: ignore missing categories; the exit status still reports them.
    const std::string command =
        "localedef -c -i " + (folder_ / "comma") + " " + (folder_ / "out") + " >/dev/null 2>&1";
    const int warned = std::system(command.c_str());
    setenv("LOCPATH", folder_.str().c_str(), 1);
    if (std::setlocale(LC_NUMERIC, "out") == nullptr ||
        std::string(std::localeconv()->decimal_point) != ",") {
      std::locale::global(streams_);
      throw std::runtime_error("no locale with a decimal comma; localedef returned " +
                               std::to_string(warned));
    }
  }
  ~DecimalComma() {
    std::locale::global(streams_);
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
  }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

 private:
  struct Comma : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };

  TempDir folder_;
  std::locale streams_;
};

}  // namespace tensorgrad::test
