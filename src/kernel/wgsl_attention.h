// SPDX-License-Identifier: MIT
// What all forms of attention have in common: operands and results as functions of WGSL. Private to
// kernel/wgsl_attention*.cpp.
#pragma once

#include <set>
#include <string>

#include "kernel/wgsl_fours.h"

namespace tensorgrad::wgsl {

// Functions NAME_line(p, i, at), four elements of line i of an operand, and lse_at, delta_at,
// mask_at, keep_at(p, i, q).
class AttentionParts {
 public:
  AttentionParts(const Launch& launch, const WgslOptions& options)
      : l_(launch), options_(options), window_(window_of(launch)), module_(launch) {}

 protected:
  [[nodiscard]] bool forward() const { return l_.part == AttentionPart::kForward; }
  [[nodiscard]] bool keys() const { return l_.part == AttentionPart::kKeys; }
  [[nodiscard]] bool has(AttentionInput which) const { return !l_.input(which).instrs.empty(); }
  [[nodiscard]] std::int64_t rows() const { return keys() ? l_.n : l_.m; }
  [[nodiscard]] std::int64_t columns() const { return keys() ? l_.m : l_.n; }

  // A mask that says who counts, not one that is added.
  [[nodiscard]] bool truth_mask() const {
    return has(AttentionInput::kMask) &&
           l_.input(AttentionInput::kMask).instrs.back().dtype == DType::kBool;
  }

  // `fours`: results are stored in fours where that goes.
  void write_inputs(bool fours = false);
  // fn storeN(p, i, w, x) of one element; fn storeN_four of four, which lie in vectors where
  // write_inputs() chose so.
  void write_result(int which, std::int64_t count, std::int64_t width);
  void write_result_of_four(int which, std::int64_t count, std::int64_t width);

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const Launch& l_;
  const WgslOptions& options_;
  Window window_;
  Module module_;
  // NOLINTEND(*-non-private-member-variables-in-classes)

 private:
  // An operand that comes in lines of `width` elements.
  struct Lines {
    AttentionInput which;
    std::string name;
    std::int64_t count, width;
    InFours fours = {};  // without a program: there is none
  };
  void write_input(AttentionInput which, const std::string& name, std::int64_t count,
                   std::int64_t width);
  void write_line(const Lines& lines, const std::set<int>& bindings);
  [[nodiscard]] Domain result_domain(int which) const;
  [[nodiscard]] const Store* store_of(int which) const;  // null: the result is not wanted
  void write_store(int which, const Domain& domain, const std::string& name,
                   const std::string& type, bool four);

  std::set<int> vectors_;  // bindings
};

// By the device's matrix units. False where it has none, where the launch is none that they may
// take, or where no tile fits; `shader` is as it was then.
bool write_attention_by_units(const Launch& launch, const WgslOptions& options, Shader& shader);

}  // namespace tensorgrad::wgsl
