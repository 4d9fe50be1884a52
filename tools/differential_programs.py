# SPDX-License-Identifier: MIT
"""Random programs of public ops, and what PyTorch computes for them (tools/differential.py)."""
import collections
import math
import random
import sys
import types
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "web/tests"), str(ROOT / "web"), str(ROOT / "tools")]
from cases import CASES, I, T, U, default_argument  # noqa: E402
from differential_rules import DIFFERENCES, NO_EDGES, RULES  # noqa: E402
from generate import by_name, enumerator  # noqa: E402

F32 = np.float32
EPS = 2.0 ** -24
SMALLEST = 2.0 ** -126  # smaller numbers are zeros in a run
# WGSL lets a device be off by so much, whatever the value.
ABSOLUTE = {"sin": 2.0 ** -11, "cos": 2.0 ** -11, "tan": 2.0 ** -10}
LARGEST_VALUE = 1e4  # of what further calls read
EDGES = [0.0, -0.0, 1e-40, -1e-40, 1.2e-38, 3e-20, 1.0, -1.0, 0.5, 88.8, -88.8, -104.0, 2.0 ** 24,
         1e18, -1e19, 3e38, -3.4e38, math.inf, -math.inf, math.nan]
LARGEST_EDGE = 1e18  # of ops that sum or square: their own terms may overflow, or underflow
OTHER_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33)


class Ref(int):
    """The number of a tensor of a program."""


Call = collections.namedtuple("Call", "name arguments overload")
Program = collections.namedtuple("Program", "inputs calls")


class Rejected(Exception):
    """What a rule or PyTorch refuses."""


def default_of(text, kind, api):
    """A default value of C++."""
    if text in ("std::nullopt", "{}"):
        if kind["kind"] == "struct":
            return options_of({}, kind, api)
        return [] if kind["kind"] in ("axes", "list") else None
    if kind["kind"] == "optional":
        return default_of(text, kind["of"], api)
    if kind["kind"] == "enum":
        return enumerator(text.split("::")[-1]) if "::" in text else text
    if kind["kind"] == "bool":
        return text == "true"
    if "numeric_limits" in text:
        return float(np.finfo(F32).max if "max" in text else np.finfo(F32).min)
    if text.startswith("0x1p"):
        return 2.0 ** int(text[4:])
    if kind["kind"] in ("size2d", "int"):
        return int(text.strip("{}").split(",")[0] or 0)
    return float(text)


def options_of(given, kind, api):
    """A struct of options as an object."""
    fields = {}
    for field in api["structs"][kind["name"]]["fields"]:
        if field["name"] in given:
            fields[field["name"]] = given[field["name"]]
        else:
            text = field["default"]
            optional = field["type"]["kind"] == "optional"
            fields[field["name"]] = None if optional and text in (None, "std::nullopt") else \
                default_of(text or "{}", field["type"], api)
    return types.SimpleNamespace(**fields)


