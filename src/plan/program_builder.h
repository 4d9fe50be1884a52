// SPDX-License-Identifier: MIT
// Writes scalar programs from graph nodes: what is stored elsewhere becomes a load, what belongs to
// the launch (or is computed by each reader) becomes instructions.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plan/lower.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What all programs of one launch share.
struct LaunchContext {
  const Graph& graph;
  const Placement& placement;
  const HyperWords& hypers;
  int group;  // nodes of this group are computed here; -1: none are
  Launch& launch;

  // The launch's binding of a buffer, made when it is first asked for.
  int bind(int buffer, bool write);
};

class ProgramBuilder {
 public:
  // A program over rows*cols elements; with `has_rows`, values that are the same along a row are
  // computed once a row. `accumulated` is the node that kAcc stands for, or kNoValue.
  ProgramBuilder(LaunchContext& context, ScalarProgram& program, std::int64_t rows,
                 std::int64_t cols, bool has_rows, ValueId accumulated = kNoValue)
      : ctx_(context),
        program_(program),
        rows_(rows),
        cols_(cols),
        has_rows_(has_rows),
        accumulated_(accumulated) {}

  // The instruction that gives value `id` at element map(index). `level` says what index is: the
  // element's, or the row's. Does not recurse: a launch may hold any number of nodes in a row.
  int value(ValueId id, const IndexMap& map, Level level);
  // A new instruction: a pointwise op on earlier ones.
  int op(const OpDef& def, std::vector<int> operands, DType dtype);

 private:
  using Key = std::tuple<ValueId, Level, std::string>;

  // A value that is read: of `id`, at map(index).
  struct Read {
    ValueId id = kNoValue;
    IndexMap map;
    Level level = Level::kElement;
  };
  // A value that waits for what it reads.
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
  int add_access(const Place& place, DType dtype, const IndexMap& map, Level level);
  int constant(std::uint32_t bits, DType dtype);
  int integer(std::int64_t value);
  int push(Instr instr);
  [[nodiscard]] bool is_stored(ValueId id) const;
  // Needs no other value: a leaf, a generator, a product, or what lies in memory.
  [[nodiscard]] bool is_source(ValueId id) const;

  LaunchContext& ctx_;
  ScalarProgram& program_;
  std::int64_t rows_, cols_;
  bool has_rows_;
  ValueId accumulated_;
  std::map<Key, int> made_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
