#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates the C++ dispatch and the TypeScript of the npm package.

    generate.py API.json CPP_FOLDER TYPESCRIPT_FOLDER

API.json is the output of tools/describe_api.py. An op, a layer, an option or an optimizer that is
added to the headers is in the package without another line. What cannot be generated is in the lists
below; this stops if a list and the headers disagree.
"""
import json
import re
import sys
from pathlib import Path

# Ops that take functions: web/bindings/callbacks.cpp and web/src/callbacks.ts.
OPS_BY_HAND = {"associative_scan", "checkpoint", "custom_gradient"}
# Headers of layers that only the full module has.
LANGUAGE_HEADERS = ("nn/language_model.h", "nn/mamba.h", "nn/mixture_of_experts.h", "nn/quantized.h")
# Fields that are functions or objects, which web/src/ turns into data. Each has a type in
# web/src/options.ts, for example CompileOptionsInitial, and a Type<> in web/bindings/convert.h.
FIELDS_BY_HAND = {
    ("CompileOptions", "initial"), ("FunctionOptions", "initial"), ("TrainerOptions", "initial"),
    ("ParamGroup", "rows"), ("RecoveryOptions", "on_recovery"), ("DeviceOptions", "opened"),
}
CALLBACK_FIELDS = {
    ("BpeTrainOptions", "on_progress"), ("lm::ScoreOptions", "on_progress"),
    ("lm::GenerateOptions", "on_text"),
}
# Functions that the engine, in a worker, cannot call, and threads, which it does not have.
FIELDS_LEFT_OUT = {
    ("RecoveryOptions", "dataset"), ("LoaderOptions", "workers"),
    ("CompileOptions", "progress"), ("FunctionOptions", "progress"),
    ("CompileOptions", "distributed"), ("CompileOptions", "shard_optimizer"),
    ("CompileOptions", "shard_parameters"),
    ("LoaderOptions", "num_shards"), ("LoaderOptions", "shard"),
}
# Ops whose results are never f32, and such fields of structs, for the types of TypeScript. The test
# of all ops holds this to what C++ returns.
RESULT_DTYPES = {
    **dict.fromkeys(("argmax", "argmin", "argsort", "categorical", "count_nonzero", "multinomial",
                     "randint", "randperm", "sample_tokens", ("ValuesAndIndices", "indices")), "'i32'"),
    **dict.fromkeys(("philox", "random_bits"), "'u32'"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
                     "bitwise_left_shift", "bitwise_right_shift"), "'i32' | 'u32'"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
                     "logical_not", "isnan", "isfinite", "isinf", "any", "all", "causal_mask"),
                    "'bool'"),
}
RESERVED = set("break case catch class const continue debugger default delete do else enum export "
               "extends false finally for function if import in instanceof new null return super "
               "switch this throw true try typeof var void while with yield let static await "
               "arguments eval".split())
OPTIMIZER_NAMES = str.lower


class Problem(Exception):
    """Something in the description that has no counterpart."""


def camel(name):
    """`ignore_index` as JavaScript writes it; a single capital, such as D, stays."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def safe(name):
    """A name for a variable of JavaScript."""
    return name + "_" if name in RESERVED else name


def enumerator(name):
    """`kBatchMean` is 'batchMean', `kF32` is 'f32'."""
    name = name[1:] if re.match(r"k[A-Z]", name) else name
    return name[0].lower() + name[1:]


def flat(name):
    """`nn::MultiheadAttention::Options` is MultiheadAttentionOptions."""
    return "".join(part for part in name.split("::") if part not in ("nn", "optim", "init", "lm"))


# ---- C++ ---------------------------------------------------------------------------------------

def cpp_type(kind):
    """The C++ type that an argument is read as."""
    name = kind["kind"]
    if name == "optional" and "cpp" not in kind:
        return f"std::optional<{cpp_type(kind['of'])}>"
    if name == "list":
        return f"std::vector<{cpp_type(kind['of'])}>"
    if name == "tuple":
        return f"std::pair<{', '.join(cpp_type(each) for each in kind['of'])}>"
    if name in ("struct", "enum"):
        return kind["name"]
    if name == "string":
        return "std::string"
    if name == "function":
        raise Problem(f"a parameter is a function: {kind['cpp']}")
    return kind["cpp"]


