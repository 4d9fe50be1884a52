// SPDX-License-Identifier: MIT
// What the shaders of selective scans have in common. Names as in ops/selective_scan.cpp, with
// `ungated` for o, and `bc` for B and C as they lie side by side. Private to
// codegen/wgsl/selective_scan.
#pragma once

#include <string>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {

class SelectiveWriter {
 protected:
  SelectiveWriter(const Launch& launch, const WgslOptions& options);

  static constexpr std::int64_t kChunk = SelectiveSizes::kChunk;

  [[nodiscard]] bool has(SelectiveInput which) const { return !l_.input(which).instrs.empty(); }
  // Is y not o, but o silu(z)? And does the forward pass then keep o for the backward one?
  [[nodiscard]] bool gated() const { return has(SelectiveInput::kZ); }
  [[nodiscard]] bool keeps_ungated() const { return gated() && keeps_states(l_); }
  // fn sigmoid_of(z) of numbers of this type, also of vectors; by a bare exp2, as all that decays
  // here, where maps' tg_sigmoid is of one number and calls tg_exp.
  void write_sigmoid(const std::string& type);
  // The step of which `delta` is given, as is or in vectors.
  [[nodiscard]] std::string step_of(const std::string& delta) const {
    return l_.resets ? "abs(" + delta + ")" : delta;
  }
  [[nodiscard]] bool forward() const { return l_.selective == SelectivePart::kForward; }

  // fn u_at(p, i, q), and so on: of all inputs, or of one.
  void write_inputs();
  void write_input(SelectiveInput which, const std::string& name, std::int64_t batch,
                   std::int64_t rows, std::int64_t columns);
  void write_states();
  // Opens main() of a workgroup that has the channels of a block of one batch, and of its steps a
  // segment: `p`, `block`, `segment`, its `first` chunk and how many `chunks` it has.
  void open_unit(std::int64_t threads, std::int64_t segments);
  // fn storeN(p, i, q, x), over [batch, rows, columns].
  void write_result(std::size_t which, std::int64_t rows, std::int64_t columns);
  // The same, over a domain whose coordinates the lines of `scope` make of these.
  void write_store(std::size_t which, const Domain& domain, Scope& scope);
  // Kept states may lie by pairs (kernel/selective_kept.h), so that who works on two states of two
  // channels reads one vector.
  [[nodiscard]] bool by_pairs() const;
  [[nodiscard]] std::int64_t kept_rows() const;
  [[nodiscard]] std::int64_t kept_columns() const;
  // The states of the forward pass: those after the last step, and those that are kept.
  void write_state_results();
  // fn placeN(p, i, q): where a result lies. Rows are as long as there are columns.
  void write_place(std::size_t which, std::int64_t rows, std::int64_t columns);
  // How far behind the first result another one of steps lies: all lie in one tensor.
  [[nodiscard]] std::int64_t behind_first(std::size_t which) const;

  const Launch& l_;
  const WgslOptions& options_;
  SelectiveSizes s_;
  Window window_;
  Module module_;
  Scope scope_;
};

// Whether a launch goes by blocks of channels; and its shader.
bool selective_by_block(const Launch& launch, const WgslOptions& options);
Shader write_selective_block(const Launch& launch, const WgslOptions& options);

}  // namespace tensorgrad::wgsl
