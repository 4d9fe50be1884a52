# SPDX-License-Identifier: MIT
"""reference.py prepares headers and pages for Doxygen, and filters Doxygen's warnings."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEADER = """\
// SPDX-License-Identifier: MIT
// Sums of
// tensors.
#pragma once
namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {
struct Hidden {
  int x;
};
}  // namespace detail

/// Returns the
/// sum (`x's`).
template <class T>
  requires std::integral<T>
Tensor sum(Tensor x, T axis, Loc loc = Loc::current());
Tensor sum(Tensor x, const char* text = ";{") {
  return sum(x, 0);
}

Tensor undocumented();

/// A layer.
struct Layer : Base {
  TG_MODULE(weight,
            bias)
  using Base::Base;
  /// The weight.
  Tensor weight;
  Tensor bias;
  double lo = min(1, 2), hi{3};  ///< The
                                 ///< bounds.
  int size = 0;  ///< The size.
  /// Sums.
  const std::map<int, int> all,
      none = {{1, 2}};
  int other, last_one;
  /// Functions.
  using One = std::function<void(int)>;
  using Two = std::function<void(int, int)>;

  /// Runs it.
  // NOLINTNEXTLINE
  Tensor operator()(Tensor x) const;
  Tensor run(Tensor x) const;
  Tensor last() const;  ///< The last.
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
"""

PREPARED = """\
/// @defgroup header_ops_sum ops/sum.h
/// Sums of
/// tensors.
///
/// @ingroup header_ops
#pragma once
namespace tensorgrad {






/// Returns the
/// sum (``x's``).
/// @ingroup header_ops_sum
template <class T>
  requires std::integral<T>
Tensor sum(Tensor x, T axis, Loc loc = Loc::current());
/// Returns the
/// sum (``x's``).
/// @ingroup header_ops_sum
Tensor sum(Tensor x, const char* text = ";{") {
  return sum(x, 0);
}

Tensor undocumented();

/// A layer.
/// @ingroup header_ops_sum
struct Layer : Base {



  /// The weight.
  Tensor weight;
  Tensor bias;
  double lo = min(1, 2);  ///< The bounds.
  double hi{3};  ///< The bounds.
  int size = 0;  ///< The size.
  /// Sums.
  const std::map<int, int> all;
  /// Sums.
  const std::map<int, int> none = {{1, 2}};
  int other;
  int last_one;
  /// Functions.
  using One = std::function<void(int)>;
  /// Functions.
  using Two = std::function<void(int, int)>;

  /// Runs it.
  // NOLINTNEXTLINE
  Tensor operator()(Tensor x) const;
  /// Runs it.
  Tensor run(Tensor x) const;
  Tensor last() const;  ///< The last.
};

}  // namespace tensorgrad
"""

ENUMS = """\
/// A fan.
enum class Fan { kIn, kOut };

/// A kind.
enum Kind : int {
  kFirst = f(1, 2),  ///< The first.
  kSecond,           ///< The
                     ///< second.
  kThird,
  kFourth, kFifth,   ///< The fifth.

  // Not documentation.
  kSixth,
  /// The
  /// seventh.
  kSeventh
};
enum class Declared;
"""

PAGE = """\
# A `page`

[other](other.md), [part](other.md#one-part), [here](#twice-1), [start](../README.md),
[web](https://example.com), [sum](../include/tensorgrad/ops/sum.h), [source](../src/sum.cpp),
[results](../bench/results/other.md), [folder](../src/README.md),
[inside](internals/other.md#one-part), ![image](images/a.png), `[code](other.md)`, `it's`

## Twice
```
# [no](other.md)
```
## Twice
"""

PREPARED_PAGE = """\
# A `page` {#page_page}

[other](@ref page_other), [part](@ref page_other-one-part), [here](@ref page_page-twice-1), [start](@ref index),
[web](https://example.com), [sum](@ref header_ops_sum), source,
results, folder,
[inside](@ref page_internals_other-one-part), ![image](a.png), `[code](other.md)`, ``it's``

## Twice {#page_page-twice}
```
# [no](other.md)
```
## Twice {#page_page-twice-1}
"""


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.header = self.root / "include/tensorgrad/ops/sum.h"
        self.write(self.header, HEADER)

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_on(self, command, path):
        return subprocess.run([sys.executable, "-B", ROOT / "tools/reference.py", "--root",
                               self.root, command, path], capture_output=True, text=True)

    def check(self, *warnings):
        return self.run_on("check", self.write(self.root / "log", "\n".join(warnings)))

    def test_prepares_a_header(self):
        self.assertEqual(self.run_on("filter", self.header).stdout, PREPARED)

    def test_leaves_out_a_header_of_details(self):
        self.write(self.header, "// Handles.\nnamespace tensorgrad::detail {\nint x;\n}\n")
        self.assertEqual(self.run_on("filter", self.header).stdout, "")

    def test_prepares_a_page(self):
        page = self.write(self.root / "docs/page.md", PAGE)
        self.assertEqual(self.run_on("filter", page).stdout, PREPARED_PAGE)

    def test_names_what_lacks_a_comment_once_with_its_line_in_the_header(self):
        line = PREPARED.splitlines().index("Tensor undocumented();") + 1
        for what in ("Member undocumented() (function) of namespace tensorgrad",
                     "Member weight (variable) of struct tensorgrad::Layer",
                     "Member kSize (variable) of namespace tensorgrad",
                     "Member Mode (enumeration) of struct tensorgrad::Layer",
                     "Compound tensorgrad::Layer"):
            warning = f"{self.header}:{line}: warning: {what} is not documented."
            result = self.check(warning, warning)
            self.assertEqual(result.returncode, 1, what)
            self.assertEqual(result.stdout,
                             f"include/tensorgrad/ops/sum.h:21: {what} is not documented.\n")

    def test_names_enumerators_that_lack_a_comment(self):
        self.write(self.header, "// Kinds.\n#pragma once\nnamespace tensorgrad {\n" + ENUMS + "}\n")
        result = self.check()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "".join(
            f"include/tensorgrad/ops/sum.h:{line}: Enumerator {name} is not documented.\n"
            for line, name in ((5, "Fan::kIn"), (5, "Fan::kOut"), (12, "Kind::kThird"),
                               (13, "Kind::kFourth"), (16, "Kind::kSixth"))))

    def test_names_every_other_problem(self):
        for warning in (f"{self.root}/docs/a.md:3: warning: unable to resolve reference to 'b'",
                        "error: tag INPUT: file 'x' not found"):
            result = self.check(warning, "  and its second line")
            self.assertEqual(result.returncode, 1, warning)
            self.assertEqual(len(result.stdout.splitlines()), 1 + ("docs" in warning))

    def test_accepts_what_needs_no_comment(self):
        result = self.check(*(
            f"{self.header}:1: warning: Member {what} of class tensorgrad::A is not documented."
            for what in ("~A() (function)", "operator==(const A &) const (function)",
                         "A(A &&)=default (function)", "A(const A &) = delete (function)",
                         "what() const noexcept override (function)",
                         "A(std::shared_ptr< detail::Impl > impl) (function)")), "  and more")
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