def cpp_default(default, kind):
    """The default value as an argument; `{}` says its type, an enumerator may leave out namespaces."""
    if default == "{}":
        return cpp_type(kind) + "{}"
    enum, _, enumerator_ = default.rpartition("::")
    full = cpp_type(kind)
    return f"{full}::{enumerator_}" if enum and full.endswith("::" + enum) else default


def cpp_arguments(parameters, first):
    """Reads of the arguments, from number `first` on."""
    reads = []
    for i, each in enumerate(parameters, first):
        default = "" if each["default"] is None else \
            ", " + cpp_default(each["default"], each["type"])
        reads.append(f'c.get<{cpp_type(each["type"])}>({i}, "{camel(each["name"])}"{default})')
    return reads


def cpp_signature(parameters):
    """For errors: "x, axis?"."""
    return ", ".join(camel(p["name"]) + ("" if p["default"] is None else "?") for p in parameters)


def cpp_overloads(overloads, expression, first=0):
    """The body that picks an overload by its arguments. `expression(function, reads)` calls it."""
    if len(overloads) == 1:
        only = overloads[0]
        return [f"c.limit({first + len(only['parameters'])});",
                expression(only, cpp_arguments(only["parameters"], first))]
    lines = []
    for each in overloads:
        types = ["std::size_t"] * first + [cpp_type(p["type"]) for p in each["parameters"]]
        required = first + sum(p["default"] is None for p in each["parameters"])
        lines.append(f"if (c.fits<{', '.join(types)}>({required})) {{")
        lines.append("  " + expression(each, cpp_arguments(each["parameters"], first)))
        if not expression(each, []).startswith("return"):
            lines.append("  return;")
        lines.append("}")
    known = ", ".join(f'"{cpp_signature(each["parameters"])}"' for each in overloads)
    return lines + [f"c.no_overload({{{known}}});"]


def by_name(functions):
    """Groups overloads, in the order of the headers."""
    groups = {}
    for each in functions:
        groups.setdefault(each["name"], []).append(each)
    return groups


def takes_function(function):
    """Whether a parameter is a function."""
    return any(p["type"]["kind"] == "function" for p in function["parameters"])


def cpp_ops(api):
    """The table of ops."""
    lines = []
    for name, overloads in by_name(api["functions"]).items():
        if any(takes_function(f) for f in overloads) != (name in OPS_BY_HAND):
            raise Problem(f"op '{name}' takes a function: add it to OPS_BY_HAND and write it")
        if name in OPS_BY_HAND:
            continue

        def expression(function, reads):
            location = ["c.location"] if function["location"] else []
            call = f"tensorgrad::{function['name']}({', '.join(reads + location)})"
            if function["result"]["kind"] == "void":
                return f"{call}; w.nothing();"
            return f"put(w, {call});"
        body = " ".join(cpp_overloads(overloads, expression))
        lines.append(f'{{"{camel(name)}", [](const Call& c, Writer& w) {{ {body} }}}},')
    missing = OPS_BY_HAND - {f["name"] for f in api["functions"]}
    if missing:
        raise Problem(f"OPS_BY_HAND names what is not an op: {', '.join(sorted(missing))}")
    return lines


def method_name(name):
    """The call operator of a layer is `forward` in JavaScript."""
    return "forward" if name == "operator()" else camel(name)


def layers_of(api, full):
    """The layers of the full module alone, or those of both."""
    return [each for each in api["layers"] if (each["header"] in LANGUAGE_HEADERS) == full]


def cpp_layer_calls(layers):
    """The table of what layers compute."""
    lines = []
    for layer in layers:
        for name, overloads in by_name(layer["methods"]).items():
            def expression(function, reads, layer=layer):
                # The operators of Identity take no location.
                location = ["c.location"] if function["location"] else []
                call = f"c.layer<{layer['name']}>()"
                call += "" if function["name"] == "operator()" else f".{function['name']}"
                return f"put(w, {call}({', '.join(reads + location)}));"
            body = " ".join(cpp_overloads(overloads, expression, 1))
            lines.append(f'{{"{flat(layer["name"])}.{method_name(name)}", '
                         f"[](const Call& c, Writer& w) {{ {body} }}}},")
    return lines


