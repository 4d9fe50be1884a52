#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies projects of examples/projects/ out of the tree, builds and runs them as a user would:

  find_package   Runs the commands of README that install the library, in a folder of links to the
                 sources. Does not compile the library again, but takes it from a build tree. Builds
                 the project find_package against the installation.
  fetch_content  Builds the project fetch_content on the source tree, with a shared library. Then
                 installs that library and builds the project find_package against it.

fetch_content compiles the library again. It tests the CMake files and another compiler, not the
results of the library. So it compiles fast: without optimization and with several files at once.
The preset `tidy` (./dev check) checks that each file compiles separately.

find_package also checks the presets `library` and `tool`: which targets they define, that they fetch
nothing but wgpu-native, and that `library` installs what the build tree does, except for the tool.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# An unknown build type, so that CMake adds no flags for it.
LIBRARY = ["-DCMAKE_BUILD_TYPE=Unoptimized", "-DCMAKE_UNITY_BUILD=ON", "-DBUILD_SHARED_LIBS=ON",
           "-DTENSORGRAD_INSTALL=ON", "-DTENSORGRAD_WARNINGS=ON", "-DTENSORGRAD_WERROR=ON"]
ONE_SET = "-DHWY_COMPILE_ONLY_STATIC"  # one instruction set instead of all


def through_ccache(source):
    """Returns options that compile through ccache, with paths relative to the source tree."""
    ccache = shutil.which("ccache")
    if not ccache:
        return []
    launcher = ["cmake", "-E", "env", f"CCACHE_BASEDIR={source}", ccache]
    return [f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(launcher)}"]


def run(*command, folder=None):
    print("+", *command, flush=True)
    subprocess.run([str(c) for c in command], check=True, cwd=folder)


def readme_commands(text):
    """Returns the commands of README that configure, build and install the library, as lists."""
    blocks = re.findall(r"^```\n(cmake .*?)\n```$", text, flags=re.MULTILINE | re.DOTALL)
    commands = [shlex.split(command) for block in blocks for command in re.split(r"&&|\n", block)]
    if len(commands) != 3:
        sys.exit(f"README.md: expected three commands that install the library, found {commands}")
    return commands


def configure(tree, *command):
    """Runs a command that configures `tree`/build/PRESET. Returns its targets as {name: type}, and
    the number of source files of the library."""
    preset = command[command.index("--preset") + 1]
    api = tree / "build" / preset / ".cmake" / "api" / "v1"
    (api / "query").mkdir(parents=True)
    (api / "query" / "codemodel-v2").touch()
    run(*command, folder=tree)
    targets = [json.loads(file.read_text()) for file in (api / "reply").glob("target-*.json")]
    sources = sum(source["path"].endswith(".cpp") and not source.get("isGenerated")
                  for target in targets if target["name"] == "tensorgrad"
                  for source in target["sources"])
    return {target["name"]: target["type"] for target in targets}, sources


def files_in(folder):
    """Returns the paths of all files in a folder, without the build type in the names of CMake's."""
    return {re.sub(r"-targets-\w+\.cmake$", "-targets-TYPE.cmake", str(path.relative_to(folder)))
            for path in folder.rglob("*") if not path.is_dir()}


