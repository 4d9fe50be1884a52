// SPDX-License-Identifier: MIT
// Common parts of the selective scan shaders. Names are those of ops/selective_scan.cpp; `ungated`
// is o, and `bc` is B and C in one tensor. Private to codegen/wgsl/selective_scan.
#pragma once

#include <string>

#include "codegen/wgsl/parts.h"
#include "kernel/selective.h"

namespace tensorgrad::wgsl {

class SelectiveWriter {
 protected:
  SelectiveWriter(const Launch& launch, const WgslOptions& options);

  static constexpr std::int64_t kChunk = SelectiveSizes::kChunk;

  [[nodiscard]] bool has(SelectiveInput which) const {
    return !opaque_.input(which).instrs.empty();
  }
  // gated(): y is o silu(z) rather than o. keeps_ungated(): the forward pass also stores o for the
  // backward pass.
  [[nodiscard]] bool gated() const { return has(SelectiveInput::kZ); }
  [[nodiscard]] bool keeps_ungated() const { return gated() && scan_.keeps_states; }
  // Writes fn sigmoid_of(z) for a scalar or vector type. It uses exp2, as all decays here do;
  // tg_sigmoid of maps takes scalars only and calls tg_exp.
  void write_sigmoid(const std::string& type);
  // Returns the step size for the given `delta`, a scalar or vector expression.
  [[nodiscard]] std::string step_of(const std::string& delta) const {
    return scan_.resets ? "abs(" + delta + ")" : delta;
  }
  [[nodiscard]] bool forward() const { return scan_.pass == SelectivePass::kForward; }

  // Write the functions that read all inputs, or one: fn u_at(p, i, q) and so on.
  void write_inputs();
  void write_input(SelectiveInput which, const std::string& name, std::int64_t batch,
                   std::int64_t rows, std::int64_t columns);
  void write_states();
  // Opens main(). A workgroup processes one segment of the steps of a block of channels of one
  // batch. Declares `p`, `block`, `segment`, its `first` chunk, and the number of its `chunks`.
  void open_workgroup(std::int64_t threads, std::int64_t segments);
  // Writes fn storeN(p, i, q, x), which stores an element of result N, [batch, rows, columns].
  void write_result(std::size_t which, std::int64_t rows, std::int64_t columns);
  // Like write_result(), but over another domain. The lines of `scope` compute its coordinates from
  // p, i and q.
  void write_store(std::size_t which, const Domain& domain, Scope& scope);
  // True if saved states are stored in pairs (kernel/selective_kept.h). A thread with two states of
  // two channels then reads one vector.
  [[nodiscard]] bool by_pairs() const;
  [[nodiscard]] std::int64_t kept_rows() const;
  [[nodiscard]] std::int64_t kept_columns() const;
  // Writes the store functions of the forward pass for the last state and the saved states.
  void write_state_results();
  // Writes fn placeN(p, i, q), which returns the index of an element of result N. Its rows must be
  // `columns` elements apart.
  void write_place(std::size_t which, std::int64_t rows, std::int64_t columns);
  // Returns the distance in elements from result 0 to a result of the same shape. All results are
  // parts of one tensor.
  [[nodiscard]] std::int64_t behind_first(std::size_t which) const;

  const Launch& l_;
  const OpaqueLaunch& opaque_;
  const WgslOptions& options_;
  const SelectiveParams& scan_;
  const SelectiveSizes& s_;
  Window window_;
  Module module_;
  Scope scope_;
};

// selective_by_block() returns true if the launch uses the variant by blocks of channels.
// write_selective_block() writes that variant.
bool selective_by_block(const Launch& launch, const WgslOptions& options);
Shader write_selective_block(const Launch& launch, const WgslOptions& options);

}  // namespace tensorgrad::wgsl