def cpp_layer_makers(layers):
    """The table of constructors of layers."""
    lines = []
    for layer in layers:
        def expression(function, reads, layer=layer):
            location = ["c.location"] if function["location"] else []
            arguments = ", ".join(reads + location)
            if function["aggregate"]:
                arguments = f"{layer['name']}{{{arguments}}}"
            return f"return make_layer<{layer['name']}>({arguments});"
        body = " ".join(cpp_overloads(layer["constructors"], expression))
        lines.append(f'{{"{flat(layer["name"])}", [](const Call& c) '
                     f"-> std::shared_ptr<const AnyLayer> {{ {body} }}}},")
    return lines


def cpp_makers(functions, prefix):
    """A table of functions that make a value, such as schedules."""
    lines = []
    for name, overloads in by_name(functions).items():
        def expression(function, reads):
            location = ["c.location"] if function["location"] else []
            return f"return {prefix}{function['name']}({', '.join(reads + location)});"
        body = " ".join(cpp_overloads(overloads, expression))
        lines.append(f'{{"{camel(name)}", [](const Call& c) {{ {body} }}}},')
    return lines


def cpp_enums(api):
    """Names of enumerators."""
    lines = []
    for name, enum in api["enums"].items():
        values = ", ".join(f'{{"{enumerator(v["name"])}", {name}::{v["name"]}}}'
                           for v in enum["values"])
        lines += ["template <>", f"struct EnumNames<{name}> {{",
                  f"  static constexpr std::pair<std::string_view, {name}> kNames[] = {{{values}}};",
                  "};"]
    return lines


def type_by_hand(name, field):
    """The type in web/src/options.ts of a field of FIELDS_BY_HAND."""
    return flat(name) + camel(f"_{field}")


def visited(name, field):
    """Whether a field crosses between the languages."""
    kind = field["type"]["kind"]
    if (name, field["name"]) in FIELDS_BY_HAND:
        return True
    if kind == "opaque" or (name, field["name"]) in CALLBACK_FIELDS | FIELDS_LEFT_OUT:
        return False
    if kind == "function":
        raise Problem(f"{name}::{field['name']} is a function: add it to FIELDS_BY_HAND")
    return True


def cpp_structs(api):
    """The fields of structs."""
    lines = []
    structs = dict(api["structs"])
    structs.update({o["name"]: o for o in api["optimizers"]})
    for name, struct in structs.items():
        lines += ["template <class Visit>", f"void visit_fields(Visit&& visit, {name}& s) {{"]
        lines += [f'  visit(std::string_view("{camel(f["name"])}"), s.{f["name"]});'
                  for f in struct["fields"] if visited(name, f)]
        lines.append("}")
    return lines


def cpp_optimizers(api):
    """The table of optimizers."""
    return [f'{{"{OPTIMIZER_NAMES(flat(o["name"]))}", [](const Value& fields, const Where& where) '
            f"-> Optimizer {{ return read<{o['name']}>(fields, where); }}}},"
            for o in api["optimizers"]]


# ---- TypeScript --------------------------------------------------------------------------------

def ts_type(kind, given):
    """The type in TypeScript, of a value that is given to a call or that one returns."""
    name = kind["kind"]
    if name in ("int", "float"):
        return "number"
    simple = {"bool": "boolean", "string": "string", "operand": "Operand", "void": "void",
              "axes": "number | number[]", "size2d": "number | [number, number]",
              "shape": "readonly number[]" if given else "number[]",
              "tensor": "TensorLike" if given else "Tensor", "init": "Init",
              "schedule": "number | Schedule", "hyperparameter": "number | Adjustable",
              "filter": "ParamFilter", "optimizer": "Optimizer", "location": "string",
              "input": "InputSpec", "parameter": "TensorLike"}
    if name in simple:
        return simple[name]
    if name == "optional":
        return ts_type(kind["of"], given) + (" | null" if given else " | undefined")
    if name == "list":
        inner = ts_type(kind["of"], given)
        if not given and kind["of"].get("cpp") in ("std::int32_t", "float"):
            return "Int32Array" if kind["of"]["kind"] == "int" else "Float32Array"
        if given and kind["of"]["kind"] in ("int", "float") and \
                kind["of"].get("cpp") in ("std::int32_t", "float"):
            return "readonly number[] | " + \
                ("Int32Array" if kind["of"]["kind"] == "int" else "Float32Array")
        inner = f"({inner})" if "|" in inner else inner
        return f"readonly {inner}[]" if given else f"{inner}[]"
    if name == "tuple":
        return f"[{', '.join(ts_type(each, given) for each in kind['of'])}]"
    if name in ("struct", "enum"):
        return flat(kind["name"])
    raise Problem(f"no type in TypeScript for {kind}")


