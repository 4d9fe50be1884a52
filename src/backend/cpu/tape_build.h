// SPDX-License-Identifier: MIT
// Turns a scalar program into a Tape. Used by Tape's constructor alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backend/cpu/tape.h"

namespace tensorgrad::cpu {

class TapeBuilder {
 public:
  TapeBuilder(const Prepare& prepare, const TapeSpec& spec, Tape& tape);
  void build();

 private:
  enum class Form { kUniform, kRow, kElement };
  // A constant plus coordinates (kCoord) of the domain, each so many times.
  struct IndexSum {
    struct Term {
      std::int64_t divisor = 1, modulus = 1, factor = 1;
    };
    std::int64_t offset = 0;
    std::vector<Term> terms;
  };

  void build_straight();
  void build_passes();
  void find_uniforms();
  void find_indices();
  [[nodiscard]] std::optional<View> index_view(IndexSum sum) const;
  void add_uniform(int i, const Instr& instr);
  void make_store(int s);
  void emit(int i, TapeOps& ops);
  TapeOp make_op(int i, const Instr& instr);
  void set_operands(const Instr& instr, TapeOp& op, TapeOps& ops);
  int element_operand(int i, TapeOps& ops);
  void place_stores(TapeOps& ops, const std::vector<int>& stores);
  [[nodiscard]] bool safe_after(const TapeOps& ops, std::size_t at, int binding) const;
  void allocate_slots();
  void count_cost();

  [[nodiscard]] const Instr& instr(int i) const;
  [[nodiscard]] Form form(int i) const;
  const Walker* walker_of(int access);
  const Walker* index_walker(int i, const Instr& instr);
  std::int64_t gather_run(const Instr& instr);
  [[nodiscard]] std::int64_t period(int i) const;
  void check_bounds(const IndexMap& map, int binding, DType dtype, std::int64_t beyond) const;
  int new_reg(TapeReg::Home home);

  const Prepare& prepare_;
  const TapeSpec& spec_;
  Tape& tape_;
  std::vector<bool> uniform_;
  std::map<int, View> indices_;     // what coordinates alone add up to: a view's offsets
  std::vector<const Word*> splat_;  // of each uniform value
  std::vector<int> reg_;            // of each row or element value; -1: not computed yet
  std::map<int, int> spread_;       // element registers of row and uniform values
  std::map<int, const Walker*> access_walkers_;
  std::map<const Word*, int> shared_regs_;
  std::map<int, int> borrowed_;          // register -> binding it may point into
  std::map<int, std::int64_t> periods_;  // register -> elements that repeat, of kPeriod
  TapeOps* spread_ops_ = nullptr;        // a pass's `spreads`, or in line
};

}  // namespace tensorgrad::cpu
