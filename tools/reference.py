#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prepares files for Doxygen and filters its warnings; called by `./dev docs`.

  filter FILE  prints a public header or a Markdown page in the form that Doxygen reads
  check LOG    prints the warnings that count, and fails if there are any

Headers: `tensorgrad::inline TENSORGRAD_ABI` becomes `tensorgrad`. TG_MODULE(), inherited
constructors and namespaces named detail are left out. A `///` comment documents every function,
alias and constant below it, up to the next blank line or comment: Doxygen reads a copy for each. The
comment on a field, above (`///`) or behind (`///<`), documents all fields of its declaration, but
not those of the next one: Doxygen reads `int a, b;` as two declarations with the comment. Each
header is a group, described by the comment at its top. The group of ops/creation.h is a subgroup of
that of ops.h.

Markdown: headings get the anchors that GitHub generates, and links to pages and headers become
Doxygen's. Links to other files, including pages outside docs/, become plain text.

Every declaration needs a comment, including fields and enumerators, except destructors, overrides,
defaulted and deleted functions, functions of types from detail and the operators == and =. Doxygen
1.9 does not warn about enumerators, so `check` finds them in the headers.
"""

import argparse
import pathlib
import re
import sys

from check_repo import FENCE, LINK, anchors

HEADERS = "include/tensorgrad/"

NOT_CODE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|//.*')
NAMESPACE = re.compile(r"namespace (?:\w+::)*(\w+) \{$")
DOC = re.compile(r"\s*///(?!<)")
NO_DECLARATION = re.compile(r"\s*(?:$|//|#|\}|(?:public|protected|private):)")
TYPE = re.compile(r"\b(?:class|struct|enum|union|concept)\b")
INHERITED = re.compile(r"\s*using (?:\w+::)*(\w+)::\1;")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
# In Doxygen, a ' ends a code span unless two backticks enclose it.
QUOTE_IN_CODE = re.compile(r"(?<!`)`([^`]*'[^`]*)`(?!`)")
CODE_OR_LINK = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|" + LINK.pattern)
WARNING = re.compile(r"(.+?):(\d+): (?:warning|error): (.*)")
NO_COMMENT_NEEDED = re.compile(
    r"Member (?:~|operator==?\(|.*= ?(?:default|delete)\b|.*\boverride\b|.*\bdetail::).*"
    r" is not documented")
NO_FIELD = re.compile(r"\(|\b(?:using|operator|return|friend)\b|" + TYPE.pattern)
ENUM = re.compile(r"\s*enum (?:class |struct )?(\w+)")


def nesting(line):
    """Returns the number of brackets that the code of a line opens, minus those that it closes."""
    return sum((c in "([{") - (c in ")]}") for c in NOT_CODE.sub("", line))


def end_of(lines, index):
    """Returns the index after the declaration that begins at lines[index]."""
    depth = 0
    for index in range(index, len(lines)):
        depth += nesting(lines[index])
        if depth <= 0 and NOT_CODE.sub("", lines[index]).rstrip().endswith((";", "}")):
            break
    return index + 1


def signature(lines):
    """Returns a declaration up to its body or value, without the contents of brackets."""
    text, before = " ".join(NOT_CODE.sub("", line) for line in lines).replace("->", ""), None
    while text != before:
        before, text = text, re.sub(r"<[^<>(){}]*>", "", re.sub(r"\([^(){}]*\)", "()", text))
    return re.split(r"[{;=]", text)[0]


def split_at_commas(text):
    """Returns the parts of a text between the commas that are outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def is_field(declaration, declared):
    """Returns true if a declaration in a class, with this signature, is that of fields."""
    code = NOT_CODE.sub("", declaration[-1]).rstrip()
    return declaration[0].startswith(" ") and code.endswith(";") and not NO_FIELD.search(declared) \
        and sum(map(nesting, declaration)) == 0