def expect(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: expected {expected}, got {got}")


def install_as_in_readme(source, build, cmake, options, top):
    """Installs the library of `build` into top/prefix by README's commands, which run in a folder of
    links to the sources. Checks the presets `library` and `tool`."""
    tree, prefix, fetched = top / "tree", top / "prefix", top / "fetched"
    tree.mkdir()
    for entry in source.iterdir():
        if entry.name not in (".git", "build", "runs"):
            (tree / entry.name).symlink_to(entry)
    options = [*options, f"-DTENSORGRAD_FETCH_DIR={fetched}"]
    first, second, third = ([cmake, *words[1:]] for words in
                            readme_commands((source / "README.md").read_text()))
    # Which programs a preset builds, and which libraries besides the parts of tensorgrad.
    for preset, command, programs, libraries in (
            ("library", [word.replace("=PREFIX", f"={prefix}") for word in first], [], []),
            ("tool", [cmake, "--preset", "tool"], ["tg"], ["tg_parts"])):
        targets, sources = configure(tree, *command, *options)
        expect(f"preset {preset}: programs",
               sorted(name for name, kind in targets.items() if kind == "EXECUTABLE"), programs)
        expect(f"preset {preset}: libraries besides tensorgrad's",
               sorted(name for name, kind in targets.items() if kind.endswith("_LIBRARY")
                      and not name.startswith("tensorgrad")), libraries)
        if sources < 100:
            sys.exit(f"preset {preset}: the library has only {sources} source files")
        if "GTest_DIR" in (tree / "build" / preset / "CMakeCache.txt").read_text():
            sys.exit(f"preset {preset} looks for googletest")
    expect("files that the presets fetch", files_in(fetched) if fetched.exists() else set(), set())

    # Lists what the second command can build, instead of compiling it.
    command = [*second, "--target", "help"]
    print("+", *command, flush=True)
    listed = subprocess.run(command, check=True, cwd=tree, stdout=subprocess.PIPE, text=True).stdout
    if "\ntensorgrad: " not in listed:
        sys.exit(f"the build preset library does not build tensorgrad; it builds:\n{listed}")
    for library in build.glob("libtensorgrad.*"):
        shutil.copy2(library, tree / "build" / "library" / library.name, follow_symlinks=False)
    run(*third, folder=tree)

    run(cmake, "--install", build, "--prefix", top / "other")
    tool = {"bin/tg", "share/man/man1/tg.1"}
    expect("files that the preset library installs", sorted(files_in(prefix)),
           sorted(files_in(top / "other") - tool))


def main():
    source = pathlib.Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["find_package", "fetch_content"])
    parser.add_argument("--build", type=pathlib.Path, help="find_package: the build tree")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="more flags of the compiler")
    parser.add_argument("--fetched", type=pathlib.Path, default=source / "build" / "_deps",
                        help="TENSORGRAD_FETCH_DIR")
    parser.add_argument("--option", action="append", default=[], dest="options",
                        help="find_package: an option of the build tree, such as -DTENSORGRAD_WEBGPU=OFF")
    parser.add_argument("--jobs", default=os.environ.get("TENSORGRAD_JOBS", str(os.cpu_count())))
    args = parser.parse_args()
    if args.way == "find_package" and not args.build:
        parser.error("find_package: --build is missing")

    fetches = args.way == "fetch_content"
    # Inside the source tree, relative paths are those of other clones, so that ccache has the objects.
    place = source / "build" if fetches else None
    with tempfile.TemporaryDirectory(prefix="tensorgrad-package-", dir=place) as folder:
        top = pathlib.Path(folder)

        def try_out(project, flags, *options):
            """Copies a project, builds it and runs it in an empty folder. Returns its build folder."""
            shutil.copytree(source / "examples" / "projects" / project, top / project)
            out, runs = top / project / "build", top / project / "runs"
            run(args.cmake, "-G", "Ninja", "-S", top / project, "-B", out,
                f"-DCMAKE_CXX_COMPILER={args.compiler}", f"-DCMAKE_CXX_FLAGS={flags}", *options)
            run(args.cmake, "--build", out, "--parallel", args.jobs)
            runs.mkdir()
            run(out / "app", folder=runs)
            return out

        if fetches:
            built = try_out("fetch_content", f"{args.flags} {ONE_SET}", *LIBRARY,
                            *through_ccache(source),
                            f"-DFETCHCONTENT_SOURCE_DIR_TENSORGRAD={source}",
                            f"-DTENSORGRAD_FETCH_DIR={args.fetched}")
            run(args.cmake, "--install", built / "_deps" / "tensorgrad-build", "--prefix", top / "prefix")
        else:
            install_as_in_readme(source, args.build, args.cmake,
                                 [f"-DCMAKE_CXX_COMPILER={args.compiler}", *args.options], top)
        try_out("find_package", args.flags, "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_PREFIX_PATH={top / 'prefix'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
