// SPDX-License-Identifier: MIT
// Common parts of all variants of attention: operands and results as WGSL functions. Private to
// codegen/wgsl/attention.
#pragma once

#include <set>
#include <string>

#include "codegen/wgsl/vectorize.h"
#include "kernel/attention.h"

namespace tensorgrad::wgsl {

// Writes the functions NAME_line(p, i, at), which returns four elements of line i of an operand,
// and lse_at, delta_at, mask_at, keep_at(p, i, q).
class AttentionParts {
 public:
  AttentionParts(const Launch& launch, const WgslOptions& options)
      : l_(launch),
        opaque_(launch.as<OpaqueLaunch>()),
        s_(kernel_of<AttentionKernel>(launch).sizes),
        pass_(kernel_of<AttentionKernel>(launch).pass),
        options_(options),
        window_(window_of(launch)),
        module_(launch) {}

 protected:
  [[nodiscard]] bool forward() const { return pass_ == AttentionPass::kForward; }
  [[nodiscard]] bool backward() const { return pass_ == AttentionPass::kBackward; }
  // True if the rows of a tile are keys and its columns queries.
  [[nodiscard]] bool keys() const { return pass_ == AttentionPass::kKeys || backward(); }
  [[nodiscard]] bool has(AttentionInput which) const {
    return !opaque_.input(which).instrs.empty();
  }
  [[nodiscard]] std::int64_t rows() const { return keys() ? s_.columns : s_.rows; }
  [[nodiscard]] std::int64_t columns() const { return keys() ? s_.rows : s_.columns; }

  // True if the mask is boolean rather than added to the scores.
  [[nodiscard]] bool truth_mask() const {
    return has(AttentionInput::kMask) &&
           opaque_.input(AttentionInput::kMask).instrs.back().dtype == DType::kBool;
  }

  // Writes the input functions. `vectorized`: store results as vectors if possible.
  void write_inputs(bool vectorized = false);
  // Write fn storeN(p, i, w, x) for one element, and fn storeN_four for four, which are stored as a
  // vector if write_inputs() chose so.
  void write_result(int which, std::int64_t count, std::int64_t width);
  void write_result_of_four(int which, std::int64_t count, std::int64_t width);
  // Write fn addN(p, i, w, x), which adds to an element, and addN_four.
  void write_sum(int which, std::int64_t count, std::int64_t width);
  void write_sum_of_four(int which, std::int64_t count, std::int64_t width);

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const Launch& l_;
  const OpaqueLaunch& opaque_;
  const AttentionSizes& s_;
  AttentionPass pass_;
  const WgslOptions& options_;
  Window window_;
  Module module_;
  // NOLINTEND(*-non-private-member-variables-in-classes)

 private:
  // An operand read in lines of `width` elements.
  struct Lines {
    AttentionInput which;
    std::string name;
    std::int64_t count, width;
    Vectorized vectorized = {};  // no program: the operand is absent
  };
  void write_input(AttentionInput which, const std::string& name, std::int64_t count,
                   std::int64_t width);
  void write_line(const Lines& lines, const std::set<int>& bindings);
  [[nodiscard]] Domain result_domain(int which) const;
  [[nodiscard]] const Store* store_of(int which) const;  // null if the result is not needed
  void write_store(int which, const Domain& domain, const std::string& name,
                   const std::string& type, bool four, bool add = false);
  void write_four(int which, const Domain& domain, const std::string& one, bool add);

  std::set<int> vectors_;  // bindings that are arrays of vectors
};

// Writes the variant with subgroup matrices. Returns false, and leaves `shader` unchanged, if the
// device has none, if the launch does not qualify, or if no tile fits.
bool write_attention_by_subgroup_matrix(const Launch& launch, const WgslOptions& options,
                                        Shader& shader);

// Writes the variant for few queries and many keys. Returns false, and leaves `shader` unchanged,
// if the launch does not qualify.
bool write_attention_of_few_queries(const Launch& launch, const WgslOptions& options,
                                    Shader& shader);

}  // namespace tensorgrad::wgsl
