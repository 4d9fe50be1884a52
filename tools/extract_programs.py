#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes every ```cpp block that has a main() to OUT/<document>_<line>.cpp and prints the paths.

A #line directive makes the compiler's messages point at the document. Unchanged files are not
written again, so that nothing is rebuilt.
"""

import pathlib
import re
import sys


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for document in map(pathlib.Path, sys.argv[2:]):
        text = document.read_text()
        for match in re.finditer(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            if not re.search(r"\bint main\(", match[1]):
                continue
            line = text.count("\n", 0, match.start(1)) + 1
            path = out / f"{document.stem.lower()}_{line}.cpp"
            code = f'#line {line} "{document}"\n{match[1]}'
            if not path.exists() or path.read_text() != code:
                path.write_text(code)
            written.append(path)
    for old in set(out.glob("*.cpp")) - set(written):
        old.unlink()
    print("\n".join(map(str, written)))


if __name__ == "__main__":
    main()
