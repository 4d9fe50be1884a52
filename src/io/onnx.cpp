// SPDX-License-Identifier: MIT
// Writes the messages of onnx.proto. The data of initializers, the bulk of a file, is written
// directly from its memory. Everything else is built first, because its size precedes it.
#include "io/onnx.h"

#include "io/output_file.h"
#include "io/protobuf.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

// An initializer without its data, which are its last field.
struct TensorHead {
  std::string begin;       // the fields, within the tensor
  std::uint64_t size = 0;  // of the whole tensor
};

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class Writer {
 public:
  explicit Writer(const FileSink& sink) : sink_(sink) {}

  void write(const OnnxModel& model) const {
    const ProtoMessage head = graph_head(model.graph);
    std::vector<TensorHead> tensors;
    std::uint64_t graph_size = head.bytes().size();
    for (const OnnxTensor& tensor : model.graph.initializers) {
      tensors.push_back(tensor_head(tensor));
      ProtoMessage field;
      field.begin(kInitializer, tensors.back().size);
      graph_size += field.bytes().size() + tensors.back().size;
    }
    ProtoMessage begin = model_head(model);
    begin.begin(kGraph, graph_size);
    const std::uint64_t total = begin.bytes().size() + graph_size;
    if (total > kMaxProtoBytes) {
      throw IoError(sink_.name() + ": the model takes " + std::to_string(total) +
                    " bytes; an ONNX file is limited to " + std::to_string(kMaxProtoBytes));
    }
    OutputFile out(sink_, total);
    out.write(as_bytes(begin.bytes()));
    out.write(as_bytes(head.bytes()));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ProtoMessage field;
      field.begin(kInitializer, tensors[i].size);
      out.write(as_bytes(field.bytes() + tensors[i].begin));
      out.write(model.graph.initializers[i].data);
    }
    out.commit();
  }

 private:
  // ModelProto, GraphProto
  static constexpr int kGraph = 7, kInitializer = 5;

  void name(ProtoMessage& to, int field, const std::string& text) const {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t length = utf8_length(rest);
      if (length == 0) throw IoError(sink_.name() + ": " + in_quotes(text) + " is not UTF-8");
      rest.remove_prefix(length);
    }
    to.text(field, text);
  }

  // Returns everything except the graph.
  ProtoMessage model_head(const OnnxModel& model) const {
    ProtoMessage opset, head;
    opset.text(1, "");  // the standard operators of ONNX
    opset.integer(2, model.opset);
    head.integer(1, model.ir_version);
    name(head, 2, model.producer);
    name(head, 3, model.version);
    head.message(8, opset);
    for (const auto& [key, value] : model.metadata) {
      ProtoMessage entry;
      name(entry, 1, key);
      name(entry, 2, value);
      head.message(14, entry);
    }
    return head;
  }

  // Returns everything except the initializers.
  [[nodiscard]] ProtoMessage graph_head(const OnnxGraph& graph) const {
    ProtoMessage head;
    for (const OnnxNode& each : graph.nodes) head.message(1, node(each));
    name(head, 2, graph.name);
    if (!graph.doc.empty()) name(head, 10, graph.doc);
    for (const OnnxValue& input : graph.inputs) head.message(11, value(input));
    for (const OnnxValue& output : graph.outputs) head.message(12, value(output));
    return head;
  }

  [[nodiscard]] ProtoMessage node(const OnnxNode& each) const {
    ProtoMessage made;
    for (const std::string& input : each.inputs) name(made, 1, input);
    for (const std::string& output : each.outputs) name(made, 2, output);
    name(made, 3, each.name);
    made.text(4, each.op);
    for (const auto& [key, attribute] : each.attributes) made.message(5, field(key, attribute));
    return made;
  }

  // Field 20 is the type of the attribute.
  [[nodiscard]] ProtoMessage field(const std::string& key, const OnnxAttribute& attribute) const {
    ProtoMessage made;
    made.text(1, key);
    if (const auto* one = std::get_if<std::int64_t>(&attribute)) {
      made.integer(3, *one);
      made.integer(20, 2);
    } else if (const auto* many = std::get_if<std::vector<std::int64_t>>(&attribute)) {
      made.integers(8, *many);
      made.integer(20, 7);
    } else if (const auto* text = std::get_if<std::string>(&attribute)) {
      made.text(4, *text);
      made.integer(20, 3);
    } else {
      made.message(6, graph_head(*std::get<std::shared_ptr<const OnnxGraph>>(attribute)));
      made.integer(20, 5);
    }
    return made;
  }

  [[nodiscard]] ProtoMessage value(const OnnxValue& each) const {
    ProtoMessage shape, tensor, type, made;
    for (std::size_t axis = 0; axis < each.shape.size(); ++axis) {
      ProtoMessage dimension;
      if (each.shape[axis] != kUnknownSize) {
        dimension.integer(1, each.shape[axis]);
      } else if (!each.sizes.empty() && !each.sizes[axis].empty()) {
        name(dimension, 2, each.sizes[axis]);
      }
      shape.message(1, dimension);
    }
    tensor.integer(1, static_cast<std::int64_t>(each.type));
    tensor.message(2, shape);
    type.message(1, tensor);
    name(made, 1, each.name);
    made.message(2, type);
    return made;
  }

  [[nodiscard]] TensorHead tensor_head(const OnnxTensor& tensor) const {
    ProtoMessage head;
    head.integers(1, tensor.value.shape);
    head.integer(2, static_cast<std::int64_t>(tensor.value.type));
    name(head, 8, tensor.value.name);
    head.begin(9, tensor.data.size());
    return {head.bytes(), head.bytes().size() + tensor.data.size()};
  }

  const FileSink& sink_;
};

}  // namespace

void write_onnx(const FileSink& sink, const OnnxModel& model) { Writer(sink).write(model); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
