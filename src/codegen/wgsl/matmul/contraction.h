// SPDX-License-Identifier: MIT
// Common parts of all variants of a contraction: operands and epilogue as WGSL functions. Private
// to codegen/wgsl.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/wgsl/matmul/operand.h"

namespace tensorgrad::wgsl {

// Writes the functions a_at, b_at and finish, which all variants call.
class ContractionParts {
 public:
  ContractionParts(const Launch& launch, const WgslOptions& options);

 protected:
  // Writes finish(): the epilogue and the stores of one result, or of four. Results of
  // bias_grad_row and bias_grad_column go to bias_grad_store. `guarded`: ignores results out of
  // range.
  void write_finish(bool guarded, bool with_bias_grad, const std::set<int>& vectors = {});
  void write_bias_grad();
  // Writes the functions of a tiled variant with these sides and depth, including finish() unless
  // the epilogue is by rows. If `vectorized` is set and the stores allow it, finish() takes four
  // results. If `vec8` is set, operands are vectors of eight f16.
  void write_functions(int side_m, int side_n, int depth, bool vectorized, bool vec8 = false);

  // Number of steps of k that a result sums, and their range. For split-K, write_part() declares
  // the range.
  [[nodiscard]] std::int64_t depth() const {
    return product_.parts > 1 ? product_.part_depth : product_.k;
  }
  [[nodiscard]] std::string first_k() const { return product_.parts > 1 ? "first_k" : "0u"; }
  [[nodiscard]] std::string end_k() const {
    return product_.parts > 1 ? "end_k" : u32_literal(product_.k);
  }
  void write_part(Scope& scope) const;
  // True if the tile depth does not divide a slice of split-K, so that a tile would extend into the
  // next one.
  [[nodiscard]] bool cuts_parts(int tile_depth) const {
    return product_.parts > 1 && product_.part_depth % tile_depth != 0;
  }

  // Declares n0, m0 and z: the origin of the workgroup's tile in a grid of tiles_m x tiles_n tiles
  // per batch.
  void write_tile_place(Scope& scope, int side_m, int side_n, std::int64_t tiles_m,
                        std::int64_t tiles_n) const;

  // Declares `lane` and `row` for `lanes` threads per row, of which the workgroup's first is
  // `first`. Returns the condition under which a thread's row exists; empty (always) if `whole`.
  [[nodiscard]] std::string place_rows(Scope& rows, int lanes, const std::string& first,
                                       bool whole) const;

  // Rows per batch in the launch's row range, and columns, both including ones.
  [[nodiscard]] std::int64_t rows() const {
    return window_.count + (product_.bias_grad_row ? 1 : 0);
  }
  [[nodiscard]] std::int64_t columns() const {
    return product_.n + (product_.bias_grad_column ? 1 : 0);
  }
  [[nodiscard]] std::string batch_of(const std::string& number) const {
    return number + (window_.outer_first > 0 ? " + " + u32_literal(window_.outer_first) : "");
  }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const Launch& launch_;
  const ContractionLaunch& product_;
  const WgslOptions& options_;
  Domain out_domain_;
  Module module_;
  TileOperand a_, b_;
  Vectorized finish_;
  Window window_;
  // NOLINTEND(*-non-private-member-variables-in-classes)
};

// Values of WgslOptions::subgroup_matrix_tile other than the default, largest tiles first. `f16x3`:
// for f32 operands.
std::vector<int> subgroup_matrix_tiles(bool f16x3 = false);

// Writes a variant in which each workgroup has all columns of its 8 or 16 rows. Used for by_rows
// and in fused sequences (options.blocks).
Shader write_row_block(const Launch& launch, const WgslOptions& options);

// Writes the variant with subgroup matrices. Returns false, and leaves `shader` unchanged, if the
// device has none, if the operands are not f16, or if other variants are faster.
bool write_by_subgroup_matrix(const Launch& launch, const WgslOptions& options, Shader& shader);

}  // namespace tensorgrad::wgsl
