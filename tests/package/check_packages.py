#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs each package of ./dev package into an empty folder, and uses it as its user would:

  source  The archive has the files of the commit, and packing it again makes the same bytes.
  debian  Unpacks the three packages. Builds examples/projects/find_package with CMake and with
          pkg-config on them, runs both programs, and trains and predicts with tg.
  wheel   Installs the wheel with pip in a new virtual environment, without a network. Trains and
          predicts with tg, and asks it for the WebGPU library.
  conan   Unpacks the source archive. Creates Conan's package from it without a network, and builds
          the same project on that. The machine's libraries stand for Conan Center's packages. For
          speed, the library is built without WebGPU, unoptimized and for one instruction set.
  vcpkg   Unpacks the source archive. Checks the manifest of vcpkg's port and runs its portfile, with
          stand-ins for the functions of vcpkg, which is in no package index. Builds the project on
          the result. The library is built as for Conan.

Without names, it tries all five.
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
import tarfile
import tempfile
import venv

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PROJECT = SOURCE / "examples" / "projects" / "find_package"


def run(*command, folder=None, env=None):
    """Runs a command, which must succeed. Returns what it wrote to its standard output."""
    print("+", *command, flush=True)
    done = subprocess.run([str(c) for c in command], cwd=folder, text=True, stdout=subprocess.PIPE,
                          env=os.environ | {k: str(v) for k, v in (env or {}).items()})
    sys.stdout.write(done.stdout)
    done.check_returncode()
    return done.stdout


def only(folder, pattern):
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"expected one {pattern} in {folder}, found {[p.name for p in found]}")
    return found[0]


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def version():
    text = (SOURCE / "include" / "tensorgrad" / "version.h").read_text()
    return re.search(r'VERSION_STRING "([\d.]+)"', text)[1]


def use_tg(tg, top, env=None):
    """Trains on a table, and predicts the classes of rows that it has not seen."""
    expect(run(*tg, "--version", env=env).strip() == f"tg {version()}", "the version of tg")
    rows = [(x / 10, y / 10) for x in range(-10, 11) for y in range(-10, 11)]
    table, asked = top / "table.csv", top / "asked.csv"
    table.write_text("x,y,side\n" + "".join(
        f"{x},{y},{'right' if x > 0 else 'left'}\n" for x, y in rows))
    asked.write_text("x,y\n0.85,0.33\n-0.85,0.33\n")
    run(*tg, "train", "--data", table, "--device", "cpu", "--epochs", "20", "--out", top / "run",
        env=env)
    answer = run(*tg, "predict", "--run", top / "run", "--device", "cpu", asked, env=env)
    classes = re.findall(r"\b(?:left|right)\b", answer)
    expect(classes[:2] == ["right", "left"], f"predicted classes: {classes}")


def check_source(packages, top):
    archive = only(packages, "tensorgrad-*.tar.xz")
    with tarfile.open(archive) as tar:
        names = {m.name.split("/", 1)[1] for m in tar.getmembers() if m.isfile()}
        tops = {m.name.split("/", 1)[0] for m in tar.getmembers()}
    tracked = set(run("git", "-C", SOURCE, "ls-tree", "-r", "--name-only", "HEAD").split("\n")) - {""}
    expect(tops == {f"tensorgrad-{version()}"}, f"top folders {tops}")
    expect(names == tracked, f"files differ: {sorted(names ^ tracked)[:10]}")
    again = top / "again.tar.xz"
    run("sh", "-c", f"git -C {shlex.quote(str(SOURCE))} archive --prefix=tensorgrad-{version()}/ HEAD"
        f" | xz -9 -T1 > {shlex.quote(str(again))}")
    expect(again.read_bytes() == archive.read_bytes(), "packing again makes the same bytes")