class Maker:
    """Makes the program of a seed."""

    def __init__(self, api, seed, edges):
        self.api, self.draw = api, random.Random(seed)
        self.ops = by_name(api["functions"])
        self.inputs, self.calls, self.values = [], [], []  # a value is a tensor of double, or None
        self.edges, self.pointwise = edges, False

    def run(self):
        """The program, and its values in double precision."""
        draw = self.draw
        wanted = 1 if self.edges else draw.choice((1, 1, 2, 3, 4, 6))
        made = 0
        for _ in range(12):
            if made == wanted:
                break
            name = draw.choice(sorted(set(RULES) - set(NO_EDGES) if self.edges else RULES))
            before = len(self.inputs), len(self.calls), len(self.values)
            try:
                self.call_of(name)
                made += 1
            except (Rejected, RuntimeError, ValueError, IndexError, TypeError, AttributeError,
                    NotImplementedError, KeyError):
                if self.inputs[before[0]:]:
                    self.rewind(before)
                else:
                    del self.calls[before[1]:], self.values[before[2]:]
        return Program([each.copy() for each in self.inputs], list(self.calls))

    def rewind(self, before):
        """Drops what a refused call made. Inputs are numbered before all calls, so the rest moves."""
        inputs, calls, values = before
        dropped = len(self.inputs) - inputs
        del self.calls[calls:]
        del self.values[values + dropped:]
        del self.values[inputs:inputs + dropped]
        del self.inputs[inputs:]
        self.calls = [renumbered(c, lambda r: Ref(r - dropped if r >= inputs else r))
                      for c in self.calls]

    def call_of(self, name):
        """Adds a call with random arguments."""
        draw = self.draw
        overloads = self.ops[name]
        given = CASES.get(name)
        if given is None:
            given = [[default_argument(p["type"])
                      for p in overloads[0]["parameters"] if p["default"] is None]]
        arguments = draw.choice(given)
        if self.edges:
            sizes = {}
        else:
            sizes = {} if draw.random() < 0.4 else \
                {n: draw.choice(OTHER_SIZES) for n in range(1, 12)}
        fitting = self.overload(overloads, arguments)
        full = []
        pending = []
        for k, parameter in enumerate(fitting["parameters"]):
            if k < len(arguments):
                full.append(self.argument(arguments[k], sizes, pending, parameter["type"]))
            else:
                full.append(self.optional(parameter, pending))
        # Inputs first: their numbers come before those of all calls.
        self.pointwise = all(p["type"]["kind"] == "operand" for p in fitting["parameters"])
        self.add_inputs(pending)
        full = [self.settled(each, pending) for each in full]
        self.add_call(Call(name, full, fitting))

    def overload(self, overloads, arguments):
        """The overload that takes these arguments, as far as cases differ."""
        for each in overloads:
            parameters = each["parameters"]
            required = sum(p["default"] is None for p in parameters)
            if not required <= len(arguments) <= len(parameters):
                continue
            kinds = [p["type"]["kind"] for p in parameters]
            if all(self.fits(a, k) for a, k in zip(arguments, kinds)):
                return each
        raise Rejected(arguments)

    @staticmethod
    def fits(argument, kind):
        """Whether an argument can be of a kind."""
        if isinstance(argument, (T, I, U, tuple)):
            return kind in ("tensor", "operand", "optional")
        if isinstance(argument, dict):
            return kind == "struct"
        if isinstance(argument, list):
            return kind in ("list", "shape", "axes", "size2d")
        if isinstance(argument, str):
            return kind in ("string", "enum")
        return kind in ("int", "float", "operand", "optional", "axes", "size2d", "bool")

    def argument(self, value, sizes, pending, kind):
        """An argument of a case with other sizes; tensors wait in `pending` for their numbers."""
        if isinstance(value, (T, I, U)):
            pending.append((type(value)(sizes.get(n, n) for n in value)))
            return ("pending", len(pending) - 1)
        if isinstance(value, tuple):
            return ("call", value[0], [self.argument(each, sizes, pending, kind)
                                       for each in value[1:]])
        if isinstance(value, dict):
            given = {key: self.argument(each, sizes, pending, kind) for key, each in value.items()}
            for field in self.api["structs"][kind["name"]]["fields"]:
                if field["name"] not in given and self.draw.random() < 0.3:
                    self.drawn_field(field, given)
            return ("options", given, kind)
        if isinstance(value, list):
            return [self.argument(each, sizes, pending, kind.get("of", kind)) for each in value]
        return value

    def drawn_field(self, field, given):
        """Another value for an option that any program may have."""
        if field["type"]["kind"] in ("bool", "enum") and field["name"] != "enable_gqa":
            given[field["name"]] = self.drawn(field["type"])

    def drawn(self, kind):
        """A value of a bool, an enum or a number."""
        if kind["kind"] == "bool":
            return self.draw.random() < 0.5
        if kind["kind"] == "enum":
            return enumerator(self.draw.choice(self.api["enums"][kind["name"]]["values"])["name"])
        return round(self.draw.uniform(0.05, 1.5), 3)

    def optional(self, parameter, pending):
        """The value of a parameter with a default: mostly that."""
        kind, name = parameter["type"], parameter["name"]
        if kind["kind"] == "struct":
            return self.argument({}, {}, pending, kind)
        if self.draw.random() < 0.5:
            if name in ("axis", "axes", "a", "b") and kind["kind"] in ("int", "axes", "optional"):
                return self.draw.randint(-3, 2)
            if name in ("k", "offset", "correction") and kind["kind"] == "int":
                return self.draw.randint(-1, 2) if name != "correction" else self.draw.randint(0, 1)
            if kind["kind"] in ("bool", "float") or \
                    kind["kind"] == "enum" and kind["name"] != "DType":
                return self.drawn(kind)
        return default_of(parameter["default"], kind, self.api)

    def add_inputs(self, pending):
        """Gives each waiting tensor a value: an earlier result that fits, or an input."""
        new = []
        for k, wanted in enumerate(pending):
            ready = [r for r, v in enumerate(self.values)
                     if v is not None and isinstance(wanted, T) and v.dtype == torch.float64
                     and list(v.shape) == list(wanted) and self.readable(v)]
            if ready and not self.edges and self.draw.random() < 0.8:
                pending[k] = ("value", max(self.draw.choice(ready), self.draw.choice(ready)))
            else:
                new.append(k)
        count = len(self.inputs)
        for k, each in enumerate(pending):
            if isinstance(each, tuple) and each[1] >= count:
                pending[k] = ("value", each[1] + len(new))
        self.calls = [renumbered(c, lambda r: Ref(r + len(new) if r >= count else r))
                      for c in self.calls]
        for at, k in enumerate(new):
            array = self.drawn_input(pending[k])
            self.inputs.append(array)
            self.values.insert(count + at, as_torch(array, torch.float64))
            pending[k] = ("value", count + at)

    @staticmethod
    def readable(value):
        """Whether further calls may read a value."""
        return value.numel() == 0 or \
            bool(torch.isfinite(value).all()) and float(value.abs().max()) < LARGEST_VALUE

    def drawn_input(self, wanted):
        """Random elements."""
        count = math.prod(wanted)
        if isinstance(wanted, T):
            if self.edges:
                edges = EDGES if self.pointwise else \
                    [x for x in EDGES if x == 0 or not math.isfinite(x) or
                     1 / LARGEST_EDGE <= abs(x) <= LARGEST_EDGE]
                numbers = [self.draw.choice(edges) if self.draw.random() < 0.6
                           else self.draw.uniform(-3, 3) for _ in range(count)]
            else:
                scale = self.draw.choice((0.5, 1, 1, 1, 3))
                tie = self.draw.random() < 0.1
                numbers = [self.draw.uniform(-1, 1) * scale for _ in range(count)]
                if tie:  # few different numbers, 0 among them
                    numbers = [round(x * 2 / scale) / 2 for x in numbers]
            return np.array(numbers, F32).reshape(wanted)
        whole = np.int32 if isinstance(wanted, I) else np.uint32
        return np.array([self.draw.randint(0, 1) for _ in range(count)], whole).reshape(wanted)

    def settled(self, value, pending):
        """An argument with the numbers of its tensors; inner calls are added."""
        if isinstance(value, tuple) and value[0] == "pending":
            return Ref(pending[value[1]][1])
        if isinstance(value, tuple) and value[0] == "call":
            inner = [self.settled(each, pending) for each in value[2]]
            overload = self.overload(self.ops[value[1]],
                                     [T() if isinstance(a, Ref) else a for a in inner])
            return self.add_call(Call(value[1], inner, overload))
        if isinstance(value, tuple) and value[0] == "options":
            given = {key: self.settled(each, pending) for key, each in value[1].items()}
            return ("options", given, value[2])
        if isinstance(value, list):
            return [self.settled(each, pending) for each in value]
        return value

    def add_call(self, call):
        """Adds a call that PyTorch takes; returns its first result."""
        results = results_of(call, self.values, self.api)
        if not results:
            raise Rejected(call.name)
        self.calls.append(call)
        self.values += results
        return Ref(len(self.values) - len(results))


