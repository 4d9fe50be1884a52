// SPDX-License-Identifier: MIT
// What all forms of a contraction have in common: its operands and its epilogue as functions of
// WGSL. Private to kernel/wgsl_*.cpp.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kernel/wgsl_operand.h"

namespace tensorgrad::wgsl {

// Functions a_at, b_at and finish, which all forms call.
class ContractionParts {
 public:
  ContractionParts(const Launch& launch, const WgslOptions& options);

 protected:
  // The epilogue and the stores of one result, or of four; what ones add to the product goes to its
  // own store. `guarded`: results beyond the ends are dropped.
  void write_finish(bool guarded, bool with_ones, const std::set<int>& vectors = {});
  void write_ones();
  // The functions of a form in tiles of these sides and depth; finish too, unless the epilogue goes
  // by rows. Results come in fours where `fours` and the stores allow it; `eights`: operands as
  // vectors of f16.
  void write_functions(int side_m, int side_n, int depth, bool fours, bool eights = false);

  // Steps of k that a result adds up, and where they begin and end; a part's are named here.
  [[nodiscard]] std::int64_t depth() const {
    return launch_.parts > 1 ? launch_.part_depth : launch_.k;
  }
  [[nodiscard]] std::string first_k() const { return launch_.parts > 1 ? "first_k" : "0u"; }
  [[nodiscard]] std::string end_k() const {
    return launch_.parts > 1 ? "end_k" : u32_literal(launch_.k);
  }
  void write_part(Scope& scope) const;
  // Tiles do not go beyond the end of a part, where another begins.
  [[nodiscard]] bool cuts_parts(int tile_depth) const {
    return launch_.parts > 1 && launch_.part_depth % tile_depth != 0;
  }

  // Names n0, m0 and z: where the tile of the workgroup begins, of so many down and across.
  void write_tile_place(Scope& scope, int side_m, int side_n, std::int64_t tiles_m,
                        std::int64_t tiles_n) const;

  // Of this launch's window, for each of its batches.
  [[nodiscard]] std::int64_t rows() const { return window_.count + (launch_.ones_row ? 1 : 0); }
  [[nodiscard]] std::int64_t columns() const { return launch_.n + (launch_.ones_column ? 1 : 0); }
  [[nodiscard]] std::string batch_of(const std::string& number) const {
    return number + (window_.outer_first > 0 ? " + " + u32_literal(window_.outer_first) : "");
  }
  [[nodiscard]] bool has_ones() const { return launch_.ones_row || launch_.ones_column; }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const Launch& launch_;
  const WgslOptions& options_;
  Domain out_domain_;
  Module module_;
  TileOperand a_, b_;
  InFours finish_;
  Window window_;
  // NOLINTEND(*-non-private-member-variables-in-classes)
};

// What WgslOptions::tile and unit_tile may be but for their defaults, largest tiles first.
std::vector<int> tile_numbers();
std::vector<int> unit_tile_numbers();

// With all columns of 16 rows for each workgroup: for by_rows, and where options.blocks says so.
Shader write_row_block(const Launch& launch, const WgslOptions& options);

// By the device's matrix units. False where it has none, where the operands are none that they
// take, or where other forms do better; `shader` is as it was then.
bool write_by_matrix_units(const Launch& launch, const WgslOptions& options, Shader& shader);

}  // namespace tensorgrad::wgsl