class Docs:
    """Comments of the headers, with the names that JavaScript has."""

    def __init__(self, api):
        known = {f["name"] for f in api["functions"]}
        for each in (*api["functions"], *api["schedules"], *api["inits"]):
            known |= {p["name"] for p in each["parameters"]}
        for each in (*api["structs"].values(), *api["optimizers"]):
            known |= {f["name"] for f in each["fields"]}
        for layer in api["layers"]:
            known |= {m["name"] for m in layer["methods"]}
        self.known = {name for name in known if "_" in name.strip("_")}

    def text(self, doc):
        """One comment, without the names of C++."""
        doc = re.sub(r"```cpp.*?```\n?", "", doc, flags=re.S)
        doc = re.sub(r"`?\b(\w+::)*k([A-Z]\w*)\b`?",
                     lambda m: f"'{enumerator('k' + m[2])}'", doc)
        doc = re.sub(r"\b(nn|optim|lm|init)::", "", doc)
        doc = re.sub(r"\b(Stepper|TrainerBase|AnyTrainer)::", "Trainer.", doc)
        doc = doc.replace("std::nullopt", "null").replace("nullopt", "null").replace("::", ".")
        doc = re.sub(r"\b\w+_\w+\b",
                     lambda m: camel(m[0]) if m[0] in self.known else m[0], doc)
        return doc.replace("*/", "* /").strip()

    def comment(self, doc, indent="", extra=()):
        """A JSDoc comment, or nothing."""
        lines = self.text(doc).split("\n") if doc else []
        lines += extra
        if not lines:
            return []
        if len(lines) == 1:
            return [f"{indent}/** {lines[0]} */"]
        return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines),
                f"{indent} */"]


def ts_default(default):
    """A default value for a comment, or None if it says nothing in JavaScript."""
    if default in (None, "{}", "std::nullopt", "nullptr"):
        return None
    if "numeric_limits" in default:
        return "-3.4028235e38" if "lowest" in default else "3.4028235e38"
    if re.fullmatch(r"-?0x[\da-fA-F.]+p-?\d+", default):
        return repr(float.fromhex(default))
    if re.fullmatch(r"(\w+::)*k[A-Z]\w*", default):
        return f"'{enumerator(default.split('::')[-1])}'"
    if default in ("f32", "i32", "u32", "f16", "boolean"):
        return f"'{default}'"
    return camel(default).replace("'", "").replace('"', "'")


def is_dtype(parameter):
    """Whether a parameter is the element type of the result."""
    return parameter["type"] == {"kind": "enum", "name": "DType"}


def ts_parameters(parameters, dtype=None):
    """Parameters of a function in TypeScript. An element type has the type `dtype`."""
    return ", ".join(
        f"{safe(camel(p['name']))}{'' if p['default'] is None else '?'}: "
        f"{dtype if dtype and is_dtype(p) else ts_type(p['type'], True)}" for p in parameters)


def ts_signature(name, function):
    """A function with its parameters and result."""
    result = ts_type(function["result"], False)
    typed = [p for p in function["parameters"] if is_dtype(p)]
    if result != "Tensor" or not (typed or function["name"] in RESULT_DTYPES):
        return f"{name}({ts_parameters(function['parameters'])}): {result};"
    if not typed:
        return f"{name}({ts_parameters(function['parameters'])}): " \
            f"Tensor<readonly number[], {RESULT_DTYPES[function['name']]}>;"
    default = ts_default(typed[0]["default"])
    return f"{name}<const T extends DType{' = ' + default if default else ''}>" \
        f"({ts_parameters(function['parameters'], 'T')}): Tensor<readonly number[], T>;"


def defaults_of(parameters):
    """Lines of a comment that name the default values."""
    return [f"@param {safe(camel(p['name']))} default: {ts_default(p['default'])}"
            for p in parameters if ts_default(p["default"]) is not None]


