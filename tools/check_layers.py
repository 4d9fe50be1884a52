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
TOP_MODULES = ("cli", "examples", "bench", "web")  # modules outside src/
BEGIN = "<!-- layers: made by tools/check_layers.py --update -->"
END = "<!-- layers end -->"
PUBLIC = "tensorgrad/"


class Layers:
    """The parsed contents of src/LAYERS."""

    def __init__(self, path):
        self.modules, self.owners, self.light, self.apart, self.only = {}, {}, {}, {}, {}
        kinds = {"module": self.modules, "owner": self.owners, "light": self.light,
                 "apart": self.apart, "only": self.only}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            match = re.fullmatch(r"(\w+)\s+(\S+)\s*<-\s*(.*)", line)
            if not match or match[1] not in kinds:
                sys.exit(f"{path}:{number}: expected `module|owner|light|apart|only NAME <- WORD ...`")
            kinds[match[1]][match[2]] = match[3].split()
        for module, allowed in self.modules.items():
            earlier = list(self.modules)[: list(self.modules).index(module)]
            for other in allowed:
                if other != "public" and other not in earlier:
                    sys.exit(f"{path}: {module} <- {other}: not a module named above it")

    def owner_of(self, header):
        """Returns the module that a header of include/tensorgrad belongs to."""
        for module, headers in self.owners.items():
            if header in headers:
                return module
        folder = header.split("/")[0] + "/"
        for name in (folder, "*"):
            for module, headers in self.owners.items():
                if name in headers:
                    return module
        return None

    def in_light(self, light, header):
        """Returns whether the line `light` allows a header of include/tensorgrad."""
        names = self.light[light]
        if f"!{header}" in names:
            return False
        return header in names or any(n.endswith("/") and header.startswith(n) for n in names)

    def may(self, module, target):
        allowed = self.modules[module]
        return target == module or target in allowed

    def may_public(self, module, header):
        return "public" in self.modules[module] or self.may(module, self.owner_of(header))


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
    module, folder = place_of(root, path)
    header_of = module.split(":")[1] if module.startswith("public:") else None
    home = layers.owner_of(header_of) if header_of else module

    if name.startswith(PUBLIC):
        header = name[len(PUBLIC):]
        if not (root / "include" / name).exists():
            return f"there is no include/{name}"
        if layers.may_public(home, header):
            return None
        return f"{home} may not include the public headers of {layers.owner_of(header)}"

    places = [p for p, prefixes in layers.only.items() if name.startswith(tuple(prefixes))]
    if places:
        here = f"{module}/{folder}".rstrip("/")
        return None if here in places else f"only {' and '.join(places)} may include <{name}>"

    target = None
    if quoted and (root / "src" / name).exists():
        target = root / "src" / name
    elif quoted and (path.parent / name).exists():
        target = path.parent / name
    elif quoted and module in TOP_MODULES and (root / module / name).exists():
        target = root / module / name
    if header_of:
        standard = not quoted and "/" not in name and "." not in name
        return None if standard else "a public header includes public and standard headers only"
    if ".." in pathlib.PurePosixPath(name).parts:
        return "includes are written from src/, without `..`"
    if target is None:
        first = name.split("/")[0]
        missing = quoted and first in layers.modules and "/" in name and first not in TOP_MODULES
        return f"there is no src/{name}" if missing else None  # else a third party's

    to_module, to_folder = place_of(root, target.resolve())
    if to_module == module:
        apart = layers.apart.get(module, [])
        if folder in apart and to_folder in apart and folder != to_folder:
            return f"{module}/{folder} and {module}/{to_folder} may not include each other"
        if folder == "" and to_folder in apart and path.suffix == ".h":
            return f"a header of {module} may not include {module}/{to_folder}"
        return None
    if layers.may(module, to_module):
        return None
    allowed = " ".join(layers.modules[module]) or "nothing"
    return f"{module} may include {allowed}, not {to_module}"


def light_problems(layers, root, light):
    """Returns the includes by which a header of include/tensorgrad reaches one that the line `light`
    does not allow. Follows the includes of allowed headers only."""
    public = root / "include" / PUBLIC
    if not (public / light).exists():
        return [f"src/LAYERS:1: light {light}: there is no include/{PUBLIC}{light}"]
    problems, chains = [], {light: light}
    waiting = [light]
    while waiting:
        header = waiting.pop(0)
        for number, line in enumerate((public / header).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            name = (match[1] or match[2]) if match else ""
            other = name[len(PUBLIC):]
            if not name.startswith(PUBLIC) or not (public / other).exists() or other in chains:
                continue
            chains[other] = f"{chains[header]} -> {other}"
            if layers.in_light(light, other):
                waiting.append(other)
            else:
                problems.append(f"include/{PUBLIC}{header}:{number}: {light} may not include {other} "
                                f"({chains[other]}); see `light {light}` in src/LAYERS")
    return problems


def check(layers, root):
    problems = [problem for light in layers.light for problem in light_problems(layers, root, light)]
    top = [root / "src", root / "include"] + [root / module for module in TOP_MODULES]
    for path in sorted(p for folder in top for p in folder.rglob("*") if p.suffix in SUFFIXES):
        module, _ = place_of(root, path)
        where = path.relative_to(root)
        if not module.startswith("public:") and module not in layers.modules:
            problems.append(f"{where}:1: is in no module of src/LAYERS")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                why = complaint(layers, root, path, match[1] or match[2], bool(match[1]))
                if why:
                    problems.append(f"{where}:{number}: {why} ({line.strip()})")
    return problems


def table(layers):
    rows = ["| module | may include |", "|---|---|"]
    for module, allowed in layers.modules.items():
        name = f"`{module}/`" if module in TOP_MODULES else f"`src/{module}/`"
        words = ["`include/tensorgrad/`" if w == "public" else f"`{w}`" for w in allowed]
        rows.append(f"| {name} | {' '.join(words) or 'nothing'} |")
    rows.append("")
    for module, headers in layers.owners.items():
        named = " ".join(f"`{h}`" for h in headers if h != "*") or "every other header"
        if "*" in headers and len(headers) > 1:
            named += " and every header not named here"
        rows.append(f"- Of `include/tensorgrad/`, {named} {'belongs' if len(headers) == 1 else 'belong'} to `{module}`.")
    for light, headers in layers.light.items():
        named = " ".join(f"`{h}`" for h in headers if not h.startswith("!"))
        never = " ".join(f"`{h[1:]}`" for h in headers if h.startswith("!"))
        rows.append(f"- `{light}` includes, directly or indirectly, only {named}"
                    f"{f'; not {never}' if never else ''}.")
    for module, parts in layers.apart.items():
        named = " ".join(f"`{p}`" for p in parts)
        rows.append(f"- Inside `{module}`, these do not include each other: {named}.")
    together = {}  # headers that the same folders may include
    for prefix in dict.fromkeys(p for prefixes in layers.only.values() for p in prefixes):
        places = [f"`{place}`" for place, prefixes in layers.only.items() if prefix in prefixes]
        together.setdefault(" and ".join(places), []).append(f"`<{prefix}...>`")
    for places, headers in together.items():
        verb = "is" if len(headers) == 1 else "are"
        rows.append(f"- {', '.join(headers)} {verb} included only by {places}.")
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
