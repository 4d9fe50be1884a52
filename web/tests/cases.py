#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes one call of every op, for C++ (golden.cpp) and for JavaScript (golden.test.mjs).

    cases.py API.json CASES.inc CASES.json

API.json is the output of tools/describe_api.py. Most calls are made from the types of parameters.
CASES has those that need other arguments: tensors by their shapes, or `ints` of a shape. A case is
missing for no op: where the rule does not fit, golden.cpp or the test fails.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from generate import OPS_BY_HAND, by_name, camel, enumerator  # noqa: E402


class T(list):
    """A tensor of f32 of this shape."""


class I(list):
    """A tensor of i32 in [0, 2)."""


class U(list):
    """A tensor of u32 in [0, 2)."""


X = T([2, 4])
IMAGE, SIGNAL = T([1, 2, 5, 5]), T([1, 2, 6])
# Arguments by op; several lists for several overloads. A dict is a struct of options.
CASES = {
    "full": [[[2, 2], 3]], "zeros": [[[2]]], "ones": [[[2]]], "arange": [[5]],
    "iota": [[[2, 3], 1]], "constant": [[[1.5, -2, 3], [3]]], "eye": [[2, 3]],
    "linspace": [[-1, 1, 5]], "one_hot": [[I([3]), 4]], "meshgrid": [[[T([2]), T([3])]]],
    "gather": [[X, 1, I([2, 2])]], "embedding": [[I([3]), T([2, 4])]],
    "scatter_add": [[X, 0, I([3, 4]), T([3, 4])]], "index_select": [[X, 1, I([3])]],
    "take_along_dim": [[X, I([2, 1]), 1]], "scatter": [[X, 0, I([2, 4]), T([2, 4])]],
    "scatter_max": [[X, 0, I([3, 4]), T([3, 4])]], "scatter_min": [[X, 0, I([3, 4]), T([3, 4])]],
    "segment_softmax": [[X, I([2]), 2], [X, I([4]), 2, 1]], "print": [[X, "x"]],
    "index_add": [[X, 0, I([3]), T([3, 4])]],
    "index_update": [[X, 0, I([]), T([1, 4])], [X, -1, I([2, 1]), T([2, 2])]], "matmul": [[X, T([4, 3])]],
    "linear": [[X, T([3, 4]), T([3])], [X, T([3, 4])]], "einsum": [["ij,kj->ik", [X, T([3, 4])]]],
    "tensordot": [[X, T([2, 4])], [X, T([4, 3]), [1], [0]]], "outer": [[T([2]), T([3])]],
    "dot": [[T([3]), T([3])]], "concat": [[[X, X], 1]], "stack": [[[X, X]]],
    "pad": [[X, [1, 2], 7], [X, [1, 1], "reflect"]], "roll": [[X, [1], [1]]],
    "tile": [[X, [2, 1]]], "repeat": [[X, [2, 2]]], "repeat_interleave": [[X, 2, 1]],
    "unpack_bytes": [[U([2])]], "cast": [[X, "i32"]], "bitcast": [[X, "u32"]],
    "where": [[("gt", X, 0), X, X]], "masked_fill": [[X, ("gt", X, 0), -1]],
    "masked_softmax": [[X, ("gt", X, 0)]], "philox": [[U([4]), U([]), U([]), U([])]],
    "clamp": [[X, -0.5, 0.5], [X, X, T([1, 4])]], "bernoulli": [[[3], 0.5], [X]],
    "bitwise_and": [[I([3]), I([3])]], "bitwise_or": [[I([3]), I([3])]],
    "bitwise_xor": [[I([3]), I([3])]], "bitwise_not": [[I([3])]],
    "bitwise_left_shift": [[I([3]), I([3])]], "bitwise_right_shift": [[I([3]), I([3])]],
    "random_bits": [[[3]]], "rand": [[[3]]], "uniform": [[[3], -2, 2]], "randn": [[[3]]],
    "normal": [[[3], 1, 2]], "exponential": [[[3]]], "randint": [[[3], 0, 9]], "randperm": [[5]],
    "multinomial": [[("abs", X), 2]],
    "sample_tokens": [[X, ("sigmoid", T([2])), ("abs", T([2, 5]))]], "topk": [[X, 2]], "scalar": [["rate", 0.5]],
    "state": [["count", [2], 1]], "set_state": None, "capture": [["c", X]],
    "reshape": [[X, [-1]]], "permute": [[X, [1, 0]]], "broadcast_to": [[X, [3, 2, 4]]],
    "narrow": [[X, 1, 1, 2]], "flip": [[X, 0], [X, [0, 1]]], "unfold": [[X, 1, 2, 1]],
    "unsqueeze": [[X, 1]], "squeeze": [[T([2, 1]), 1]], "swapaxes": [[X, 0, 1]],
    "movedim": [[X, [0], [1]]], "expand": [[T([1, 4]), [2, -1]]],
    "split": [[X, 2, 1], [X, [1, 3], 1]], "chunk": [[X, 2, 1]], "norm": [[X, 3, 1]],
    "is_training": None, "layer_norm": [[X, T([4]), T([4])], [X, [2, 4]]],
    "rms_norm": [[X, T([4])]], "group_norm": [[IMAGE, 2, T([2]), T([2])]],
    "instance_norm": [[IMAGE]], "batch_statistics": [[IMAGE]],
    "batch_norm": [[IMAGE, T([2]), ("abs", T([2]))]], "prelu": [[X, T([1])]],
    "causal_mask": [[2, 3]], "rope": [[X, {"base": 100, "pairs": "interleaved"}]],
    "scaled_dot_product_attention":
        [[T([1, 3, 4]), T([1, 5, 4]), T([1, 5, 2]), {"causal": True, "scale": 0.5}]],
    "dropout": [[X, 0.5]], "dropout1d": [[SIGNAL, 0.5]], "dropout2d": [[IMAGE, 0.5]],
    "alpha_dropout": [[X, 0.5]], "poisson_nll_loss": [[X, ("abs", X), {"full": True}]],
    "gaussian_nll_loss": [[X, X, ("abs", X)]],
    "cross_entropy": [[X, I([2]), "sum"],
                      [X, I([2]), {"weight": T([4]), "label_smoothing": 0.1}]],
    "linear_cross_entropy": [[X, T([3, 4]), I([2]), {"bias": T([3])}]],
    "nll_loss": [[X, I([2])]], "binary_cross_entropy": [[("sigmoid", X), ("sigmoid", X)]],
    "cosine_embedding_loss": [[X, X, T([2])]], "kl_div": [[X, ("abs", X), "batchMean"]],
    "document_positions": [[I([1, 4])]],
    "causal_conv1d": [[T([1, 4, 3]), T([3, 2]), T([3])],
                      [T([1, 4, 3]), T([3, 2]), None, None, I([1, 4])]],
    "selective_scan": [[T([1, 4, 3]), T([1, 4, 3]), T([3, 2]), T([1, 4, 2]), T([1, 4, 2]),
                        {"delta_softplus": True, "D": T([3])}],
                       [T([1, 4, 3]), T([1, 4, 3]), T([3, 2]), T([1, 4, 2]), T([1, 4, 2]),
                        {"documents": I([1, 4])}]],
    "ssd": [[T([1, 4, 2, 3]), T([1, 4, 2]), T([2]), T([1, 4, 1, 2]), T([1, 4, 1, 2]),
             {"chunk": 2, "dt_softplus": True}]],
    "rotary_scan": [[T([1, 4, 2, 1, 3]), T([1, 4, 2]), T([1, 4, 2]), T([1, 4, 2]),
                     T([1, 4, 2, 1]), T([1, 4, 2, 1, 2]), T([1, 4, 2, 1, 2])]],
    "conv2d": [[IMAGE, T([4, 1, 3, 3]), T([4]),
                {"stride": [1, 2], "padding": 1, "groups": 2}]],
    "conv1d": [[SIGNAL, T([3, 2, 2])]],
    "conv_transpose2d": [[IMAGE, T([2, 3, 2, 2]), None, {"stride": 2, "output_padding": 1}]],
    "conv_transpose1d": [[SIGNAL, T([2, 3, 2])]],
    "max_pool2d": [[IMAGE, 2, {"stride": 1}]], "max_pool1d": [[SIGNAL, 2]],
    "avg_pool2d": [[IMAGE, [2, 3], {"padding": 1, "count_include_pad": False}]],
    "avg_pool1d": [[SIGNAL, 2, {"stride": 1}]], "adaptive_avg_pool2d": [[IMAGE, [2, 3]]],
    "adaptive_max_pool2d": [[IMAGE, 2]], "interpolate": [[IMAGE, 10, "bilinear", True]],
    "grad": [[("sum", ("square", X)), [X]]], "linear_recurrence": [[X, X, 1, T([2, 1])]],
}