def ts_ops(api, docs):
    """ops.ts."""
    lines, renamed = [], []
    for name, overloads in by_name(api["functions"]).items():
        if name in OPS_BY_HAND:
            continue
        js = safe(camel(name))
        export = "export " if js == camel(name) else ""
        for each in overloads:
            lines += docs.comment(each["doc"], extra=defaults_of(each["parameters"]))
            lines.append(f"{export}function {ts_signature(js, each)}")
        lines.append(f"{export}function {js}(...a: unknown[]): any "
                     f"{{ return op('{camel(name)}', a); }}")
        if not export:
            renamed.append(f"{js} as {camel(name)}")
    lines.append(f"export {{ {', '.join(renamed)} }};")
    return lines


def ts_layers(api, docs):
    """layers.ts."""
    full = ", ".join(f"'{flat(each['name'])}'" for each in layers_of(api, True))
    lines = ["/** @internal Layers that only the full module has. */",
             f"export const fullLayers: ReadonlySet<string> = new Set([{full}]);"]
    for layer in api["layers"]:
        name = flat(layer["name"])
        lines += docs.comment(layer["doc"])
        lines.append(f"export class {name} extends Layer {{")
        for each in layer["constructors"]:
            lines += docs.comment(each["doc"], "  ", defaults_of(each["parameters"]))
            lines.append(f"  constructor({ts_parameters(each['parameters'])});")
        lines.append(f"  constructor(...a: unknown[]) {{ super('{name}', a); }}")
        for part in layer["parts"]:
            if part["kind"] == "parameter":
                lines += docs.comment(part["doc"] or f"The parameter `{part['name']}`.", "  ")
                lines.append(f"  get {part['name']}(): LayerParameter "
                             f"{{ return this.parameter('{part['name']}'); }}")
        for method, overloads in by_name(layer["methods"]).items():
            method = method_name(method)
            for each in overloads:
                lines += docs.comment(each["doc"], "  ", defaults_of(each["parameters"]))
                lines.append(f"  {method}({ts_parameters(each['parameters'])}): "
                             f"{ts_type(each['result'], False)};")
            lines.append(f"  {method}(...a: unknown[]): any "
                         f"{{ return this.call('{method}', a); }}")
        lines.append("}")
    return lines


def ts_enums(api, docs):
    """Enums are unions of strings."""
    lines = []
    for name, enum in api["enums"].items():
        extra = [f"- '{enumerator(v['name'])}': {docs.text(v['doc'])}"
                 for v in enum["values"] if v["doc"]]
        lines += docs.comment(enum["doc"], extra=[x for e in extra for x in e.split("\n")])
        values = " | ".join(f"'{enumerator(v['name'])}'" for v in enum["values"])
        lines.append(f"export type {flat(name)} = {values};")
    return lines


def ts_structs(api, docs, given_names):
    """Structs are interfaces. Those that calls take have optional fields."""
    lines, seen = [], set()
    for name, struct in api["structs"].items():
        if flat(name) in seen:
            raise Problem(f"two structs are called {flat(name)} in TypeScript")
        seen.add(flat(name))
        given = name in given_names
        lines += docs.comment(struct["doc"])
        lines.append(f"export interface {flat(name)} {{")
        for field in struct["fields"]:
            if not visited(name, field):
                continue
            kind = field["type"]["kind"]
            default = ts_default(field["default"])
            lines += docs.comment(field["doc"], "  ",
                                  [f"Default: {default}"] if default and given else [])
            maybe = "?" if given and (field["default"] is not None or kind == "optional") else ""
            if (name, field["name"]) in FIELDS_BY_HAND:
                text = type_by_hand(name, field["name"])
            elif (name, field["name"]) in RESULT_DTYPES:
                text = f"Tensor<readonly number[], {RESULT_DTYPES[name, field['name']]}>"
            else:
                text = ts_type(field["type"], given)
            lines.append(f"  {camel(field['name'])}{maybe}: {text};")
        lines.append("}")
    return lines


def names_in(kind):
    """Names of the structs that a type mentions."""
    if kind["kind"] == "struct":
        yield kind["name"]
    inner = kind.get("of", [])
    for each in inner if isinstance(inner, list) else [inner]:
        yield from names_in(each)


