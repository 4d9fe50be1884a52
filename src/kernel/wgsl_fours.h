// SPDX-License-Identifier: MIT
// Launches in steps of four neighbours: what they read and write side by side moves as one vector.
// Private to kernel/wgsl_*.cpp.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kernel/wgsl_parts.h"

namespace tensorgrad::wgsl {

inline constexpr int kFour = 4;

// A program whose elements may be taken four at a time along an axis of its domain, from multiples
// of four on; or, of another width, so many.
struct InFours {
  const ScalarProgram* program = nullptr;
  Domain domain;
  std::size_t axis = 0;
  bool operand = false;  // not worth it where nothing moves as four
  bool chosen = false;   // at first: may it be?
  std::vector<Store> stores = {};
  bool packed = false;  // its words hold several elements along the axis, which is as good
  int width = kFour;
};

// Decides which of these are; gives the bindings that become arrays of vectors. The programs are
// all that the launch has.
std::set<int> choose_fours(const Launch& launch, const std::vector<InFours*>& parts,
                           const WgslOptions& options);

// Writes a program for four elements at once, the first at the coordinates by name.
class FourWriter {
 public:
  FourWriter(Module& module, const InFours& part, const std::set<int>& vectors,
             const std::string& acc = {});
  // The instructions that these need, themselves included.
  void write(Scope& scope, const std::vector<int>& roots);
  // A vector of the four values of an instruction.
  [[nodiscard]] std::string value(int instr) const;
  void store(Scope& scope, const Store& store);

 private:
  void load(Scope& scope, int number);
  // Gives the neighbours' coordinates names, once.
  void name_neighbours(Scope& scope);

  Module& module_;
  const InFours& part_;
  const std::set<int>& vectors_;
  std::vector<ProgramWriter> writers_;
  std::vector<std::string> whole_;  // per instruction: the vector that it is, if it is one
  bool named_ = false;
};

}  // namespace tensorgrad::wgsl
