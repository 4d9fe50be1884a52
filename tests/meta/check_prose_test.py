# SPDX-License-Identifier: MIT
"""check_prose.py reads prose but no code, splits it into sentences, and checks its ranges."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import check_prose  # noqa: E402

CPP = r'''// SPDX-License-Identifier: MIT
// Reads two
// lines.

/// Returns `if (x) return` of 1'000.
int a = 'a';  ///< First. // still the first
              ///< Second.
const char* b = "https://example.org";  // third
/* A block
 * of two lines. */
#include "x.h"  // NOLINT
const char* c = R"(// no comment)";
'''
COMMENTS = [" Reads two\n lines.", " Returns `if (x) return` of 1'000.",
            " First. // still the first\n Second.", " third", " A block\n of two lines. "]

STRINGS = r'''throw Error("the file \"" + path + "\" cannot be "
                    "read by this version\nOptions of the tool:");
'''

MARKDOWN = """# A heading
A [link](https://example.org/where) and `code where`
in one paragraph. Another sentence.

```
where
```
- an item
- <b>another</b> of https://example.org/where/
  two lines

| cell | cell two |
|------|----------|
| three | |
"""
PARAGRAPHS = ["# A heading", "A link and Code in one paragraph. Another sentence.", "an item",
              "another of Code two lines", "cell", "cell two", "three"]

SENTENCES = {
    "It returns 1.5 of x, e.g. a mean. Throws otherwise.": 2,
    "The sum (i.e. Code) is as in Dao et al. 2024. Code is not.": 2,
    'Is it "so"? Yes! It is (see below.) Good.': 4,
}

# Within range for any number of words.
GOOD = "Returns the sum of some values if there are any. Returns zero if not.\n"


class CheckProse(unittest.TestCase):
    def test_reads_comments_without_code(self):
        self.assertEqual(check_prose.comments_of(CPP), COMMENTS)

    def test_reads_long_string_literals(self):
        self.assertEqual(check_prose.strings_of(STRINGS),
                         ['" cannot be read by this version\n\nOptions of the tool:'])

    def test_reads_the_prose_of_markdown(self):
        found = [" ".join(text.split()) for text in check_prose.paragraphs(MARKDOWN)]
        self.assertEqual(found, PARAGRAPHS)

    def test_leaves_out_generated_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "ops.md"
            page.write_text(MARKDOWN)
            found = [" ".join(text.split()) for text in check_prose.read(page, "")]
            self.assertEqual(found, PARAGRAPHS[:-3])

    def test_splits_sentences(self):
        for text, count in SENTENCES.items():
            self.assertEqual(len(check_prose.sentences(text)), count, check_prose.sentences(text))

    def test_counts_per_thousand_words_and_the_mean_sentence(self):
        row = check_prose.measure(["Gives what it\nis given, so\n many. Returned as it goes on.",
                                   "A label", "Kindly"])
        self.assertEqual(row["words"], 15)
        per_word = 1000 / 15
        for term, count in {"give": 1, "so many": 1, "return": 1, "go on": 1, "kin": 0}.items():
            self.assertAlmostEqual(row[term], count * per_word)
        self.assertEqual(row["sentence"], 6)

    def test_checks_every_scope(self):
        scopes = {"include/": "include/tensorgrad/a.h", "cli/": "cli/a.cpp",
                  "user pages": "docs/training.md", "internals": "docs/internals/plan.md",
                  "C++ but tests": "src/a.cpp", "tests/": "tests/a.cpp",
                  "all Markdown": "CHANGELOG.md"}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in scopes.values():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("// " * (not name.endswith("md")) + GOOD)
            self.assertEqual(self.check(root).returncode, 0)
            for scope, name in scopes.items():
                with self.subTest(scope):
                    good = (root / name).read_text()
                    (root / name).write_text(good.strip() + " It is so many.")
                    result = self.check(root)
                    self.assertEqual(result.returncode, 1, result.stdout)
                    self.assertIn(f"{scope}: so many is", result.stdout)
                    (root / name).write_text(good)

    def test_strings_have_only_maximums(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("cli/a.cpp", "src/a.cpp"):
                (root / name).parent.mkdir()
                good = f"// {GOOD}"
                (root / name).write_text(good + 'error("the file has another version");\n')
                result = self.check(root)
                self.assertNotIn("strings:", result.stdout)
                for text, term in (("this gives another result", "give"),
                                   ("a file where a folder is expected", "where"),
                                   ("the device alone has " + "many " * 9, "alone"),
                                   ("it has so many names", "so many")):
                    with self.subTest(name=name, term=term):
                        (root / name).write_text(good + f'error("{text}");\n')
                        result = self.check(root)
                        self.assertEqual(result.returncode, 1, result.stdout)
                        self.assertIn(f"strings: {term} is", result.stdout)
                (root / name).write_text(good)

    def check(self, root):
        return subprocess.run([sys.executable, "-B", ROOT / "tools/check_prose.py", "--check",
                               "--root", root], capture_output=True, text=True)


if __name__ == "__main__":
    unittest.main()