def given_structs(api):
    """Names of the structs that are passed to calls, with those in their fields."""
    functions = [*api["functions"], *api["schedules"], *api["inits"]]
    for layer in api["layers"]:
        functions += layer["constructors"] + layer["methods"]
    pending = [n for f in functions for p in f["parameters"] for n in names_in(p["type"])]
    pending += [name for name in api["structs"] if name.endswith("Options")]
    given = set()
    while pending:
        name = pending.pop()
        if name not in given:
            given.add(name)
            pending += [n for f in api["structs"][name]["fields"] for n in names_in(f["type"])]
    return given


def ts_optimizers(api, docs):
    """Optimizers are functions of an object of options."""
    lines = []
    for each in api["optimizers"]:
        name = flat(each["name"])
        lines.append(f"/** Options of {OPTIMIZER_NAMES(name)}(). */")
        lines.append(f"export interface {name}Options {{")
        for field in each["fields"]:
            default = ts_default(field["default"])
            lines += docs.comment(field["doc"], "  ", [f"Default: {default}"] if default else [])
            lines.append(f"  {camel(field['name'])}?: {ts_type(field['type'], True)};")
        lines.append("}")
        lines += docs.comment(each["doc"])
        lines.append(f"export function {OPTIMIZER_NAMES(name)}(options: {name}Options = {{}}): "
                     f"Optimizer {{ return new Optimizer('{OPTIMIZER_NAMES(name)}', options); }}")
    return lines


def ts_makers(functions, docs, made):
    """Functions that make a schedule or initial values."""
    lines = []
    for name, overloads in by_name(functions).items():
        for each in overloads:
            lines += docs.comment(each["doc"], extra=defaults_of(each["parameters"]))
            lines.append(f"export function {safe(camel(name))}"
                         f"({ts_parameters(each['parameters'])}): {made};")
        lines.append(f"export function {safe(camel(name))}(...a: unknown[]): {made} "
                     f"{{ return new {made}('{camel(name)}', a); }}")
    return lines


HEAD = "// Generated by web/generate.py from the public headers. Not to be edited.\n"


def generate(api, cpp, ts):
    """Writes all files."""
    docs = Docs(api)
    types = "import type { {} } from '{}';"
    struct_names = ", ".join(flat(n) for n in (*api["enums"], *api["structs"]))
    of_types = types.replace("{ {} }", f"{{ {struct_names} }}", 1).replace("{}", "./types.js")
    by_hand = ", ".join(type_by_hand(*each) for each in sorted(FIELDS_BY_HAND))
    of_core = ("import type { Tensor, TensorLike, Operand } from '../tensor.js';\n"
               f"import type {{ InputSpec, ParamFilter, {by_hand} }} from '../options.js';\n"
               "import { Init, Schedule, Optimizer, type Adjustable } from '../make.js';")
    files = {
        cpp / "enums.inc": cpp_enums(api), cpp / "structs.inc": cpp_structs(api),
        cpp / "ops.inc": cpp_ops(api),
        cpp / "layer_calls.inc": cpp_layer_calls(layers_of(api, False)),
        cpp / "layers.inc": cpp_layer_makers(layers_of(api, False)),
        cpp / "language_layer_calls.inc": cpp_layer_calls(layers_of(api, True)),
        cpp / "language_layers.inc": cpp_layer_makers(layers_of(api, True)),
        cpp / "schedules.inc": cpp_makers(api["schedules"], "Schedule::"),
        cpp / "inits.inc": cpp_makers(api["inits"], "init::"),
        cpp / "optimizers.inc": cpp_optimizers(api),
        ts / "types.ts": [of_core, *ts_enums(api, docs),
                          *ts_structs(api, docs, given_structs(api))],
        ts / "ops.ts": [of_core, of_types, "import { op } from '../tracing.js';",
                        *ts_ops(api, docs)],
        ts / "layers.ts": [of_core, of_types,
                           "import { Layer, type LayerParameter } from '../module.js';",
                           *ts_layers(api, docs)],
        ts / "optim.ts": [of_core, of_types, *ts_optimizers(api, docs)],
        ts / "schedule.ts": [of_core, of_types, *ts_makers(api["schedules"], docs, "Schedule")],
        ts / "init.ts": [of_core, of_types, *ts_makers(api["inits"], docs, "Init")],
    }
    for path, lines in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = HEAD + "\n".join(lines) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        generate(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")),
                 Path(sys.argv[2]), Path(sys.argv[3]))
    except Problem as problem:
        sys.exit(f"generate: {problem}")
