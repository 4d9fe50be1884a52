// SPDX-License-Identifier: MIT
// Builds scalar programs from graph nodes. Stored values become loads; members of the launch and
// inlined values become instructions.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plan/lower.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// State shared by all programs of a launch.
struct LaunchContext {
  const Graph& graph;
  const Placement& placement;
  const ScalarWords& scalars;
  int group;  // nodes of this group are computed here; -1: none
  Launch& launch;

  // Returns the launch's binding of a buffer. Adds it on first use.
  int bind(int buffer, bool write);
};

class ProgramBuilder {
 public:
  // Builds a program over rows*cols elements. With `has_rows`, values that are constant along a row
  // are computed once per row. `accumulated` is the node that kAcc stands for, or kNoValue.
  ProgramBuilder(LaunchContext& context, ScalarProgram& program, std::int64_t rows,
                 std::int64_t cols, bool has_rows, ValueId accumulated = kNoValue)
      : ctx_(context),
        program_(program),
        rows_(rows),
        cols_(cols),
        has_rows_(has_rows),
        accumulated_(accumulated) {}

  // Returns the instruction that computes value `id` at element map(index). `level` tells whether
  // the index is that of the element or of the row. Does not recurse, since a launch may contain
  // long chains of nodes.
  int value(ValueId id, const IndexMap& map, Level level);
  // Appends a pointwise op on previous instructions.
  int op(const OpDef& def, std::vector<int> operands, DType dtype);
  // Returns the instruction that computes, as i32, the coordinate on an axis of elements of `shape`
  // in row-major order.
  int coordinate(const Shape& shape, std::size_t axis);

 private:
  using Key = std::tuple<ValueId, Level, std::string>;

  // A read of value `id` at map(index).
  struct Read {
    ValueId id = kNoValue;
    IndexMap map;
    Level level = Level::kElement;
  };
  // A value whose operands are being computed.
  struct Pending {
    Key key;
    Read wanted;
    std::vector<Read> reads;
    std::vector<int> values;  // of the first reads
    int result = -1;          // of a concat: the parts so far
  };

  [[nodiscard]] Key key_of(Read& read) const;
  [[nodiscard]] std::vector<Read> reads_of(const Read& wanted) const;
  [[nodiscard]] Read read_view(const Read& wanted) const;
  [[nodiscard]] std::vector<Read> read_parts(const Read& wanted) const;
  [[nodiscard]] Read read_reduced(const Read& wanted) const;
  void take(Pending& pending, int value);
  int make(const Pending& pending);
  int make_cast(const Node& node, int operand);
  int make_view(const Pending& pending);
  int make_iota(const Node& node, const IndexMap& map, Level level);
  int make_gather(const Pending& pending);
  int make_reduce(const Node& node, int operand);
  int load(ValueId id, const IndexMap& map, Level level);
  int in_bounds(const IndexMap& map, Level level);
  int add_access(const BufferRange& place, DType dtype, const IndexMap& map, Level level);
  int constant(std::uint32_t bits, DType dtype);
  int integer(std::int64_t value);
  int push(Instr instr);
  [[nodiscard]] bool is_stored(ValueId id) const;
  // True if the value needs no other: a leaf, a generator, the accumulated node, or a stored value.
  [[nodiscard]] bool is_source(ValueId id) const;

  LaunchContext& ctx_;
  ScalarProgram& program_;
  std::int64_t rows_, cols_;
  bool has_rows_;
  ValueId accumulated_;
  std::map<Key, int> made_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
