#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every NAME.onnx of a folder in onnxruntime on the inputs of NAME.safetensors.

That file holds tensors "in/NAME" and "out/NAME": all of the model's inputs and outputs, by their
names, with their shapes and types; and "init/NAME", some of its initializers. Integers must be equal, floats nearly. Prints a line for each
difference, and at last how many models there were; exits with 1 if there was a difference.
"""

import json
import pathlib
import struct
import sys

import numpy
import onnx
import onnxruntime

DTYPES = {"F32": numpy.float32, "I32": numpy.int32, "U32": numpy.uint32, "BOOL": numpy.bool_}


def read_tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {"in": {}, "out": {}, "init": {}}
    for key, entry in json.loads(data[8:8 + size]).items():
        first, end = entry["data_offsets"]
        values = numpy.frombuffer(data[8 + size + first:8 + size + end], DTYPES[entry["dtype"]])
        kind, _, name = key.partition("/")
        tensors[kind][name] = values.reshape(entry["shape"])
    return tensors


def signature(values):
    """Names, types and shapes of a model's inputs or outputs."""
    types = [(v.name, v.type.tensor_type) for v in values]
    return {name: (onnx.helper.tensor_dtype_to_np_dtype(t.elem_type),
                   tuple(d.dim_value for d in t.shape.dim)) for name, t in types}


def different(got, want, tolerance):
    if want.dtype != numpy.float32:
        return got != want
    with numpy.errstate(invalid="ignore"):
        near = numpy.abs(got - want) <= tolerance * (1 + numpy.abs(want))
    return ~(near | (got == want) | (numpy.isnan(got) & numpy.isnan(want)))


def check(path, tolerance):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    tensors = read_tensors(path.with_suffix(".safetensors"))
    for kind, values in (("in", model.graph.input), ("out", model.graph.output)):
        given = {name: (v.dtype, v.shape) for name, v in tensors[kind].items()}
        if signature(values) != given:
            yield f"{kind}puts are {signature(values)}, should be {given}"
            return
    initializers = {each.name: each for each in model.graph.initializer}
    for name, want in tensors["init"].items():
        if name not in initializers:
            yield f"there is no initializer {name}"
        elif not numpy.array_equal(onnx.numpy_helper.to_array(initializers[name]), want):
            yield f"initializer {name} differs"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    for name, got in zip(names, session.run(names, tensors["in"])):
        want = tensors["out"][name]
        if got.shape != want.shape or got.dtype != want.dtype:
            yield f"{name} is {got.dtype}{got.shape}, should be {want.dtype}{want.shape}"
            continue
        for at in numpy.argwhere(different(got, want, tolerance))[:3]:
            at = tuple(at)
            yield f"{name}{list(map(int, at))} is {got[at]}, should be {want[at]}"


def main():
    folder, tolerance = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    failed, models = False, sorted(folder.glob("*.onnx"))
    for path in models:
        try:
            problems = list(check(path, tolerance))
        except Exception as error:  # of the checker, of onnxruntime: each in its own words
            problems = [f"{type(error).__name__}: {error}"]
        for problem in problems:
            failed = True
            print(f"{path.stem}: {problem}")
    print(f"{len(models)} models")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
