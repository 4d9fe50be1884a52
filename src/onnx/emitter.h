// SPDX-License-Identifier: MIT
// An ONNX model under construction: a list of nodes, deduplicated constants and unique names.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx.h"
#include "ir/node.h"

namespace tensorgrad::onnx {

using io::OnnxType;

// Returns the ONNX type in which values of the graph are computed.
OnnxType type_of(DType dtype);

class Emitter {
 public:
  Emitter() = default;
  Emitter(Emitter&&) noexcept = default;
  Emitter& operator=(Emitter&&) = default;
  Emitter(const Emitter&) = delete;  // initializers of the model refer to its data
  Emitter& operator=(const Emitter&) = delete;
  ~Emitter() = default;

  // Reserves a name of the user. Returns false if it is taken.
  bool reserve(const std::string& name) { return taken_.insert(name).second; }
  // Returns a unique name: "exp", or "exp_2" ... if that is taken.
  std::string fresh(const std::string& name);

  // Sets the prefix for names of subsequent nodes: the composite that they belong to.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Adds an operator with one result and returns the result's name.
  std::string node(const char* op, std::vector<std::string> inputs,
                   io::OnnxAttributes attributes = {});
  // Adds an operator with `count` results and returns the name of result `which`.
  std::string node(const char* op, std::vector<std::string> inputs, io::OnnxAttributes attributes,
                   std::size_t which, std::size_t count);

  // Constants: a scalar, a vector or a tensor of numbers, or an INT64 list.
  std::string number(double value, OnnxType type) { return numbers({value}, type, {}); }
  std::string numbers(const std::vector<double>& values, OnnxType type, const Shape& shape);
  std::string list(const std::vector<std::int64_t>& values);
  std::string list(const std::vector<std::int64_t>& values, const Shape& shape);
  // Adds the elements of a leaf as a constant.
  std::string elements(const std::string& name, const Type& type,
                       std::span<const std::byte> values);

  // Collects nodes for another graph during its lifetime. They can only read constants of this one.
  class Body {
   public:
    explicit Body(Emitter& emitter) : emitter_(emitter) { emitter_.nodes_.swap(outer_); }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    ~Body() { emitter_.nodes_.swap(outer_); }
    [[nodiscard]] std::vector<io::OnnxNode> take() { return std::move(emitter_.nodes_); }

   private:
    Emitter& emitter_;
    std::vector<io::OnnxNode> outer_;
  };

  std::vector<io::OnnxNode>& nodes() { return nodes_; }
  io::OnnxModel model;  // without the nodes

 private:
  std::string constant(OnnxType type, const Shape& shape, std::vector<std::byte> data);

  std::string prefix_;
  std::set<std::string> taken_;
  std::map<std::string, int, std::less<>> counts_;
  std::vector<io::OnnxNode> nodes_;
  std::map<std::string, std::string> constants_;  // by type, shape and bytes
};

}  // namespace tensorgrad::onnx
