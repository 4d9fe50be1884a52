#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every NAME.onnx of a folder in onnxruntime on the inputs of each NAME.NUMBER.safetensors.

Such a file holds tensors "in/NAME" and "out/NAME", which are all inputs and outputs of the model
with their shapes and types, and "init/NAME", which are some of its initializers. Integers must be
equal, and floats nearly equal. Sizes that differ between files must be dynamic in the model.
Dynamic sizes that are equal in each file must have the same name. All other sizes must be numbers.
States (inputs NAME with outputs NAME.next) may be missing in the files: they start as zeros and are
passed from case to case. Prints a line for each difference, and finally the number of models and
files. Exits with 1 if there was a difference.
"""

import json
import pathlib
import struct
import sys

import numpy
import onnx
import onnxruntime

DTYPES = {"F16": numpy.float16, "F32": numpy.float32, "I32": numpy.int32, "U32": numpy.uint32, "BOOL": numpy.bool_}

NEXT = ".next"


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


def size_of(dimension):
    """Returns a number, or a name; "" if a size is dynamic and has no name."""
    return dimension.dim_value if dimension.HasField("dim_value") else dimension.dim_param


def signature(values):
    """Returns the types and sizes of a model's inputs or outputs, by name."""
    types = [(v.name, v.type.tensor_type) for v in values]
    return {name: (onnx.helper.tensor_dtype_to_np_dtype(t.elem_type),
                   tuple(size_of(d) for d in t.shape.dim)) for name, t in types}


def states_of(graph, cases):
    """Returns the names of the states that the cases leave out."""
    inputs = {value.name for value in graph.input} - set(cases[0]["in"])
    return {value.name[:-len(NEXT)] for value in graph.output
            if value.name.endswith(NEXT) and value.name[:-len(NEXT)] in inputs}


def check_signature(kind, values, cases, sizes_by_name, states):
    """Checks against the tensors of all cases. `sizes_by_name`: the value of each name in each case."""
    given = {name: type for name, type in signature(values).items()
             if (name if kind == "in" else name.removesuffix(NEXT)) not in states}
    wanted = {name: v.dtype for name, v in cases[0][kind].items()}
    if {name: dtype for name, (dtype, _) in given.items()} != wanted:
        yield f"{kind}puts are {given}, should be {wanted}"
        return
    for name, (_, sizes) in given.items():
        by_axis = list(zip(*(case[kind][name].shape for case in cases)))
        if len(by_axis) != len(sizes):
            yield f"{name} is {sizes}, should have {len(by_axis)} axes"
            continue
        for size, wanted_sizes in zip(sizes, by_axis):
            fixed = len(set(wanted_sizes)) == 1
            right = size == wanted_sizes[0] if fixed else isinstance(size, str)
            if right and not fixed and size:
                right = sizes_by_name.setdefault(size, wanted_sizes) == wanted_sizes
                right = right and list(sizes_by_name.values()).count(wanted_sizes) == 1
            if not right:
                yield f"{name} is {sizes}, should be {by_axis} case by case"
                break


def different(got, want, tolerance):
    if want.dtype != numpy.float32:
        return got != want
    with numpy.errstate(invalid="ignore"):
        near = numpy.abs(got - want) <= tolerance * (1 + numpy.abs(want))
    return ~(near | (got == want) | (numpy.isnan(got) & numpy.isnan(want)))


def check_case(session, tensors, tolerance, states):
    """Compares the outputs of a case. `states` maps names to values, which are updated."""
    names = [value.name for value in session.get_outputs()]
    for name, got in zip(names, session.run(names, tensors["in"] | states)):
        if name.removesuffix(NEXT) in states and name not in tensors["out"]:
            states[name.removesuffix(NEXT)] = got
            continue
        want = tensors["out"][name]
        if got.shape != want.shape or got.dtype != want.dtype:
            yield f"{name} is {got.dtype}{got.shape}, should be {want.dtype}{want.shape}"
            continue
        for at in numpy.argwhere(different(got, want, tolerance))[:3]:
            at = tuple(at)
            yield f"{name}{list(map(int, at))} is {got[at]}, should be {want[at]}"


def check(path, cases, tolerance):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    sizes_by_name, names = {}, states_of(model.graph, cases)
    for kind, values in (("in", model.graph.input), ("out", model.graph.output)):
        problems = list(check_signature(kind, values, cases, sizes_by_name, names))
        yield from problems
        if problems:
            return
    initializers = {each.name: each for each in model.graph.initializer}
    for name, want in cases[0]["init"].items():
        if name not in initializers:
            yield f"there is no initializer {name}"
        elif not numpy.array_equal(onnx.numpy_helper.to_array(initializers[name]), want):
            yield f"initializer {name} differs"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    states = {value.name: numpy.zeros([d.dim_value for d in value.type.tensor_type.shape.dim],
                                      onnx.helper.tensor_dtype_to_np_dtype(
                                          value.type.tensor_type.elem_type))
              for value in model.graph.input if value.name in names}
    for number, tensors in enumerate(cases):
        try:
            for problem in check_case(session, tensors, tolerance, states):
                yield f"case {number}: {problem}"
        except Exception as error:  # of onnxruntime; print its message
            yield f"case {number}: {type(error).__name__}: {error}"


def main():
    folder, tolerance = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    failed, count, models = False, 0, sorted(folder.glob("*.onnx"))
    for path in models:
        problems = []
        try:
            files = []
            while (file := path.with_suffix(f".{len(files)}.safetensors")).exists():
                files.append(file)
            count += len(files)
            problems += check(path, [read_tensors(file) for file in files], tolerance)
        except Exception as error:  # of the checker or of onnxruntime; print its message
            problems.append(f"{type(error).__name__}: {error}")
        for problem in problems:
            failed = True
            print(f"{path.stem}: {problem}")
    print(f"{len(models)} models, {count} cases")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