def check_debian(packages, top):
    root = top / "root"
    for package in sorted(packages.glob("*.deb")):
        run("dpkg-deb", "--extract", package, root)
    names = {run("dpkg-deb", "--field", p, "Package").strip() for p in packages.glob("*.deb")}
    abi = ".".join(version().split(".")[:2])
    expect(names == {f"libtensorgrad{abi}", "libtensorgrad-dev", "tensorgrad-tools"}, f"{names}")
    usr = root / "usr"
    libraries = only(usr, f"lib/*/libtensorgrad.so.{abi}").parent
    soname = run("readelf", "--dynamic", libraries / "libtensorgrad.so")
    expect(f"[libtensorgrad.so.{abi}]" in soname, "the SONAME")
    expect("RUNPATH" not in soname and "RPATH" not in soname, "no path of libraries")
    exported = run("sh", "-c", f"nm --dynamic --defined-only --demangle {libraries}/libtensorgrad.so"
                   " | cut -d' ' -f3- | grep -v 'tensorgrad::' | head -n 5 || true")
    expect(not exported.strip(), "only names of tensorgrad are exported")
    env = {"LD_LIBRARY_PATH": libraries}

    shutil.copytree(PROJECT, top / "project")
    run("cmake", "-G", "Ninja", "-S", top / "project", "-B", top / "build",
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={usr}")
    run("cmake", "--build", top / "build")
    run(top / "build" / "app", folder=top, env=env)

    pkg_config = {"PKG_CONFIG_LIBDIR": libraries / "pkgconfig"}
    expect(run("pkg-config", "--modversion", "tensorgrad", env=pkg_config).strip() == version(),
           "the version that pkg-config tells")
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "tensorgrad", env=pkg_config))
    run("c++", "-std=c++20", "-O1", top / "project" / "main.cpp", "-o", top / "by_hand", *flags)
    run(top / "by_hand", folder=top, env=env)

    use_tg([usr / "bin" / "tg"], top, env)


def check_wheel(packages, top):
    wheel = only(packages, "tensorgrad-*.whl")
    expect("manylinux" in wheel.name, f"{wheel.name} is for manylinux")
    expect(wheel.name.startswith(f"tensorgrad-{version()}-py3-none-"), f"{wheel.name}: version")
    venv.create(top / "venv", with_pip=True)
    scripts = top / "venv" / "bin"
    run(scripts / "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", wheel)
    # Nothing of this machine's own libraries for the tool, and no wgpu-native but the wheel's.
    use_tg([scripts / "tg"], top)
    run(scripts / "python", "-m", "tensorgrad", "devices")
    where = run(scripts / "python", "-c", "import tensorgrad; print(tensorgrad.program())").strip()
    library = pathlib.Path(where).parent.parent / "lib" / "tensorgrad" / "libwgpu_native.so"
    expect(library.is_file(), f"{library} is where tg looks for it")
    linked = run("ldd", where)
    for name in ("libfmt", "libhwy", "libutf8proc"):
        found = re.findall(rf"{name}\S* => (\S+)", linked)
        expect(all(str(top) in path for path in found), f"{name} is the wheel's: {found}")


def unpack_source(packages, top):
    """Unpacks the source archive. Returns its folder."""
    with tarfile.open(only(packages, "tensorgrad-*.tar.xz")) as tar:
        tar.extractall(top, filter="data")
    return top / f"tensorgrad-{version()}"