def default_argument(kind):
    """An argument for a required parameter of a type."""
    name = kind["kind"]
    if name in ("tensor", "operand"):
        return X
    if name == "int":
        return 0
    if name == "float":
        return 0.5
    raise SystemExit(f"cases: no rule for a parameter of type {kind}")


class Case:
    """A call with its inputs."""

    def __init__(self, name, arguments):
        self.name, self.inputs = name, {}
        self.arguments = [self.named(each) for each in arguments]

    def named(self, value):
        """An argument as JSON: tensors are inputs."""
        if isinstance(value, (T, I, U)):
            dtype = {T: "f32", I: "i32", U: "u32"}[type(value)]
            key = f"in{len(self.inputs)}"
            self.inputs[key] = {"name": key, "shape": list(value), "dtype": dtype}
            return {"input": key}
        if isinstance(value, tuple):
            return {"call": value[0], "arguments": [self.named(each) for each in value[1:]]}
        if isinstance(value, list):
            return [self.named(each) for each in value]
        if isinstance(value, dict):
            return {"options": {key: self.named(each) for key, each in value.items()}}
        return value

    def cpp(self, value, kind, api):
        """An argument in C++."""
        if isinstance(value, dict) and "input" in value:
            return f'in["{value["input"]}"]'
        if isinstance(value, dict) and "call" in value:
            inner = ", ".join(self.cpp(each, {"kind": "float"}, api)
                              for each in value["arguments"])
            return f"tensorgrad::{value['call']}({inner})"
        if isinstance(value, dict):
            fields = api["structs"][kind["name"]]["fields"]
            given = [f".{f['name']} = {self.cpp(value['options'][f['name']], f['type'], api)}"
                     for f in fields if f["name"] in value["options"]]
            return f"{kind['name']}{{{', '.join(given)}}}"
        if value is None:
            return "std::nullopt"
        if isinstance(value, bool):
            return "true" if value else "false"
        while kind["kind"] == "optional":
            kind = kind["of"]
        if kind["kind"] == "enum":
            match = [v["name"] for v in api["enums"][kind["name"]]["values"]
                     if enumerator(v["name"]) == value]
            return f"{kind['name']}::{match[0]}"
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, list):
            inner = ", ".join(self.cpp(each, kind.get("of", {"kind": "int"}), api)
                              for each in value)
            if kind["kind"] == "list":
                of = kind["of"]
                text = {"tensor": "Tensor"}.get(of["kind"], of.get("cpp"))
                return f"std::vector<{text}>{{{inner}}}"
            return {"shape": "Shape", "axes": "Axes", "size2d": "Size2d"}[kind["kind"]] + \
                f"{{{inner}}}"
        return repr(value)

    def fits(self, function):
        """Whether an overload takes these arguments, as far as the cases need to know."""
        parameters = function["parameters"]
        required = sum(p["default"] is None for p in parameters)
        if not required <= len(self.arguments) <= len(parameters):
            return False
        for value, parameter in zip(self.arguments, parameters):
            kind = parameter["type"]["kind"]
            tensor = isinstance(value, dict) and "options" not in value
            if isinstance(value, list) != (kind in ("list", "shape", "axes", "size2d")) and \
                    not (kind in ("axes", "size2d") and isinstance(value, int)):
                return False
            if tensor != (kind in ("tensor", "operand", "optional") and tensor):
                return False
            if isinstance(value, str) != (kind in ("string", "enum")):
                return False
            if isinstance(value, dict) and "options" in value and kind != "struct":
                return False
            if isinstance(value, (int, float)) and kind not in \
                    ("int", "float", "operand", "optional", "axes", "size2d", "bool"):
                return False
        return True

    def cpp_case(self, overloads, label, api):
        """The case in C++."""
        fitting = [f for f in overloads if self.fits(f)]
        if not fitting:
            raise SystemExit(f"cases: no overload of {self.name} takes {self.arguments}")
        arguments = ", ".join(self.cpp(value, p["type"], api)
                              for value, p in zip(self.arguments, fitting[0]["parameters"]))
        inputs = ", ".join(
            f'{{"{i["name"]}", Shape{{{", ".join(map(str, i["shape"]))}}}, {i["dtype"]}}}'
            for i in self.inputs.values())
        return f'{{"{label}", {{{inputs}}}, []([[maybe_unused]] const Inputs& in) ' \
               f"{{ return outputs(tensorgrad::{self.name}({arguments})); }}}},"