def renumbered(call, number):
    """A call with other numbers of tensors."""
    def moved(value):
        if isinstance(value, Ref):
            return number(value)
        if isinstance(value, list):
            return [moved(each) for each in value]
        if isinstance(value, tuple):
            return ("options", {k: moved(v) for k, v in value[1].items()}, value[2])
        return value
    return Call(call.name, [moved(each) for each in call.arguments], call.overload)


def refs_in(value):
    """The tensors that an argument names."""
    if isinstance(value, Ref):
        return [value]
    if isinstance(value, list):
        return [r for each in value for r in refs_in(each)]
    if isinstance(value, tuple):
        return [r for each in value[1].values() for r in refs_in(each)]
    return []


# ---- PyTorch -------------------------------------------------------------------------------------

def as_torch(array, floats):
    """An input as PyTorch computes with it: unsigned integers as 64-bit ones."""
    if array.dtype == F32:
        return torch.from_numpy(array).to(floats)
    return torch.from_numpy(array.astype(np.int64 if array.dtype == np.uint32 else np.int32))


class Noise:
    """Rounding errors of a device, drawn by a seed."""

    def __init__(self, seed, ulps):
        self.generator, self.ulps = torch.Generator().manual_seed(seed), ulps

    def moved(self, x, terms=1, absolute=0.0):
        """`x` with each element off by a rounding error."""
        if not x.is_floating_point() or x.numel() == 0:
            return x
        drawn = torch.rand(x.shape, generator=self.generator, dtype=x.dtype) * 2 - 1
        size = EPS * (self.ulps + math.sqrt(terms))
        moved = x * (1 + drawn * size) + drawn * (SMALLEST + absolute)
        return torch.where(torch.isfinite(x.detach()), moved, x)


