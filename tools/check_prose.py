#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the English of comments, help texts and Markdown in occurrences per 1,000 words.

Without paths, prints a row for each scope that users or maintainers read; --all adds the rest of
the tree. With paths (files or folders), prints a row for each of them. Reads the comments of C++
files and the prose of Markdown, but no code, license lines or URLs. In cli/ and src/ it also reads
string literals of more than three words: help texts and errors. Inline code counts as one word. --files adds a row for each file.
--check fails if one of these scopes, or a path given, is out of range.
"""

import argparse
import pathlib
import re
import sys

# Term: what it counts, and the range that --check demands. The ranges come from the comments of
# leveldb, DuckDB (optimizer, planner, include), MLX, Halide and simdjson, measured in November 2026:
# return 2.8 to 9.2, give 0.1 to 0.4, if 6.2 to 12.2, where 0.6 to 0.9, alone 0 to 0.1, so many 0.
# The mean sentence of documents in leveldb, DuckDB, Halide and tinygrad has 14 to 20 words.
ANY = float("inf")
TERMS = {
    "return": (r"returns?|returned", 2.5, ANY),
    "give": (r"gives?", 0, 0.4),
    "if": (r"if", 6, ANY),
    "where": (r"where", 0, 1.5),
    "only": (r"only", 0, ANY),
    "alone": (r"alone", 0, 0.2),
    "so many": (r"so\s+many", 0, 0),
    "previous": (r"previous", 0, ANY),
    "contig.": (r"contiguous", 0, ANY),
    "resume": (r"continues?|resumes?", 0, ANY),
    "go on": (r"go(?:es)?\s+on", 0, ANY),
    "kin": (r"kin", 0, 0),
    "foretell": (r"foretells?|foretold", 0, 0),
}
PATTERNS = {term: re.compile(rf"\b(?:{row[0]})\b", re.IGNORECASE) for term, row in TERMS.items()}
RANGES = {term: row[1:] for term, row in TERMS.items()} | {"sentence": (0, 20)}  # mean words

USER_PAGES = ["README.md"] + [f"docs/{page}.md" for page in (
    "getting_started recipes install training mixed_precision language_models text own_device web_inference web_cpp "
    "npm pages guide/browser debugging formats samples ops features distributed benchmarks trust").split()]
GENERATED_TABLES = {"ops.md"}  # pages of which only the prose counts
CODE = ["include", "src", "cli", "examples", "bench", "tests"]
# Scope: its files and folders, and what to read of C++ files.
SCOPES = {
    "include/": (["include"], "comments"),
    "cli comments": (["cli"], "comments"),
    "strings": (["cli", "src"], "strings"),
    "cli/": (["cli"], "comments and strings"),
    "user pages": (USER_PAGES, ""),
    "internals": (["docs/internals"], ""),
    "README.md": (["README.md"], ""),
    "C++ but tests": (CODE[:-1], "comments"),
    "tests/": (["tests"], "comments"),
    "all Markdown": (["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", *CODE], ""),
}
CHECKED = {"include/", "cli/", "strings", "user pages", "internals", "C++ but tests", "tests/", "all Markdown"}
# The minimum of a term suits prose. Messages are short and name what is wrong ("unknown input 'x'"),
# so that they need neither "return" nor "if": only the maximums hold for them. README.md counts as
# one of the user pages, because its 550 words are too few for minimums of their own.
NO_MINIMUM = {"strings"}
REST = {f"{folder}/": ([folder], "comments") for folder in ("src", "examples", "bench")}

CPP = {".h", ".cpp", ".cc"}
TOKEN = re.compile(r"""R"(?P<mark>[^(\s"]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'"""
                   r"""|//[^\n]*|/\*.*?\*/""", re.DOTALL)
SLASHES = re.compile(r"^[ \t]*(?:///?<?|/\*+<?|\*(?=\s|$))?", re.MULTILINE)
IGNORED = re.compile(r"SPDX-License-Identifier|Copyright|NOLINT|clang-format o(?:n|ff)|IWYU pragma")
FENCE = re.compile(r"^[ ]*(```|~~~).*?^[ ]*\1[^\n]*$", re.MULTILINE | re.DOTALL)
ONE_WORD = re.compile(r"(`+)(?:(?!\n\s*\n).)+?\1|\{[^{}\s]*\}|<?https?://[^\s)>]+>?", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^>\n]*>", re.DOTALL)
RULE = re.compile(r"-{4,}")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|al|approx|resp|Eq|Fig|Sec)\.(?=\s)")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(\[*_]*[A-Z0-9])")


