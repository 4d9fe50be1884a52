#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies projects of examples/projects/ out of the tree, builds and runs them as a user would:

  find_package   Installs a build tree. Builds the project find_package against it.
  fetch_content  Builds the project fetch_content on the source tree, with a shared library. Then
                 installs that library and builds the project find_package against it.

fetch_content compiles the library again. It tests the CMake files and another compiler, not the
results of the library. So it compiles fast: without optimization and with several files at once.
The preset `tidy` (./dev check) checks that each file compiles separately.
"""

import argparse
import os
import pathlib
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

        installed = args.build
        if fetches:
            built = try_out("fetch_content", f"{args.flags} {ONE_SET}", *LIBRARY,
                            *through_ccache(source),
                            f"-DFETCHCONTENT_SOURCE_DIR_TENSORGRAD={source}",
                            f"-DTENSORGRAD_FETCH_DIR={args.fetched}")
            installed = built / "_deps" / "tensorgrad-build"
        run(args.cmake, "--install", installed, "--prefix", top / "prefix")
        try_out("find_package", args.flags, "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_PREFIX_PATH={top / 'prefix'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
