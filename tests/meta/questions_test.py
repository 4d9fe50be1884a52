# SPDX-License-Identifier: MIT
"""The documents answer the questions of tests/meta/questions.tsv and maintainer_questions.tsv.

Each place is PAGE#HEADING, with the heading as in a link. The page must have that heading, and the sections of a
question together must contain each of its words, in text or code.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ["question", "places", "words"]
FENCE = re.compile(r"^\s*(?:```|~~~)")


def questions(path):
    """Returns the rows of the file as (question, places, words)."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    rows = [line.split("\t") for line in lines]
    if not rows or rows[0] != COLUMNS:
        raise ValueError(f"{path}: the columns must be {COLUMNS}")
    for row in rows[1:]:
        if len(row) != len(COLUMNS) or not all(row):
            raise ValueError(f"{path}: expected {len(COLUMNS)} columns that are not empty: {row}")
    return [(question, places.split(), words.split()) for question, places, words in rows[1:]]


def sections(text):
    """Returns the text below each heading, including deeper headings, by the anchor of the heading."""
    found, open_, fenced = {}, [], False
    for line in text.splitlines():
        fenced ^= bool(FENCE.match(line))
        heading = None if fenced else re.match(r"(#+) +(.*)", line)
        if heading:
            anchor = re.sub(r"[^\w\- ]", "", heading[2].lower()).strip().replace(" ", "-")
            open_ = [each for each in open_ if each[0] < len(heading[1])]
            open_.append((len(heading[1]), found.setdefault(anchor, [])))
        for _, lines in open_:
            lines.append(line)
    return {anchor: "\n".join(lines) for anchor, lines in found.items()}


def problems(root, rows):
    """Returns a line for each place that does not exist and each word that no section has."""
    found = []
    for question, places, words in rows:
        texts = []
        for place in places:
            page, _, anchor = place.partition("#")
            path = root / page
            if not path.is_file():
                found.append(f"{question} {page} does not exist")
            elif anchor not in (known := sections(path.read_text())):
                found.append(f"{question} {page} has no heading #{anchor}; it has {', '.join(known)}")
            else:
                texts.append(known[anchor])
        answer = "\n".join(texts)
        found += [f"{question} the answer does not contain '{word}'" for word in words
                  if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", answer)]
    return found


class Questions(unittest.TestCase):
    def test_documents_answer_them(self):
        for name in ("questions.tsv", "maintainer_questions.tsv"):
            with self.subTest(name):
                rows = questions(ROOT / "tests/meta" / name)
                self.assertGreaterEqual(len(rows), 12)
                found = problems(ROOT, rows)
                self.assertFalse(found, "\n" + "\n".join(found))


class Check(unittest.TestCase):
    PAGE = "# Page\n\n## One: `a`\n\nfirst\n\n```\n# no heading\n```\n\n### Deeper\n\nsecond()\n\n## Two\n\nthird\n"

    def problems(self, places, words):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "page.md").write_text(self.PAGE)
            return problems(root, [("Why?", places.split(), words.split())])

    def test_finds_words_in_a_section_and_deeper_ones(self):
        self.assertEqual(self.problems("page.md#one-a", "first second() second"), [])
        self.assertEqual(self.problems("page.md#two page.md#deeper", "second third"), [])

    def test_reports_what_is_missing(self):
        for places, words, expected in (("page.md#one-a", "third", "'third'"),
                                        ("page.md#one-a", "firs", "'firs'"),
                                        ("page.md#no-heading", "first", "has no heading #no-heading"),
                                        ("other.md#two", "third", "other.md does not exist")):
            with self.subTest(places=places, words=words):
                found = self.problems(places, words)
                self.assertTrue(found and expected in found[0] + found[-1], found)

    def test_rejects_incomplete_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "questions.tsv"
            for text in ("", "question\tplaces\n", "question\tplaces\twords\nWhy?\tpage.md#two\n",
                         "question\tplaces\twords\nWhy?\t\tthird\n"):
                path.write_text(text)
                with self.subTest(text), self.assertRaises(ValueError):
                    questions(path)


if __name__ == "__main__":
    unittest.main()
