#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every #include against src/LAYERS, and src/README.md against the table made from it.

  check_layers.py            fails with `file:line: rule` for each include that breaks a rule
  check_layers.py --table    prints the table
  check_layers.py --update   rewrites the table in src/README.md
"""

import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".def", ".inc"}
TOP_ROOMS = ("cli", "examples", "bench", "web")  # modules outside src/
BEGIN = "<!-- layers: made by tools/check_layers.py --update -->"
END = "<!-- layers end -->"
PUBLIC = "tensorgrad/"


class Layers:
    """The parsed contents of src/LAYERS."""

    def __init__(self, path):
        self.rooms, self.owners, self.apart, self.only = {}, {}, {}, {}
        kinds = {"room": self.rooms, "owner": self.owners, "apart": self.apart, "only": self.only}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            match = re.fullmatch(r"(\w+)\s+(\S+)\s*<-\s*(.*)", line)
            if not match or match[1] not in kinds:
                sys.exit(f"{path}:{number}: expected `room|owner|apart|only NAME <- WORD ...`")
            kinds[match[1]][match[2]] = match[3].split()
        for room, allowed in self.rooms.items():
            earlier = list(self.rooms)[: list(self.rooms).index(room)]
            for other in allowed:
                if other != "public" and other not in earlier:
                    sys.exit(f"{path}: {room} <- {other}: not a room named above it")

    def owner_of(self, header):
        """Returns the module that a header of include/tensorgrad belongs to."""
        for room, headers in self.owners.items():
            if header in headers:
                return room
        return next((room for room, headers in self.owners.items() if "*" in headers), None)

    def may(self, room, target):
        allowed = self.rooms[room]
        return target == room or target in allowed

    def may_public(self, room, header):
        return "public" in self.rooms[room] or self.may(room, self.owner_of(header))


def place_of(root, path):
    """Returns (module, submodule) of a source file; the module is 'public:NAME.h' for a public
    header."""
    parts = path.relative_to(root).parts
    if parts[0] == "include":
        return "public:" + "/".join(parts[2:]), ""
    inner = parts[1:] if parts[0] == "src" else parts
    return (inner[0], inner[1] if len(inner) > 2 else "") if len(inner) > 1 else ("", "")


def complaint(layers, root, path, name, quoted):
    """Returns why `path` may not include `name`, or None."""
    room, subroom = place_of(root, path)
    header_of = room.split(":")[1] if room.startswith("public:") else None
    home = layers.owner_of(header_of) if header_of else room

    if name.startswith(PUBLIC):
        header = name[len(PUBLIC):]
        if not (root / "include" / name).exists():
            return f"there is no include/{name}"
        if layers.may_public(home, header):
            return None
        return f"{home} may not include the public headers of {layers.owner_of(header)}"

    places = [p for p, prefixes in layers.only.items() if name.startswith(tuple(prefixes))]
    if places:
        here = f"{room}/{subroom}".rstrip("/")
        return None if here in places else f"only {' and '.join(places)} may include <{name}>"

    target = None
    if quoted and (root / "src" / name).exists():
        target = root / "src" / name
    elif quoted and (path.parent / name).exists():
        target = path.parent / name
    if header_of:
        standard = not quoted and "/" not in name and "." not in name
        return None if standard else "a public header includes public and standard headers only"
    if ".." in pathlib.PurePosixPath(name).parts:
        return "includes are written from src/, without `..`"
    if target is None:
        first = name.split("/")[0]
        missing = quoted and first in layers.rooms and "/" in name and first not in TOP_ROOMS
        return f"there is no src/{name}" if missing else None  # else a third party's

    to_room, to_subroom = place_of(root, target.resolve())
    if to_room == room:
        apart = layers.apart.get(room, [])
        if subroom in apart and to_subroom in apart and subroom != to_subroom:
            return f"{room}/{subroom} and {room}/{to_subroom} may not include each other"
        if subroom == "" and to_subroom in apart and path.suffix == ".h":
            return f"a header of {room} may not include {room}/{to_subroom}"
        return None
    if layers.may(room, to_room):
        return None
    allowed = " ".join(layers.rooms[room]) or "nothing"
    return f"{room} may include {allowed}, not {to_room}"


def check(layers, root):
    problems = []
    top = [root / "src", root / "include"] + [root / room for room in TOP_ROOMS]
    for path in sorted(p for folder in top for p in folder.rglob("*") if p.suffix in SUFFIXES):
        room, _ = place_of(root, path)
        where = path.relative_to(root)
        if not room.startswith("public:") and room not in layers.rooms:
            problems.append(f"{where}:1: lies in no room of src/LAYERS")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                why = complaint(layers, root, path, match[1] or match[2], bool(match[1]))
                if why:
                    problems.append(f"{where}:{number}: {why} ({line.strip()})")
    return problems


def table(layers):
    rows = ["| room | may include |", "|---|---|"]
    for room, allowed in layers.rooms.items():
        name = f"`{room}/`" if room in TOP_ROOMS else f"`src/{room}/`"
        words = ["`include/tensorgrad/`" if w == "public" else f"`{w}`" for w in allowed]
        rows.append(f"| {name} | {' '.join(words) or 'nothing'} |")
    rows.append("")
    for room, headers in layers.owners.items():
        named = " ".join(f"`{h}`" for h in headers if h != "*") or "every other header"
        rows.append(f"- Of `include/tensorgrad/`, {named} belongs to `{room}`.")
    for room, parts in layers.apart.items():
        named = " ".join(f"`{p}`" for p in parts)
        rows.append(f"- Inside `{room}`, these do not include each other: {named}.")
    for prefix in dict.fromkeys(p for prefixes in layers.only.values() for p in prefixes):
        places = [f"`{place}`" for place, prefixes in layers.only.items() if prefix in prefixes]
        rows.append(f"- `<{prefix}...>` is included by {' and '.join(places)} alone.")
    return "\n".join(rows)


def with_table(text, rows):
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"src/README.md lacks the lines\n{BEGIN}\n{END}")
    return f"{before}{BEGIN}\n{rows}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--table", action="store_true", help="print the table")
    parser.add_argument("--update", action="store_true", help="rewrite the table in src/README.md")
    args = parser.parse_args()
    root = args.root.resolve()
    layers = Layers(root / "src" / "LAYERS")
    rows = table(layers)
    if args.table:
        print(rows)
        return 0

    readme = root / "src" / "README.md"
    text = readme.read_text()
    if args.update:
        readme.write_text(with_table(text, rows))
        text = readme.read_text()
    problems = check(layers, root)
    if with_table(text, rows) != text:
        problems.append("src/README.md:1: its table is not that of src/LAYERS: run "
                        "tools/check_layers.py --update")
    print("\n".join(problems) if problems else "layers: every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