def one_each(declaration, comment):
    """Returns a declaration of several fields as one for each, with the comment above or behind."""
    text = "\n".join(declaration)
    behind = "".join(re.findall(r"///<(.*)", text))
    behind = behind and f"  ///<{behind}"
    code, *more = split_at_commas(re.sub(r"\s*//.*", "", text).rstrip().removesuffix(";"))
    if not more:
        return declaration
    kind = re.match(r"(.*?)\w+\s*(?:[={[].*)?$", code, re.DOTALL)[1]
    result = [f"{code};{behind}"]
    for declarator in more:
        result += [*comment, f"{kind}{declarator.strip()};{behind}"]
    return result


def blank(lines, index):
    """Clears the lines from lines[index] to the bracket that closes what this line opens."""
    depth = 0
    for index in range(index, len(lines)):
        depth += nesting(lines[index])
        lines[index] = ""
        if depth <= 0:
            return


def group(name):
    return "header_" + re.sub(r"\W", "_", name.removesuffix(".h"))


def header(name, text):
    """Returns the lines of a header for Doxygen, each with its number in the file."""
    lines = text.replace("::inline TENSORGRAD_ABI", "").splitlines()
    has_details = False
    for index, line in enumerate(lines):
        namespace = NAMESPACE.match(line)
        if namespace and namespace[1] == "detail":
            has_details = True
            blank(lines, index)
        elif line.lstrip().startswith("TG_MODULE(") or INHERITED.match(line):
            blank(lines, index)
        elif "///" in line:
            # A period before a space would end the summary.
            lines[index] = QUOTE_IN_CODE.sub(r"``\1``", line).replace("et al. ", "et al.&nbsp;")
    if has_details and not any(line.endswith(";") for line in lines):
        return []

    result = [(f"/// @defgroup {group(name)} {name}", 1)]
    index = 1
    while index < len(lines) and lines[index].startswith("//"):
        words = lines[index].lstrip("/")
        result.append(("///" + ("" if words.strip() == "@file" else words), index + 1))
        index += 1
    if "/" in name:
        result += [("///", index), ("/// @ingroup " + group(name.split("/")[0]), index)]

    comment, shared = [], False  # the comment above, and whether a declaration already has it
    while index < len(lines):
        end = index + 1
        if DOC.match(lines[index]):
            while end < len(lines) and DOC.match(lines[end]):
                end += 1
            comment, shared = [(lines[i], i + 1) for i in range(index, end)], False
            if lines[index].startswith("///"):
                comment.append((f"/// @ingroup {group(name)}", end))
            result += comment
            index = end
            continue
        if NO_DECLARATION.match(lines[index]):
            if shared or not lines[index].lstrip().startswith("//"):
                comment = []
        elif comment or lines[index].startswith(" "):
            declaration = lines[index:end_of(lines, index)]
            declared = signature(declaration)
            if is_field(declaration, declared):
                end = index + len(declaration)
                while end < len(lines) and lines[end].lstrip().startswith("///<"):
                    end += 1
                above = [] if shared else [line for line, _ in comment]
                result += [(line, index + 1) for line in one_each(lines[index:end], above)]
                index, comment = end, []
                continue
            if TYPE.search(declared):
                comment = []  # its members have their own comments
            elif comment:
                end = index + len(declaration)
                if shared and "///<" not in "".join(declaration):
                    result += comment
            shared = True
        result += [(lines[i], i + 1) for i in range(index, end)]
        index = end
    return result


def enumerators_without_comment(lines):
    """Returns each enumerator of a prepared header that has no comment, with its line number."""
    found, enum, has_comment = [], None, False
    for text, number in lines:
        code = NOT_CODE.sub("", text)
        if enum is None and (start := ENUM.match(code)) and "{" in code:
            enum, code = start[1], code.partition("{")[2]
        if enum is None:
            continue
        if DOC.match(text):
            has_comment = True
            continue
        names = [name[0] for part in split_at_commas(code.partition("}")[0])
                 if (name := re.search(r"\w+", part))]
        for name in names:
            if not has_comment and not ("///<" in text and name == names[-1]):
                found.append((f"{enum}::{name}", number))
            has_comment = False
        if "}" in code:
            enum, has_comment = None, False
    return found


