#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Describes the public headers as JSON, from which bindings in other languages are generated.

    describe_api.py OUTPUT.json [INCLUDE_FOLDER]

The description has the ops, layers, optimizers, schedules and initializers, with the enums and
structs that they use: names, types, default values as C++ text, and documentation. It needs
`libclang` (tools/api-requirements.txt). Fails with the location of a declaration if its type is
unknown, so that nothing is left out silently. SKIPPED lists what is left out on purpose, with the
reason.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import clang.cindex as clang
from clang.cindex import CursorKind as Kind

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else ROOT / "include"
ABI = re.search(r"define TENSORGRAD_ABI (\w+)",
                (INCLUDE / "tensorgrad/version.h").read_text(encoding="utf-8"))[1]

# Headers whose free functions are ops, called while a function is traced.
OP_HEADERS = ("ops/", "functional/")
LAYER_HEADERS = ("nn/",)

# Structs that calls outside traced functions take or return.
HOST_STRUCTS = (
    "CompileOptions", "FunctionOptions", "TrainerOptions", "LoaderOptions", "LoaderState",
    "UploadOptions", "ResetOptions", "SaveOptions", "ImportOptions",
    "OnnxOptions", "WebOptions", "ProfileOptions", "CompileReport", "Recovery", "Profile", "GraphView",
    "DeviceDescription",
    "EncodeOptions", "DecodeOptions", "PadOptions", "TokenBatch", "BpeOptions", "BpeTrainOptions",
    "BpeProgress", "GraphStage", "lm::EmbedOptions",
    "lm::SamplingOptions", "lm::GenerateOptions", "lm::DecoderOptions", "lm::Completion",
    "lm::GenerationTimes", "lm::ScoreOptions", "lm::TextScore",
)

# Classes whose methods are called outside traced functions. Only their names are described, so that
# a binding can be checked for completeness.
HOST_CLASSES = ("Stepper", "TrainerBase", "ModelTrainer", "AnyMultiTrainer", "DataLoader",
                "CompiledFunction", "optim::Update", "Tokenizer", "lm::Generator", "lm::TextScorer",
                "lm::Embedder")

# Not described, by qualified name without `tensorgrad::`.
SKIPPED = {
    "nn::Activation": "a template; its aliases are layers",
    "nn::Pointwise": "a template; its aliases are layers",
    "nn::Sequential": "holds any modules: a face builds it of its own modules",
    "nn::Recurrent": "base class of LSTM and GRU",
    "nn::QuantizedTensor": "in host memory, not in a traced function",
    "nn::StateSpec": "plain data of a result",
    "nn::RecurrentResult": "a result",
    "nn::SharedTransformer": "part of a LanguageModel, whose layers share its parameters",
    "Parameter": "a face has parameters of its own",
    "Buffer": "a face has buffers of its own",
    "ParameterVisitor": "how C++ walks a model",
    "CustomOp": "takes kernels in C++",
    "CustomCall": "takes kernels in C++",
    "Autocast": "a scope guard",
    "TrainingMode": "a scope guard",
}
# Methods of layers that are not described.
SKIPPED_METHODS = {"visit_fields", "state_specs", "quantize", "no_weight_decay", "run_shared"}

SCALARS = {
    "bool": "bool", "int": "int", "std::int32_t": "int", "std::uint32_t": "int",
    "std::int64_t": "int", "std::size_t": "int", "double": "float", "float": "float",
    "std::string": "string", "std::string_view": "string", "const char *": "string",
    "Tensor": "tensor", "Operand": "operand", "Parameter": "parameter", "Shape": "shape",
    "Axes": "axes", "Size2d": "size2d", "PoolStride": "size2d?", "PoolStride1d": "int?",
    "Schedule": "schedule", "optim::Hyperparameter": "hyperparameter", "ParamFilter": "filter",
    "Optimizer": "optimizer", "InputSpec": "input", "ExternalDevice": "opaque",
    "std::uint64_t": "int", "InitFunction": "function", "CompileWatcher": "function",
    "Loc": "location", "SourceLocation": "location", "void": "void", "Init": "init",
}
FUNCTIONS = ("std::function", "Combine", "CombineMany")


class Unknown(Exception):
    """A declaration that this tool does not understand."""


def place(cursor):
    """Returns the file and line of a declaration."""
    return f"{Path(cursor.location.file.name).relative_to(INCLUDE)}:{cursor.location.line}"


def in_namespace(cursor):
    """Returns the name qualified by namespaces and classes, without `tensorgrad`."""
    names = []
    while cursor is not None and cursor.kind != Kind.TRANSLATION_UNIT:
        if cursor.spelling and not (cursor.kind == Kind.NAMESPACE and
                                    (cursor.spelling == "tensorgrad" or cursor.spelling == ABI) or
                                    cursor.is_anonymous()):
            names.append(cursor.spelling)
        cursor = cursor.semantic_parent
    return "::".join(reversed(names))


