#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures everything on this machine and, with --peers PYTHON, the peers, alternately.

Prints a JSON line for each measurement, and finally the tables of bench/tables.py. Each measurement
runs in its own process. Use it through `./dev bench` and `./dev bench --peers`. To use the machine's
own PyTorch or JAX, pass --peers "$(which python3)".
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
TOP = BENCH.parent
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
sys.dont_write_bytecode = True
import tables  # noqa: E402
import workloads  # noqa: E402

PARTS = ["steps", "compile", "probes", "busy", "scaling", "gemm", "memory", "mixed", "f16x3", "sizes", "distributed",
         "lm", "inference"]
# Variables that set where drivers cache compiled kernels: Mesa, NVIDIA, others.
DRIVER_CACHES = ["MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "XDG_CACHE_HOME"]
LENGTHS = [64, 512, 2048, 8192]  # of the Mamba in --scaling
STEPS = ["mlp-sin", "fashion-mlp", "mnist-cnn", "addition", "char-gpt", "mamba1"]
LARGE = ["gpt2", "gpt2-50k", "gpt-long"]
FOR_GPUS = [*LARGE, "mamba-130m"]  # only if requested
INFERRED = ["f16", "int8", "int4"]  # weight formats of the part inference
MIXED = ["char-gpt", *FOR_GPUS]
MIXED_MODES = "compile-cuda-graph", "mamba-ssm-cuda-graph"  # of PyTorch: of decoders, and of Mamba


class Lines:
    """Measurements, printed as they arrive and kept in a file."""

    def __init__(self, path):
        self.all = []
        self.file = open(path, "w", encoding="utf-8") if path else None

    def add(self, line):
        self.all.append(line)
        text = json.dumps(line)
        print(text, flush=True)
        if self.file:
            print(text, file=self.file, flush=True)


def blas_of_this_machine():
    """Returns variables that select OpenBLAS kernels by the CPU flags. On a CPU that it does not
    know, as in many virtual machines, OpenBLAS falls back to kernels for old CPUs."""
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    kind = "SKYLAKEX" if " avx512vl" in flags else "HASWELL" if " avx2" in flags else None
    return {"OPENBLAS_CORETYPE": kind} if kind and "OPENBLAS_CORETYPE" not in os.environ else {}


def lines_of(command, seconds=1800, **environment):
    """Returns the JSON lines that a command prints. If it fails, reports that on stderr and returns
    none."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds,
                              env=os.environ | blas_of_this_machine() | environment)
    except subprocess.TimeoutExpired:
        print(f"bench: took more than {seconds} s: {command}", file=sys.stderr)
        return []
    if done.returncode != 0:
        print(f"bench: exit code {done.returncode}: {' '.join(map(str, command))}\n{done.stderr[-2000:]}",
              file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Peers:
    """The peers that a Python installation has. `steps(name, ...)` returns the commands that
    measure a workload."""

    def __init__(self, python, build, threads):
        self.python, self.threads = python, threads
        self.torch = python and self.value("import torch; print(torch.__version__)")
        self.jax = python and self.value("import jax, optax; print(jax.__version__, 'with optax', "
                                         "optax.__version__)")
        self.gpu = bool(self.torch) and self.value("import torch; print(torch.cuda.is_available())") == "True"
        self.libtorch = None
        if self.torch and not self.gpu:
            self.libtorch = self.build_libtorch(build)
        of_package = "from importlib.metadata import version; print(version('{}'))"
        self.llama_cpp, self.onnxruntime = (python and self.value(of_package.format(name))
                                            for name in ("xllamacpp", "onnxruntime"))
        self.versions = [f"{name} {version}" for name, version in
                         (("PyTorch", self.torch), ("JAX", self.jax), ("llama.cpp of xllamacpp", self.llama_cpp),
                          ("onnxruntime", self.onnxruntime)) if version]
        if self.libtorch:
            self.versions.append("LibTorch of that PyTorch")

    def value(self, code):
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    def build_libtorch(self, build):
        """Builds against the library in PyTorch's wheel, again if the source or PyTorch has changed."""
        source, program = BENCH / "peers" / "libtorch_steps.cpp", build / f"libtorch_steps-{self.torch}"
        if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
            return program
        torch = pathlib.Path(self.value("import torch; print(torch.__path__[0])"))
        print(f"bench: building {program.name}", file=sys.stderr)
        done = subprocess.run(
            [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-w", "-isystem", torch / "include",
             "-isystem", torch / "include" / "torch" / "csrc" / "api" / "include", source, "-o", program,
             f"-L{torch / 'lib'}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10",
             f"-Wl,-rpath,{torch / 'lib'}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"])
        return program if done.returncode == 0 else None

    def script(self, name, *arguments):
        return [self.python, "-B", BENCH / "peers" / name, *arguments]

    def native(self, name, mode, threads, seconds):
        name = name if name != "char-gpt" else "char-gpt-small"
        shape = workloads.WORKLOADS[name]
        kind = type(shape).__name__.lower()
        if kind == "mlp":
            numbers = [shape.batch, shape.classes, shape.clip, *shape.sizes]
        elif kind == "cnn":
            numbers = [shape.batch, *shape.channels, shape.hidden, shape.clip]
        else:
            numbers = list(shape)
        return [self.libtorch, name, mode, threads, seconds, kind, *(float(n) for n in numbers)]

    def steps(self, name, modes, seconds):
        """Yields (command, additional fields of its lines) for each measurement of a workload."""
        common = ["--only", name, "--seconds", str(seconds)]
        threads = [None] if self.gpu else self.threads
        for count in threads:
            more = {} if count is None else {"threads": count}
            extra = [] if count is None else ["--threads", str(count)]
            native = self.libtorch and not isinstance(workloads.WORKLOADS[name], workloads.Mamba)
            for script, there, known in (("torch_steps.py", self.torch, modes["torch"]),
                                         ("jax_steps.py", self.jax, modes["jax"])):
                # JAX would store all weights of attention.
                stored = script == "jax_steps.py" and name in LARGE
                for mode in known if there and not stored else []:
                    yield self.script(script, *common, *extra, "--modes", mode), more
            if native:
                yield self.native(name, "fused", count or 0, seconds), more

    def probes(self, name):
        if self.torch:
            yield self.script("torch_steps.py", "--probe", name)
        if self.jax:
            yield self.script("jax_steps.py", "--probe", name)
        if self.libtorch:
            yield self.native(name, "probe", 0, 0)


class Bench:
    def __init__(self, args, peers, lines):
        self.args, self.peers, self.lines = args, peers, lines
        self.program = args.build / "tg_bench"
        self.extra = []  # options of all our commands

    def ours(self, *arguments):
        more = ["--allow-software"] if self.args.allow_software else []
        return [self.program, "--seconds", str(self.args.seconds), *more, *self.extra, *arguments]

    def counts(self, device):
        """Returns (options, additional fields of the lines) for each number of threads."""
        if device != "cpu":
            return [([], {})]
        return [(["--threads", str(count)], {"threads": count}) for count in self.args.threads]

    def measure(self, command, environment=None, **more):
        for line in lines_of(command, **(environment or {})):
            self.lines.add(line | more)

    def steps(self):
        """Measures all of one workload, ours and every peer's, in each round."""
        for name in self.args.only:
            for turn in range(self.args.rounds):
                for device in self.args.devices:
                    for extra, more in self.counts(device):
                        self.measure(self.ours("--device", device, "--only", name, *extra), round=turn, **more)
                for command, more in self.peers.steps(name, self.args.modes, self.args.seconds):
                    self.measure(command, round=turn, **more)

    def compile(self):
        """Compiles in a separate process. On a GPU, first with an empty driver cache, then with the
        cache that this filled."""
        for name in self.args.only:
            for turn in range(self.args.rounds):
                for device in self.args.devices:
                    command = self.ours("--device", device, "--compile", "--only", name)
                    if device == "cpu":
                        self.measure(command, round=turn)
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        for cache in ("empty", "filled"):
                            self.measure(command, dict.fromkeys(DRIVER_CACHES, folder), driver_cache=cache,
                                         round=turn)

    def probes(self):
        for name in ("addition", "char-gpt-small"):
            for turn in range(self.args.rounds):
                commands = [self.ours("--device", device, "--probe", name) for device in self.args.devices]
                for command in [*commands, *self.peers.probes(name)]:
                    start = time.time()
                    for line in lines_of(command):
                        seconds = line.pop("first_step_done") - start
                        self.lines.add(line | {"start_to_first_step_s": round(seconds, 4), "round": turn})

    def busy(self):
        """Measures steps alternately on an idle machine and while another process keeps one core busy."""
        core = sorted(os.sched_getaffinity(0))[0]
        spin = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"]
        for name in ("mlp-sin", "mnist-cnn", "addition", "char-gpt"):
            if name not in self.args.only:
                continue
            for turn in range(self.args.rounds):
                for taken in (False, True):
                    other = subprocess.Popen(spin) if taken else None
                    try:
                        more = {"measure": "busy core", "busy": taken, "round": turn}
                        self.measure(self.ours("--device", "cpu", "--only", name, "--modes", "step"), **more)
                        if self.peers.torch and not self.peers.gpu:
                            self.measure(self.peers.script("torch_steps.py", "--only", name, "--modes", "fused",
                                                           "--seconds", str(self.args.seconds)), **more)
                    finally:
                        if other:
                            other.kill()
                            other.wait()

    def scaling(self):
        for turn in range(self.args.rounds):
            for device in self.args.devices:
                for extra, more in self.counts(device):
                    self.measure(self.ours("--device", device, "--scaling", *extra), round=turn, **more)

    def gemm(self):
        for turn in range(self.args.rounds):
            self.measure(self.ours("--device", ",".join(self.args.devices), "--only", "gemm"), round=turn)
            if self.peers.torch:
                self.measure(self.peers.script("torch_gemm.py"), round=turn)

    def memory(self):
        """Measures memory-bound launches and copies, ours and PyTorch's."""
        for turn in range(self.args.rounds):
            for device in self.args.devices:
                for extra, more in self.counts(device):
                    self.measure(self.ours("--device", device, "--only", "memory", *extra), round=turn, **more)
            if self.peers.torch:
                for extra, more in self.counts("webgpu" if self.peers.gpu else "cpu"):
                    self.measure(self.peers.script("torch_memory.py", *extra), round=turn, **more)

    def matrix_units(self, option, kinds):
        """Measures steps on a GPU with an option of tg_bench, and PyTorch's with each of some options."""
        for name in self.args.only if "webgpu" in self.args.devices else []:
            for turn in range(self.args.rounds if name in MIXED else 0):
                for line in lines_of(self.ours("--device", "webgpu", "--only", name, option)):
                    self.lines.add(line | {"round": turn})
                    if self.peers.torch and self.peers.gpu and line["mode"] == "run":
                        for kind in kinds:
                            self.measure(self.peers.script(
                                "torch_steps.py", "--only", name, *kind, "--modes", MIXED_MODES[name == "mamba-130m"],
                                "--seconds", str(self.args.seconds)), round=turn, workload=line["workload"])

    def mixed(self):
        """Measures steps in mixed precision on a GPU, and PyTorch's on the same tensor cores: in bf16,
        and f32 with products in TF32."""
        self.matrix_units("--mixed-precision", (["--bf16"], ["--tf32"]))

    def f16x3(self):
        """Measures steps in f32 whose products are three products of f16, and PyTorch's in f32, with
        products in f32 and in TF32."""
        self.matrix_units("--f16x3", ([], ["--tf32"]))

    def lm(self):
        """Measures language models: steps and peers, cost by length with the scans of each,
        quantized weights, and generation. On the CPU, also the memory of the process."""
        self.args.only = ["mamba1"] + ["mamba-130m"] * ("webgpu" in self.args.devices)
        self.extra = ["--scans"]
        self.steps()
        for turn in range(self.args.rounds):
            for device in self.args.devices:
                for extra, more in self.counts(device):
                    self.measure(self.ours("--device", device, "--scaling", "--only", "mamba1", *extra), round=turn,
                                 **more)
        self.extra = []
        for turn in range(self.args.rounds if "cpu" in self.args.devices else 0):
            for length in LENGTHS:
                self.measure(self.ours("--device", "cpu", "--probe", "mamba1", "--batch", 1, "--length", length),
                             round=turn)
        for turn in range(self.args.rounds):
            for device in self.args.devices:
                self.measure(self.ours("--device", device, "--only", "packed,serve,decode"), round=turn)

    def distributed(self):
        """Measures training on several ranks over one, ours and PyTorch's with NCCL. Each rank has a
        GPU of its own."""
        for name in self.args.only:
            for turn in range(self.args.rounds):
                for device in self.args.devices:
                    self.measure(self.ours("--device", device, "--only", name, "--ranks", self.args.ranks), round=turn)
                if self.peers.torch:
                    self.measure(self.peers.script("torch_ddp.py", "--only", name, "--ranks", str(self.args.ranks),
                                                   "--seconds", str(self.args.seconds)), round=turn)

    def inference(self):
        """Measures generation with quantized weights, ours and llama.cpp's. On the CPU, also calls of
        classifiers, ours and onnxruntime's. All read the same model files."""
        with tempfile.TemporaryDirectory() as folder:
            written = subprocess.run([self.program, "--write-models", folder], capture_output=True, text=True)
            if written.returncode != 0:
                print(f"bench: cannot write the models: {written.stderr[-2000:]}", file=sys.stderr)
                return
            models, seconds = ["--models", folder], ["--seconds", str(self.args.seconds)]
            for turn in range(self.args.rounds):
                if "webgpu" in self.args.devices:
                    self.generation_on_gpu(models, turn)
                for extra, more in self.counts("cpu") if "cpu" in self.args.devices else ():
                    for weights in INFERRED:
                        self.measure(self.ours("--device", "cpu", "--only", "generation", "--weights", weights, *models,
                                               *extra), round=turn, **more)
                        if self.peers.llama_cpp:
                            self.measure(self.peers.script("llama_cpp_generation.py", folder, "--weights", weights,
                                                           *extra, *seconds), round=turn, **more)
                    self.measure(self.ours("--device", "cpu", "--only", "latency", *extra), round=turn, **more)
                    if self.peers.onnxruntime:
                        self.measure(self.peers.script("onnxruntime_latency.py", folder, *extra, *seconds), round=turn,
                                     **more)

    def generation_on_gpu(self, models, turn):
        for weights in INFERRED:
            self.measure(self.ours("--device", "webgpu", "--only", "generation", "--weights", weights, *models),
                         round=turn)
            for batch in ("1", "64") if self.args.llama_vulkan else ():
                self.measure(self.peers.script("llama_cpp_generation.py", models[1], "--weights", weights, "--batch", batch,
                                               "--seconds", str(self.args.seconds)),
                             {"LLAMA_CPP_LIBRARIES": str(self.args.llama_vulkan)}, round=turn)

    def sizes(self):
        if (self.args.build / "examples" / "mlp_sin").exists():
            self.measure([sys.executable, "-B", BENCH / "footprint.py", "--build", self.args.build])


def machine():
    """Returns the processor's name and the number of cores that this process may use."""
    name = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{len(os.sched_getaffinity(0))} cores of {name}, {platform.system()} {platform.release()}"


def own_command(words):
    """Returns the command line without the machine's paths to the build, Python and output."""
    kept, words = [], iter(words)
    for word in words:
        name, _, value = word.partition("=")
        if name in ("--build", "--peers", "--out"):
            if not value:
                next(words)
            kept += ["--peers"] if name == "--peers" else []
        else:
            kept.append(word)
    return " ".join(["./dev bench", *kept])


def provenance(args, peers):
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {"run": {"date": datetime.date.today().isoformat(), "command": own_command(sys.argv[1:]),
                    "rounds": args.rounds,
                    "machine": machine(), "commit": commit.stdout.strip() or "unknown",
                    "versions": peers.versions}}


def parse():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build" / "release")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has PyTorch, JAX, xllamacpp or onnxruntime")
    parser.add_argument("what", nargs="?", choices=["lm"], help="only language models, as with --parts lm")
    parser.add_argument("--parts", default=",".join(PARTS[:-3]), help=f"subset of {', '.join(PARTS)}")
    parser.add_argument("--only", default=",".join(STEPS), help=f"subset of {', '.join(STEPS + FOR_GPUS)}")
    parser.add_argument("--device", default="", help="cpu, webgpu (default: webgpu if there is a GPU, else cpu)")
    parser.add_argument("--allow-software", action="store_true", help="let webgpu use a software rasterizer")
    parser.add_argument("--threads", default="1" if cores == 1 else f"1,{cores}", help="threads of the cpu device")
    parser.add_argument("--modes", default="", help="modes of PyTorch (default: all)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks of the part distributed")
    parser.add_argument("--llama-vulkan", type=pathlib.Path, metavar="FOLDER",
                        help="shared libraries of llama.cpp with Vulkan, for the part inference on webgpu; with --peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="time for each measurement")
    parser.add_argument("--out", type=pathlib.Path, help="file for the JSON lines")
    args = parser.parse_args()
    args.parts = args.what or args.parts
    for name, known in (("parts", PARTS), ("only", STEPS + FOR_GPUS)):
        words = getattr(args, name).split(",")
        wrong = [word for word in words if word not in known]
        if wrong:
            parser.error(f"--{name}: unknown '{wrong[0]}'; available: {', '.join(known)}")
        setattr(args, name, words)
    if args.llama_vulkan and not args.peers:
        parser.error("--llama-vulkan needs --peers, a Python that has numpy")
    args.threads = [int(count) for count in args.threads.split(",")]
    return args


def default_devices(program):
    """Returns the devices that `auto` would select, as tg_bench does."""
    tool = program.parent / "tg"
    done = subprocess.run([tool, "devices", "--json"], capture_output=True, text=True) if tool.exists() else None
    if done is None or done.returncode != 0:
        return ["cpu"]
    return [device["kind"] for device in json.loads(done.stdout)["devices"] if device["auto"]]


def main():
    args = parse()
    args.devices = args.device.split(",") if args.device else default_devices(args.build / "tg_bench")
    if args.devices == ["cpu"] and (large := [name for name in args.only if name in FOR_GPUS]):
        sys.exit(f"bench: {large[0]} needs a GPU; --device is cpu")
    if args.devices == ["cpu"]:  # hide a GPU from the peers too
        os.environ.update(CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu")
    peers = Peers(args.peers, args.build, args.threads)
    if args.peers and not peers.versions:
        sys.exit(f"bench: {args.peers} has no peer: PyTorch, JAX with optax, xllamacpp or onnxruntime")
    gpu = ["eager", "fused", "compile", "cuda-graph", "compile-cuda-graph", "mamba-ssm", "mamba-ssm-cuda-graph"]
    args.modes = {"torch": args.modes.split(",") if args.modes else gpu if peers.gpu else gpu[:3],
                  "jax": ["jit", "scan"]}
    lines = Lines(args.out)
    lines.add(provenance(args, peers))
    bench = Bench(args, peers, lines)
    for part in args.parts:
        getattr(bench, part)()
    print("\n" + tables.markdown(lines.all))


if __name__ == "__main__":
    main()