def label(page, anchor=""):
    path = pathlib.PurePath(page)
    stem = path.stem
    if stem == "README" and not anchor:
        return "index"
    if path.parent.name == "internals":  # where pages have names of other pages
        stem = f"internals_{stem}"
    return f"page_{stem}" + (f"-{anchor}" if anchor else "")


def page(root, name, text):
    """Returns a Markdown page for Doxygen."""
    seen = {}  # how often each anchor occurred

    def link(match):
        if match[1]:
            return QUOTE_IN_CODE.sub(r"``\1``", match[0])
        words, _, target = match[0].rpartition("](")
        target, _, anchor = target.rstrip(")").partition("#")
        if re.match(r"[a-z]+:", target):
            return match[0]
        if words.startswith("!"):
            return f"{words}]({pathlib.PurePath(target).name})"
        there = name
        if target:
            there = (root / name).parent.joinpath(target).resolve().relative_to(root).as_posix()
        if there.endswith(".md") and ("/" not in there or there.startswith("docs/")):
            return f"{words}](@ref {label(there, anchor)})"
        if there.startswith(HEADERS) and there.endswith(".h"):
            return f"{words}](@ref {group(there.removeprefix(HEADERS))})"
        return words.removeprefix("[")

    def line(words):
        heading = HEADING.match(words)
        words = CODE_OR_LINK.sub(link, words)
        if not heading or heading[1] == "#" and name == "README.md":
            return words
        anchor = anchors(heading[0]).pop()
        seen[anchor] = seen.get(anchor, -1) + 1
        if seen[anchor]:
            anchor += f"-{seen[anchor]}"
        return f"{words} {{#{label(name, '' if heading[1] == '#' else anchor)}}}"

    result, begin = "", 0
    for fence in [*FENCE.finditer(text), None]:
        prose = text[begin:fence.start() if fence else len(text)]
        result += "\n".join(map(line, prose.split("\n")))
        if fence:
            result += fence[0]
            begin = fence.end()
    return result


def problems(root, log):
    """Returns the warnings of a log that count, each once, with the line numbers of the original
    files, and the enumerators of the headers that have no comment."""
    found, counts = [], False
    for text in log.splitlines():
        warning = WARNING.match(text)
        if warning:
            path, number, words = pathlib.Path(warning[1]).resolve(), int(warning[2]), warning[3]
            counts = not NO_COMMENT_NEEDED.match(words)
            if path.is_file() and path.is_relative_to(root):
                name = path.relative_to(root).as_posix()
                if name.startswith(HEADERS):
                    lines = header(name.removeprefix(HEADERS), path.read_text())
                    number = lines[min(number, len(lines)) - 1][1]
                text = f"{name}:{number}: {words}"
        if counts or not warning and not text.startswith(" "):
            found.append(text)
    for path in sorted((root / HEADERS).rglob("*.h")):
        name = path.relative_to(root).as_posix()
        lines = header(name.removeprefix(HEADERS), path.read_text())
        found += [f"{name}:{number}: Enumerator {enumerator} is not documented."
                  for enumerator, number in enumerators_without_comment(lines)]
    return list(dict.fromkeys(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("command", choices=["filter", "check"])
    parser.add_argument("file", type=pathlib.Path)
    args = parser.parse_args()
    root, text = args.root.resolve(), args.file.read_text()
    if args.command == "filter":
        name = args.file.resolve().relative_to(root).as_posix()
        if name.endswith(".md"):
            print(page(root, name, text), end="")
        else:
            for line, _ in header(name.removeprefix(HEADERS), text):
                print(line)
        return 0
    found = problems(root, text)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
