// SPDX-License-Identifier: MIT
// libFuzzer: exports a small function as ONNX, with the names that the input has, separated by
// zeros: of the graph, its text, the dynamic size, two inputs, an output, a parameter's module and
// an entry of the metadata. May fail with a UserError. Otherwise the file must have these names,
// each value must be made once and before it is read, and names of nodes must be unique.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/protobuf_reader.h"
#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;
using tensorgrad::io::ProtoReader;

namespace {

enum Name { kGraph, kDoc, kSize, kFirst, kSecond, kOutput, kWeight, kKey, kValue, kNames };
using Names = std::array<std::string, kNames>;

void expect(bool holds) {
  if (!holds) std::abort();
}

// A model whose parameter has any name.
struct Named {
  std::string name;
  tg::Parameter weight{{3}, tg::init::ones()};
  void visit_fields(tg::ParameterVisitor& visitor) const { visitor.parameter(name, weight); }
};

// What the check reads of a model (onnx.proto).
struct File {
  struct Node {
    std::string name;
    std::vector<std::string> inputs, outputs;
  };
  std::string name, doc;
  std::vector<std::string> inputs, outputs, initializers, sizes;
  std::vector<Node> nodes;
  std::map<std::string, std::string> metadata;
};

std::string text(const ProtoReader& reader) { return std::string(reader.text("text")); }

// Returns the texts in the fields `number` of a message.
std::vector<std::string> texts(ProtoReader message, std::uint64_t number) {
  std::vector<std::string> found;
  while (message.next()) {
    if (message.number() == number) found.push_back(text(message));
  }
  return found;
}

// Appends the name of a ValueInfoProto, and those of its dynamic sizes.
void read_value(ProtoReader value, std::vector<std::string>& names, File& file) {
  while (value.next()) {
    if (value.number() == 1) names.push_back(text(value));
    if (value.number() != 2) continue;
    ProtoReader type = value.message("type");
    while (type.next()) {
      ProtoReader tensor = type.message("tensor");
      while (tensor.next()) {
        if (tensor.number() != 2) continue;
        ProtoReader shape = tensor.message("shape");
        while (shape.next()) {
          for (const std::string& size : texts(shape.message("size"), 2))
            file.sizes.push_back(size);
        }
      }
    }
  }
}

void read_graph(ProtoReader graph, File& file) {
  while (graph.next()) {
    switch (graph.number()) {
      case 1: {
        const ProtoReader node = graph.message("node");
        file.nodes.push_back({texts(node, 3).at(0), texts(node, 1), texts(node, 2)});
        break;
      }
      case 2: file.name = text(graph); break;
      case 5: file.initializers.push_back(texts(graph.message("tensor"), 8).at(0)); break;
      case 10: file.doc = text(graph); break;
      case 11: read_value(graph.message("input"), file.inputs, file); break;
      case 12: read_value(graph.message("output"), file.outputs, file); break;
      default: break;
    }
  }
}

File read(const std::vector<std::byte>& bytes) {
  File file;
  ProtoReader model({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
  while (model.next()) {
    if (model.number() == 7) read_graph(model.message("graph"), file);
    if (model.number() != 14) continue;
    const ProtoReader entry = model.message("entry");
    file.metadata[texts(entry, 1).at(0)] = texts(entry, 2).at(0);
  }
  return file;
}

void check(const File& file, const Names& names, bool dynamic) {
  expect(file.name == names[kGraph] && file.doc == names[kDoc]);
  expect(file.inputs == std::vector{names[kFirst], names[kSecond]});
  expect(file.outputs == std::vector{names[kOutput]});
  expect(file.metadata == std::map<std::string, std::string>{{names[kKey], names[kValue]}});
  if (dynamic) expect(file.sizes == std::vector(3, names[kSize]));
  std::set<std::string> made, nodes;
  const auto make = [&](const std::string& value) {
    expect(!value.empty() && made.insert(value).second);
  };
  for (const std::string& input : file.inputs) make(input);
  for (const std::string& each : file.initializers) make(each);
  expect(made.contains(names[kWeight]));
  for (const File::Node& node : file.nodes) {
    for (const std::string& input : node.inputs) expect(input.empty() || made.contains(input));
    for (const std::string& output : node.outputs) make(output);
    expect(nodes.insert(node.name).second);
  }
  expect(made.contains(names[kOutput]));
}

// Returns the file, or nothing if the names are refused.
std::vector<std::byte> exported(const Names& names, bool dynamic) {
  std::vector<std::byte> bytes;
  try {
    const std::int64_t rows = dynamic ? tg::kDynamic : 2;
    const auto function = tg::compile_function(
        Named{names[kWeight]},
        [&](const Named& model, const tg::Inputs& in) {
          const tg::Tensor x = in[names[kFirst]];
          return std::map<std::string, tg::Tensor>{
              {names[kOutput], tanh(x * model.weight) + softmax(in[names[kSecond]], 1)}};
        },
        {.inputs = {{names[kFirst], {rows, 3}}, {names[kSecond], {rows, 3}}},
         .device = {.kind = "cpu", .threads = 1}});
    function.export_onnx(
        bytes, {.name = names[kGraph],
                .doc = names[kDoc],
                .size_name = names[kSize],
                .sizes = dynamic ? std::vector<std::int64_t>{2, 3, 5} : std::vector<std::int64_t>{},
                .metadata = {{names[kKey], names[kValue]}}});
  } catch (const tg::UserError&) {
    bytes.clear();
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const bool dynamic = size > 0 && data[0] % 2 == 1;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Names names;
  for (std::string& name : names) {
    name = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
  }
  const std::vector<std::byte> bytes = exported(names, dynamic);
  if (!bytes.empty()) check(read(bytes), names, dynamic);
  return 0;
}