def comments_of(text):
    """Returns the comments of C++ code. Lines of // in the same column are one comment."""
    found, last_end, last_column = [], None, None
    for match in TOKEN.finditer(text):
        if not match[0].startswith("/") or IGNORED.search(match[0]):
            continue
        column = match.start() - text.rfind("\n", 0, match.start())
        body = SLASHES.sub("", match[0].removesuffix("*/"))
        if column == last_column and re.fullmatch(r"\n[ \t]*", text[last_end:match.start()]):
            found[-1] += "\n" + body
        else:
            found.append(body)
        last_end, last_column = match.end(), column
    return found


def strings_of(text):
    """Returns the string literals of more than three words. Adjacent literals are one."""
    found, last_end = [], None
    for match in TOKEN.finditer(text):
        if not match[0].startswith('"'):
            continue
        body = match[0][1:-1].replace(r"\n", "\n\n").replace(r"\"", '"')
        if last_end is not None and not text[last_end:match.start()].strip():
            found[-1] += body
        else:
            found.append(body)
        last_end = match.end()
    return [body for body in found if len(WORD.findall(TAG.sub("", body))) > 3]


def paragraphs(text):
    """Returns the paragraphs, headings, list items and table cells of Markdown, without code and
    markup."""
    text = LINK.sub(r"\1", ONE_WORD.sub("Code", FENCE.sub("\n", text)))
    found = [""]
    for line in RULE.sub("\n\n", TAG.sub(" ", text)).splitlines():
        if line.lstrip().startswith("|"):
            found += line.split("|") + [""]
        elif line.startswith("#"):
            found += [line, ""]
        elif ITEM.match(line):
            found.append(ITEM.sub("", line, count=1))
        elif line.strip():
            found[-1] += " " + line
        else:
            found.append("")
    return [paragraph for paragraph in found if WORD.search(paragraph)]


def sentences(paragraph):
    return SENTENCE_END.split(ABBREVIATION.sub(lambda match: match[0].replace(".", ""), paragraph))


def read(path, parts):
    """Returns the paragraphs of a file. Of a C++ file, reads the comments, strings or both."""
    text = path.read_text()
    if path.suffix == ".md":
        if path.name in GENERATED_TABLES:
            text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
        return paragraphs(text)
    texts = comments_of(text) if "comments" in parts else []
    if "strings" in parts and path.suffix == ".cpp":
        texts += strings_of(text)
    return [paragraph for each in texts for paragraph in paragraphs(each)]


def measure(texts):
    """Returns the number of words, each term per 1,000 words, and the mean words of a sentence."""
    words = sum(len(WORD.findall(text)) for text in texts)
    row = {"words": words}
    for term, pattern in PATTERNS.items():
        row[term] = 1000 * sum(len(pattern.findall(text)) for text in texts) / max(words, 1)
    lengths = [len(WORD.findall(sentence)) for text in texts for sentence in sentences(text)]
    lengths = [length for length in lengths if length > 2]  # shorter ones are labels
    return row | {"sentence": sum(lengths) / max(len(lengths), 1)}


def files_of(names, root):
    for path in (root / name for name in names):
        inside = path.rglob("*") if path.is_dir() else [path] if path.exists() else []
        yield from sorted(each for each in inside if each.suffix in CPP | {".md"})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--all", action="store_true", help="also measure the rest of the tree")
    parser.add_argument("--files", action="store_true", help="also print a row for each file")
    parser.add_argument("--check", action="store_true", help="fail if a row is out of range")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    args = parser.parse_args()
    if missing := [path for path in args.paths if not pathlib.Path(path).exists()]:
        parser.error(f"no such file or folder: {', '.join(missing)}")

    root = pathlib.Path() if args.paths else args.root
    scopes = {path: ([path], "comments and strings" if "cli" in pathlib.Path(path).resolve().parts
                     else "comments") for path in args.paths}
    scopes = scopes or SCOPES | (REST if args.all else {})
    print(f"{'':30}{'words':>8}" + "".join(f"{column:>9}" for column in RANGES))
    failures = []
    for name, (names, parts) in scopes.items():
        texts = {path: read(path, parts) for path in files_of(names, root)}
        rows = {name: measure([text for each in texts.values() for text in each])}
        if args.files:
            rows |= {f"  {path}".replace(f"{root}/", ""): measure(texts[path]) for path in texts}
        for label, row in rows.items():
            print(f"{label[-30:]:30}{row['words']:8}" + "".join(f"{row[c]:9.2f}" for c in RANGES))
        if args.paths or name in CHECKED:
            ranges = {column: (0 if name in NO_MINIMUM else low, high)
                      for column, (low, high) in RANGES.items()}
            failures += [f"{name}: {column} is {rows[name][column]:.2f}, not in [{low}, {high}]"
                         for column, (low, high) in ranges.items()
                         if not low <= rows[name][column] <= high]
    if args.check:
        print("\n".join(failures or ["all in range"]))
    return 1 if args.check and failures else 0


if __name__ == "__main__":
    sys.exit(main())
