// SPDX-License-Identifier: MIT
// Vectorized launches: each step handles four neighbors, and contiguous loads and stores move as
// one vector. Private to codegen/wgsl.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {

inline constexpr int kFour = 4;

// A program that may be vectorized along an axis of its domain: `width` elements at a time, the
// first at a multiple of `width`.
struct Vectorized {
  const ScalarProgram* program = nullptr;
  Domain domain;
  std::size_t axis = 0;
  bool operand = false;  // vectorize only if an access becomes a vector
  bool chosen = false;   // initially whether the program may be vectorized, then the decision
  std::vector<Store> stores = {};
  // Its words pack several elements along the axis, which also justifies vectorization.
  bool packed = false;
  int width = kFour;
};

// Decides which programs to vectorize, and returns the bindings that become arrays of vectors.
// `parts` must list all programs of the launch.
std::set<int> choose_vectorized(const Launch& launch, const std::vector<Vectorized*>& parts,
                                const WgslOptions& options);

// Writes a program for `width` neighbors at once, beginning at the named coordinates.
class VectorWriter {
 public:
  VectorWriter(Module& module, const Vectorized& part, const std::set<int>& vectors,
               const std::string& acc = {});
  // Writes the instructions that `roots` depend on, including themselves.
  void write(Scope& scope, const std::vector<int>& roots);
  // Returns an instruction's values as one vector.
  [[nodiscard]] std::string value(int instr) const;
  void store(Scope& scope, const Store& store);

 private:
  void load(Scope& scope, int number);
  // Declares the coordinates of the neighbors, once.
  void name_neighbours(Scope& scope);

  Module& module_;
  const Vectorized& part_;
  const std::set<int>& vectors_;
  std::vector<ProgramWriter> writers_;
  std::vector<std::string> whole_;  // per instruction: the name of its vector, if it is one
  bool named_ = false;
};

}  // namespace tensorgrad::wgsl