def split_arguments(text):
    """Splits template arguments at the commas of the outermost level."""
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return parts + [part.strip()]


class Description:
    """The description found so far."""

    def __init__(self, unit):
        self.enums, self.structs, self.declared = {}, {}, {}
        self.functions, self.layers, self.optimizers = [], [], []
        self.schedules, self.inits, self.errors = [], [], []
        self.classes = {}
        self.collect(unit.cursor)

    # -- types -----------------------------------------------------------------------------------

    def type_of(self, text, scope, where):
        """Returns the description of a C++ type as written in `scope`."""
        text = re.sub(r"\bconst\b|&|\btensorgrad::", " ", text).replace("tensorgrad", "").strip()
        text = re.sub(r"\s+", " ", text)
        if text in SCALARS:
            kind = SCALARS[text]
            if kind.endswith("?"):
                return {"kind": "optional", "of": {"kind": kind[:-1]}, "cpp": text}
            return {"kind": kind, "cpp": text}
        if text == "Hyperparameter":
            return {"kind": "hyperparameter", "cpp": "optim::Hyperparameter"}
        if text in ("std::shared_ptr<Device>", "std::shared_ptr<Communicator>"):
            return {"kind": "opaque", "cpp": text}
        if text.startswith(FUNCTIONS):
            return {"kind": "function", "cpp": text}
        match = re.fullmatch(r"([\w:]+)<(.*)>", text)
        if match:
            outer, arguments = match[1], split_arguments(match[2])
            inner = [self.type_of(each, scope, where) for each in arguments]
            if outer in ("std::optional", "std::vector", "std::span"):
                kind = "optional" if outer == "std::optional" else "list"
                return {"kind": kind, "of": inner[0]}
            if outer in ("std::pair", "std::tuple"):
                return {"kind": "tuple", "of": inner}
        name = self.resolve(text, scope)
        if name is None:
            raise Unknown(f"{where}: unknown type '{text}'")
        cursor = self.declared[name]
        if cursor.kind == Kind.ENUM_DECL:
            self.add_enum(name, cursor)
            return {"kind": "enum", "name": name}
        self.add_struct(name, cursor)
        return {"kind": "struct", "name": name}

    def resolve(self, text, scope):
        """Returns the qualified name of a type that is called `text` in `scope`."""
        parts = scope.split("::") if scope else []
        for n in range(len(parts), -1, -1):
            name = "::".join(parts[:n] + [text])
            if name in self.declared:
                return name
        return None

    # -- declarations ----------------------------------------------------------------------------

    def collect(self, cursor):
        """Records the types that public headers declare, and the declarations of interest."""
        self.found = []
        self.walk(cursor)

    def walk(self, cursor):
        """Visits namespaces and classes of public headers."""
        before = None
        for child in cursor.get_children():
            if child.location.file is None:
                continue
            path = Path(child.location.file.name)
            if INCLUDE not in path.parents:
                continue
            if child.kind in (Kind.NAMESPACE, Kind.LINKAGE_SPEC):
                if child.spelling not in ("detail", "std"):
                    self.walk(child)
                continue
            child.before, before = before, child
            header = str(path.relative_to(INCLUDE / "tensorgrad"))
            if child.kind in (Kind.STRUCT_DECL, Kind.CLASS_DECL, Kind.ENUM_DECL,
                              Kind.CLASS_TEMPLATE, Kind.TYPE_ALIAS_DECL):
                if child.is_definition() or child.kind == Kind.TYPE_ALIAS_DECL:
                    self.declared[in_namespace(child)] = child
                    self.found.append((header, child))
                    if child.kind in (Kind.STRUCT_DECL, Kind.CLASS_DECL):
                        self.walk(child)
            elif child.kind == Kind.FUNCTION_DECL:
                self.found.append((header, child))

    def doc(self, cursor):
        """Returns the documentation of a declaration, or that of the line above it if it has none."""
        while True:
            text = cursor.raw_comment
            if text is not None:
                lines = [re.sub(r"^\s*(///<?|//) ?", "", line) for line in text.split("\n")]
                return "\n".join(lines).strip()
            above = getattr(cursor, "before", None)
            if above is None or above.kind != cursor.kind or \
                    above.extent.end.line + 1 < cursor.extent.start.line:
                return ""
            cursor = above

    def default_of(self, cursor):
        """Returns the default value or initializer of a parameter or field, as C++ text."""
        tokens = list(cursor.get_tokens())
        at = [i for i, t in enumerate(tokens)
              if t.location.offset == cursor.location.offset]
        if not at:
            return None
        rest = [t.spelling for t in tokens[at[0] + 1:]]
        if not rest or rest[0] not in ("=", "{"):
            return None
        if rest[0] == "=":
            rest = rest[1:]
        text = " ".join(rest)
        text = re.sub(r"\s*(::|<|>|\(|\)|\{|\}|\.)\s*", r"\1", text)
        return re.sub(r"^([-+]) ", r"\1", re.sub(r"\s+,", ",", text))

    def parameters_of(self, cursor, scope):
        """Returns the parameters of a function, without the caller's location."""
        found = []
        for each in cursor.get_arguments():
            kind = self.type_of(self.written(each), scope, place(each))
            if kind["kind"] == "location":
                continue
            found.append({"name": each.spelling, "type": kind, "default": self.default_of(each)})
        return found

    @staticmethod
    def written(cursor):
        """Returns the type of a parameter or field as written."""
        return cursor.type.spelling

    def takes_location(self, cursor):
        """True if the last parameter is the caller's location."""
        arguments = list(cursor.get_arguments())
        return bool(arguments) and arguments[-1].type.spelling in ("Loc", "SourceLocation")

    def add_enum(self, name, cursor):
        """Describes an enum."""
        if name in self.enums:
            return
        self.enums[name] = {"doc": self.doc(cursor), "values": [
            {"name": each.spelling, "doc": self.doc(each)} for each in cursor.get_children()
            if each.kind == Kind.ENUM_CONSTANT_DECL]}

    def fields_of(self, name, cursor):
        """Returns the public data members."""
        fields = []
        for each in cursor.get_children():
            if each.kind != Kind.FIELD_DECL or \
                    each.access_specifier != clang.AccessSpecifier.PUBLIC:
                continue
            fields.append({"name": each.spelling, "doc": self.doc(each),
                           "type": self.type_of(self.written(each), name, place(each)),
                           "default": self.default_of(each)})
        return fields

    def add_struct(self, name, cursor):
        """Describes a struct of plain fields, such as options or a result."""
        if name in self.structs:
            return
        if cursor.kind not in (Kind.STRUCT_DECL, Kind.CLASS_DECL):
            raise Unknown(f"{place(cursor)}: '{name}' is neither an enum nor a struct")
        self.structs[name] = {}
        self.structs[name] = {"doc": self.doc(cursor), "fields": self.fields_of(name, cursor)}

    def function(self, header, cursor, scope=""):
        """Describes a function or a method."""
        result = cursor.result_type.spelling
        return {"name": cursor.spelling, "header": header, "doc": self.doc(cursor),
                "result": self.type_of(result, scope, place(cursor)),
                "parameters": self.parameters_of(cursor, scope),
                "location": self.takes_location(cursor)}

    def layer(self, header, name, cursor):
        """Describes a layer: its constructors, parameters and what it computes."""
        members = list(cursor.get_children())
        for i, each in enumerate(members):
            each.before = members[i - 1] if i else None
        public = [m for m in members if m.access_specifier == clang.AccessSpecifier.PUBLIC]
        built = [m for m in public if m.kind == Kind.CONSTRUCTOR and
                 not m.is_copy_constructor() and not m.is_move_constructor()]
        parts, values = [], []
        for each in public:
            if each.kind != Kind.FIELD_DECL:
                continue
            text = re.sub(r"\bconst\b|tensorgrad::|nn::", "", self.written(each)).strip()
            inner = re.sub(r"^std::(optional|vector)<(.*)>$", r"\2", text)
            full = self.resolve(inner, name)
            if inner in ("Parameter", "Buffer"):
                parts.append({"name": each.spelling, "kind": inner.lower(),
                              "optional": inner != text, "doc": self.doc(each)})
            elif full and any(m.spelling == "visit_fields"
                              for m in self.declared[full].get_children()):
                parts.append({"name": each.spelling, "kind": "layer", "layer": full,
                              "optional": inner != text, "doc": self.doc(each)})
            else:
                values.append(each)
        if built:
            constructors = [{"doc": self.doc(c), "parameters": self.parameters_of(c, name),
                             "location": self.takes_location(c), "aggregate": False}
                            for c in built]
        else:
            constructors = [{"doc": "", "location": False, "aggregate": True, "parameters": [
                {"name": v.spelling, "default": self.default_of(v),
                 "type": self.type_of(self.written(v), name, place(v))} for v in values]}]
        methods = [self.function(header, m, name) for m in public
                   if m.kind == Kind.CXX_METHOD and m.spelling not in SKIPPED_METHODS]
        return {"name": name, "header": header, "doc": self.doc(cursor),
                "constructors": constructors, "parts": parts, "methods": methods}

    def describe(self):
        """Describes all declarations of interest, and records errors."""
        for header, cursor in self.found:
            name = in_namespace(cursor)
            try:
                self.describe_one(header, name, cursor)
            except Unknown as error:
                self.errors.append(str(error))
        found = {in_namespace(cursor) for _, cursor in self.found}
        self.errors += [f"there is no '{name}'" for name in (*HOST_STRUCTS, *HOST_CLASSES, *SKIPPED)
                        if name not in found]

    def describe_one(self, header, name, cursor):
        """Describes one declaration, if a binding needs it."""
        if name in SKIPPED or name.split("::")[0] in SKIPPED:
            return
        if cursor.kind == Kind.FUNCTION_DECL:
            if name.startswith("init::"):
                if cursor.result_type.spelling == "Init" and not any(
                        "HostTensor" in a.type.spelling for a in cursor.get_arguments()):
                    self.inits.append(self.function(header, cursor, "init"))
            elif header.startswith(OP_HEADERS) and not name.startswith("operator"):
                self.functions.append(self.function(header, cursor))
            return
        if name in HOST_CLASSES:
            names = [m.spelling for m in cursor.get_children()
                     if m.kind in (Kind.CXX_METHOD, Kind.FUNCTION_TEMPLATE) and
                     m.access_specifier == clang.AccessSpecifier.PUBLIC and
                     not m.spelling.startswith("operator")]
            self.classes[name] = sorted(set(names))
            return
        if cursor.kind == Kind.TYPE_ALIAS_DECL and header.startswith(LAYER_HEADERS):
            target = cursor.underlying_typedef_type.spelling
            if re.match(r"(nn::)?(Activation|Pointwise)<", target.replace("tensorgrad::", "")):
                op = re.search(r"<(?:&)?(?:tensorgrad::)?(\w+)>", target.replace(" ", ""))
                self.layers.append({
                    "name": name, "header": header, "parts": [],
                    "doc": f"Module for {cursor.spelling.lower() if op is None else op[1]}().",
                    "constructors": [{"doc": "", "location": False, "aggregate": True,
                                      "parameters": []}],
                    "methods": [{"name": "operator()", "header": header, "doc": "",
                                 "location": True, "result": {"kind": "tensor", "cpp": "Tensor"},
                                 "parameters": [{"name": "x", "default": None,
                                                 "type": {"kind": "tensor", "cpp": "Tensor"}}]}]})
            else:
                alias = self.resolve(target.split("::")[-1], "nn")
                if alias in [layer["name"] for layer in self.layers]:
                    same = next(layer for layer in self.layers if layer["name"] == alias)
                    self.layers.append({**same, "name": name})
            return
        if name in HOST_STRUCTS:
            self.type_of(name, "", place(cursor))
        if cursor.kind not in (Kind.STRUCT_DECL, Kind.CLASS_DECL):
            return
        members = {m.spelling: m for m in cursor.get_children()}
        if name == "Schedule":
            made = [m for m in cursor.get_children() if m.kind == Kind.CXX_METHOD and
                    m.is_static_method() and m.spelling != "parse" and
                    m.access_specifier == clang.AccessSpecifier.PUBLIC]
            self.schedules = [self.function(header, m, name) for m in made]
        elif name.startswith("optim::") and "kName" in members:
            self.optimizers.append({"name": name, "header": header, "doc": self.doc(cursor),
                                    "fields": self.fields_of(name, cursor)})
        elif name.startswith("nn::") and "visit_fields" in members and name.count("::") == 1 or \
                name in ("nn::LSTM", "nn::GRU"):
            self.layers.append(self.layer(header, name, cursor))

    def json(self):
        """Returns everything as plain data."""
        return {"enums": self.enums, "structs": self.structs, "functions": self.functions,
                "layers": self.layers, "optimizers": self.optimizers,
                "schedules": self.schedules, "inits": self.inits, "classes": self.classes}


def include_paths():
    """Returns the folders in which the machine's C++ compiler finds its headers."""
    command = ["c++", "-std=c++20", "-E", "-x", "c++", "-v", "/dev/null"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    listed = re.search(r"#include <...> search starts here:\n(.*?)End of search list", text, re.S)
    return [line.strip() for line in listed[1].strip().split("\n")]


def describe():
    """Parses the public headers and returns their description."""
    index = clang.Index.create()
    arguments = ["-x", "c++", "-std=c++20", f"-I{INCLUDE}"]
    for path in include_paths():
        arguments += ["-isystem", path]
    source = "".join(f'#include "tensorgrad/{name}"\n' for name in ("core.h", "lm.h", "data.h"))
    unit = index.parse("all.cpp", args=arguments, unsaved_files=[("all.cpp", source)])
    wrong = [str(d) for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if wrong:
        sys.exit("describe_api: the headers do not parse:\n" + "\n".join(wrong[:5]))
    found = Description(unit)
    found.describe()
    if found.errors:
        sys.exit("describe_api: not understood:\n  " + "\n  ".join(found.errors))
    return found.json()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    Path(sys.argv[1]).write_text(json.dumps(describe(), indent=1) + "\n", encoding="utf-8")
