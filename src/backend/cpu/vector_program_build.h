// SPDX-License-Identifier: MIT
// Compiles a scalar program to a VectorProgram. Used only by VectorProgram's constructor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

class VectorProgramBuilder {
 public:
  VectorProgramBuilder(const Prepare& prepare, const VectorProgramSpec& spec,
                       VectorProgram& vector_program);
  void build();

 private:
  enum class Form { kUniform, kRow, kElement };
  // A constant plus a linear combination of coordinates (kCoord) of the domain.
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
  void emit(int i, VectorOps& ops);
  VectorOp make_op(int i, const Instr& instr);
  void set_operands(const Instr& instr, VectorOp& op, VectorOps& ops);
  int element_operand(int i, VectorOps& ops);
  void place_stores(VectorOps& ops, const std::vector<int>& stores);
  [[nodiscard]] bool safe_after(const VectorOps& ops, std::size_t at, int binding) const;
  void allocate_slots();
  void count_cost();

  [[nodiscard]] const Instr& instr(int i) const;
  [[nodiscard]] Form form(int i) const;
  const Walker* walker_of(int access);
  const Walker* index_walker(int i, const Instr& instr);
  std::int64_t gather_run(const Instr& instr);
  [[nodiscard]] std::int64_t period(int i) const;
  void check_bounds(const IndexMap& map, int binding, DType dtype, std::int64_t beyond) const;
  int new_reg(VectorRegister::Home home);

  const Prepare& prepare_;
  const VectorProgramSpec& spec_;
  VectorProgram& vector_program_;
  std::vector<bool> uniform_;
  std::map<int, View> indices_;     // linear combinations of coordinates, as offsets of views
  std::vector<const Word*> splat_;  // per uniform value
  std::vector<int> reg_;            // per row or element value; -1: not computed yet
  std::map<int, int> spread_;       // element registers of broadcast row and uniform values
  std::map<int, const Walker*> access_walkers_;
  std::map<const Word*, int> shared_regs_;
  std::map<int, int> borrowed_;          // register -> binding it may point into
  std::map<int, std::int64_t> periods_;  // register -> period of a kPeriod load
  VectorOps* spread_ops_ = nullptr;      // a pass's `spreads`, or the list of all ops
};

}  // namespace tensorgrad::cpu