def results_of(call, values, api, noise=None):
    """The results of a call as a flat list. Throws what PyTorch throws."""
    floats = next((v.dtype for v in values if v is not None and v.is_floating_point()),
                  torch.float64)

    def read(value, kind):
        if isinstance(value, Ref):
            x = values[value]
            if x is None:
                raise Rejected(call.name)
            return noise.moved(x) if noise else x
        if isinstance(value, tuple):
            return options_of({k: read(v, {"kind": ""}) for k, v in value[1].items()}, value[2], api)
        if isinstance(value, list):
            return [read(each, kind.get("of", {"kind": ""})) for each in value]
        if kind["kind"] == "operand":
            tensors = [values[r] for r in refs_in(list(call.arguments)) if values[r] is not None]
            whole = bool(tensors) and not any(t.is_floating_point() for t in tensors) and \
                float(value).is_integer()
            return torch.tensor(value, dtype=tensors[0].dtype if whole else floats)
        return value

    before = torch.get_default_dtype()
    torch.set_default_dtype(floats)
    try:
        arguments = [read(each, p["type"])
                     for each, p in zip(call.arguments, call.overload["parameters"])]
        result = RULES[call.name](*arguments)
    finally:
        torch.set_default_dtype(before)
    results = result if isinstance(result, list) else [result]
    if noise:
        read_elements = sum(values[r].numel() for r in refs_in(list(call.arguments)))
        if call.name in DIFFERENCES:
            results = [results[0] + (noise.moved(arguments[0]) - arguments[0]).detach()]
        results = [each if each is None else
                   noise.moved(each, max(1, read_elements / max(1, each.numel())),
                               ABSOLUTE.get(call.name, 0.0) if noise.ulps > 4 else 0.0)
                   for each in results]
    return results


def evaluate(program, api, floats=torch.float64, noise=None, weights=None, flushed=False):
    """All values of a program, and gradients of the last one's weighted sum by each f32 input."""
    values = []
    for array in program.inputs:
        if flushed and array.dtype == F32:
            array = np.where(np.abs(array) < SMALLEST, array * F32(0), array)
        x = as_torch(array, floats)
        values.append(x.requires_grad_(weights is not None) if x.is_floating_point() else x)
    for call in program.calls:
        values += results_of(call, values, api, noise)
    gradients = None
    if weights is not None:
        last = values[-1]
        wrt = [v for v, a in zip(values, program.inputs) if a.dtype == F32]
        loss = (last * weights.reshape(last.shape)).sum()
        if loss.requires_grad:
            gradients = torch.autograd.grad(loss, wrt, allow_unused=True)
            gradients = [torch.zeros_like(v) if g is None else g for g, v in zip(gradients, wrt)]
        else:
            gradients = [torch.zeros_like(v) for v in wrt]
        if noise:
            gradients = [noise.moved(g) for g in gradients]
    return [None if v is None else v.detach() for v in values], gradients