def js(value):
    """An argument as the test reads it: names of options as JavaScript has them."""
    if isinstance(value, list):
        return [js(each) for each in value]
    if isinstance(value, dict) and "options" in value:
        return {"options": {camel(k): js(each) for k, each in value["options"].items()}}
    if isinstance(value, dict) and "call" in value:
        return {"call": camel(value["call"]), "arguments": js(value["arguments"])}
    return value


def main(api_path, inc_path, json_path):
    """Writes both files."""
    api = json.loads(Path(api_path).read_text(encoding="utf-8"))
    cpp, all_js = [], []
    for name, overloads in by_name(api["functions"]).items():
        if name in OPS_BY_HAND or CASES.get(name, ()) is None:
            continue
        given = CASES.get(name) or [[default_argument(p["type"])
                                     for p in overloads[0]["parameters"] if p["default"] is None]]
        for k, arguments in enumerate(given):
            label = camel(name) + (f"_{k + 1}" if k else "")
            case = Case(name, arguments)
            cpp.append(case.cpp_case(overloads, label, api))
            all_js.append({"label": label, "op": camel(name), "arguments": js(case.arguments),
                           "inputs": list(case.inputs.values())})
    Path(inc_path).write_text("\n".join(cpp) + "\n", encoding="utf-8")
    Path(json_path).write_text(json.dumps(all_js, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