def check_conan(packages, top):
    source = unpack_source(packages, top)
    conan = shutil.which("conan", path=f"{SOURCE / 'build' / 'package-venv' / 'bin'}:"
                                       f"{os.environ['PATH']}")
    expect(conan, "there is a program conan")
    env = {"CONAN_HOME": top / "conan"}
    run(conan, "profile", "detect", env=env)
    (top / "conan" / "remotes.json").write_text('{"remotes": []}')
    for name, its_version in (("highway", "1.0.3"), ("utf8proc", "2.8.0"), ("zlib", "1.2.13"),
                              ("nlohmann_json", "3.11.2"), ("stb", "cci.20230920")):
        run(conan, "export", SOURCE / "tests" / "package" / "system_library", "--name", name,
            "--version", its_version, env=env)
    settings = ["--settings", "compiler.cppstd=20", "--options", "tensorgrad/*:webgpu=False",
                "--conf", "tools.cmake.cmaketoolchain:generator=Ninja"]
    run(conan, "create", source / "packaging" / "conan", "--build", "missing", *settings, "--settings",
        "build_type=Debug", "--conf", "tools.build:cxxflags=['-O0','-g0','-DHWY_COMPILE_ONLY_STATIC']",
        env=env)
    shutil.copytree(PROJECT, top / "project")
    run(conan, "install", "--requires", f"tensorgrad/{version()}", *settings, "--settings",
        "build_type=Debug", "--generator", "CMakeDeps", "--generator", "CMakeToolchain",
        "--output-folder", top / "project" / "conan", folder=top, env=env)
    run("cmake", "-G", "Ninja", "-S", top / "project", "-B", top / "build", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_TOOLCHAIN_FILE={top / 'project' / 'conan' / 'conan_toolchain.cmake'}")
    run("cmake", "--build", top / "build")
    run(top / "build" / "app", folder=top)


# The ports of vcpkg that provide our dependencies.
VCPKG_PORTS = {"highway", "nlohmann-json", "stb", "utf8proc", "vcpkg-cmake", "vcpkg-cmake-config", "zlib"}


def check_vcpkg_manifest(file):
    manifest = json.loads(file.read_text())
    required = {"name", "version-semver", "description", "license", "supports", "dependencies",
                "default-features", "features"}
    expect(set(manifest) == required, f"vcpkg.json: fields {sorted(set(manifest) ^ required)}")
    expect(manifest["name"] == file.parent.name, "vcpkg.json: the name is that of its folder")
    expect(manifest["version-semver"] == version(), f"vcpkg.json: the version is {version()}")
    names = [d if isinstance(d, str) else d["name"] for d in manifest["dependencies"]]
    expect(names == sorted(names) and set(names) == VCPKG_PORTS, f"vcpkg.json: dependencies {names}")
    for name, feature in manifest["features"].items():
        expect(set(feature) == {"description"}, f"vcpkg.json: feature {name}")
    expect(set(manifest["default-features"]) <= set(manifest["features"]), "vcpkg.json: features")


def check_vcpkg(packages, top):
    source = unpack_source(packages, top)
    port = source / "packaging" / "vcpkg" / "tensorgrad"
    check_vcpkg_manifest(port / "vcpkg.json")
    installed, package = top / "installed", top / "package"
    (installed / "include").mkdir(parents=True)
    for header in pathlib.Path("/usr/include/stb").glob("*.h"):  # where vcpkg's stb has them
        (installed / "include" / header.name).symlink_to(header)
    run("cmake", f"-DPORTFILE={port / 'portfile.cmake'}", "-DPORT=tensorgrad", "-DFEATURES=core",
        f"-DCURRENT_INSTALLED_DIR={installed}", f"-DCURRENT_PACKAGES_DIR={package}",
        f"-DCURRENT_BUILDTREES_DIR={top / 'trees'}",
        "-P", SOURCE / "tests" / "package" / "vcpkg" / "stand_ins.cmake",
        env={"CXXFLAGS": "-O0 -g0 -DHWY_COMPILE_ONLY_STATIC"})
    shutil.copytree(PROJECT, top / "project")
    run("cmake", "-G", "Ninja", "-S", top / "project", "-B", top / "build", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_PREFIX_PATH={package}")
    run("cmake", "--build", top / "build")
    run(top / "build" / "app", folder=top)


def main():
    checks = {"source": check_source, "debian": check_debian, "wheel": check_wheel,
              "conan": check_conan, "vcpkg": check_vcpkg}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(checks))
    parser.add_argument("--packages", type=pathlib.Path, default=SOURCE / "build" / "package")
    args = parser.parse_args()
    for name in args.names or checks:
        if name not in checks:
            parser.error(f"no check '{name}'; there are {', '.join(checks)}")
        with tempfile.TemporaryDirectory(prefix="tensorgrad-package-") as folder:
            checks[name](args.packages.resolve(), pathlib.Path(folder))
        print(f"{name}: passed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
