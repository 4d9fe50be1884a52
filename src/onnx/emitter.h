// SPDX-License-Identifier: MIT
// A model of ONNX in the making: nodes one after another, constants once each, names that nobody
// else has.
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

// What values of the graph are computed as.
OnnxType type_of(DType dtype);

class Emitter {
 public:
  Emitter() = default;
  Emitter(Emitter&&) noexcept = default;
  Emitter& operator=(Emitter&&) = default;
  Emitter(const Emitter&) = delete;  // the model's initializers refer to what it keeps
  Emitter& operator=(const Emitter&) = delete;
  ~Emitter() = default;

  // The name is the user's, and no other value's from now on. False where it is one already.
  bool reserve(const std::string& name) { return taken_.insert(name).second; }
  // "exp", or "exp_2" ... where that is taken.
  std::string fresh(const std::string& name);

  // What the names of the nodes to come begin with: the composite that they are part of.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Adds an operator with one result, and gives the result's name.
  std::string node(const char* op, std::vector<std::string> inputs,
                   io::OnnxAttributes attributes = {});
  // The one of several results at `which`.
  std::string node(const char* op, std::vector<std::string> inputs, io::OnnxAttributes attributes,
                   std::size_t which, std::size_t count);

  // Constants: a scalar, a row or a tensor of numbers, one of INT64.
  std::string number(double value, OnnxType type) { return numbers({value}, type, {}); }
  std::string numbers(const std::vector<double>& values, OnnxType type, const Shape& shape);
  std::string list(const std::vector<std::int64_t>& values);
  std::string list(const std::vector<std::int64_t>& values, const Shape& shape);
  // The elements of a value of the graph.
  std::string elements(const std::string& name, const Type& type,
                       std::span<const std::byte> values);

  // Nodes go into another graph meanwhile; they may read constants, and nothing else, of this one.
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
  io::OnnxModel model;  // but for the nodes

 private:
  std::string constant(OnnxType type, const Shape& shape, std::vector<std::byte> data);

  std::string prefix_;
  std::set<std::string> taken_, node_names_;
  std::map<std::string, int, std::less<>> counts_;
  std::vector<io::OnnxNode> nodes_;
  std::map<std::string, std::string> constants_;  // by type, shape and bytes
};

}  // namespace tensorgrad::onnx
