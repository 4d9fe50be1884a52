// SPDX-License-Identifier: MIT
// What selective scans that go over the steps a chunk at a time have in common: how a chunk comes
// to workgroup memory. Private to codegen/wgsl/selective_scan.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/wgsl/selective_scan/selective_scan.h"
#include "codegen/wgsl/vectorize.h"

namespace tensorgrad::wgsl {

class SelectiveChunks : protected SelectiveWriter {
 protected:
  using SelectiveWriter::SelectiveWriter;

  // Numbers that are read `width` at a time along the last axis, by `fn NAME_vector(p, i, q)`. For
  // each chunk a thread brings those at `row`, and at so many rows behind it, as `next_NAMEn`: of
  // each row so many `pieces` side by side.
  struct Brought {
    SelectiveInput which;
    std::string name;
    int width;
    std::int64_t rows, columns, chunk_rows;  // of all chunks; of one
    std::vector<std::int64_t> behind;
    std::string row, column, real;  // real: empty, always; of two pieces, vec4<bool>
    int pieces = 1;
    Vectorized fours = {};
    // Where nothing but a vector is read, and rows lie evenly apart: how far, and the variable that
    // has the place of `row`, in vectors.
    std::optional<std::int64_t> step = {};
    std::string place = {}, at = {};

    [[nodiscard]] std::string type() const {
      return width == 1 ? "f32" : "vec" + std::to_string(width) + "<f32>";
    }
    [[nodiscard]] std::size_t vectors() const {
      return behind.size() * static_cast<std::size_t>(pieces);
    }
    [[nodiscard]] std::int64_t row_of(std::size_t n) const {
      return behind[n / static_cast<std::size_t>(pieces)];
    }
    [[nodiscard]] std::int64_t piece_of(std::size_t n) const {
      return static_cast<std::int64_t>(n % static_cast<std::size_t>(pieces));
    }
    // `value`, where it is real.
    [[nodiscard]] std::string only_real(const std::string& value, std::size_t n) const;
    [[nodiscard]] std::string next(std::size_t n) const {
      return "next_" + name + std::to_string(n);
    }
  };

  [[nodiscard]] bool whole() const { return s_.length % kChunk == 0; }
  [[nodiscard]] bool euler() const { return !l_.zero_order_hold; }
  // States, with those that fill up the last four.
  [[nodiscard]] std::int64_t padded() const { return 4 * s_.fours(); }

  // Of `width` numbers from `first` on, which are below the limit: one truth if it is the same for
  // all.
  [[nodiscard]] static std::string run_below(const std::string& first, int width,
                                             std::int64_t limit);

  // B and C, four states of one of them at a time, side by side as they lie in a chunk. `threads`
  // bring them; what of them is theirs.
  void bring_bc(std::int64_t threads);
  void open_bc(Scope& scope) const;
  [[nodiscard]] std::int64_t own_bc(std::int64_t threads) const;

  // The functions of all that is brought. What is not brought is read and written number by number.
  void write_brought();
  // Reads the chunk with which a thread begins; zeros behind the last step, where then nothing
  // changes. And where what the others read lies.
  void bring_first(const std::string& chunk);
  // Reads the next chunk, `coming`. Without branches, and all by all threads: who copies a value
  // that has not come yet waits for it.
  void bring_next(Scope& scope, const std::string& chunk) const;
  // There is no next one: zeros, as what has been taken would else hold its registers until here.
  void bring_none(Scope& scope) const;

  // Where there is a gate, of dy's vector number n that has come: makes `dzN`, what flows back into
  // z; from here on the vector is what flows back into o.
  static void pass_gate(Scope& scope, const std::string& n);

  std::vector<Brought> brought_;

 private:
  void write_vector(Brought& brought, const std::set<int>& vectors);
  // Whether there may be steps behind the last, in the chunk that comes first or in others.
  [[nodiscard]] bool ragged(const Brought& brought, bool first) const;
  // Vector number n of the rows from `row` on.
  [[nodiscard]] std::string read(const Brought& brought, const std::string& row, std::size_t n,
                                 bool first) const;
};

}  // namespace tensorgrad::wgsl
