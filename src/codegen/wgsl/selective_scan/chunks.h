// SPDX-License-Identifier: MIT
// Staging for selective scans that process the steps in chunks: copies the inputs of a chunk to
// workgroup memory. Private to codegen/wgsl/selective_scan.
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

  // An input that is prefetched in vectors of `width` along the last axis, by `fn NAME_vector(p, i,
  // q)`. For each chunk, a thread reads row `row` and the rows `behind` it, `pieces` adjacent
  // vectors of each. The values are variables `next_NAMEn`.
  struct Staged {
    SelectiveInput which;
    std::string name;
    int width;
    std::int64_t rows, columns, chunk_rows;  // of all chunks; of one chunk
    std::vector<std::int64_t> behind;
    std::string row, column, real;  // real: empty if always valid; vec4<bool> for 2 pieces
    int pieces = 1;
    Vectorized vectorized = {};
    // Set if the program only loads one vector and the rows have a constant stride: the stride in
    // vectors. `place` is the code that computes the position of `row`, and `at` the variable that
    // holds it.
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
    // Returns `value`, or 0 if the element does not exist.
    [[nodiscard]] std::string only_real(const std::string& value, std::size_t n) const;
    [[nodiscard]] std::string next(std::size_t n) const {
      return "next_" + name + std::to_string(n);
    }
  };

  [[nodiscard]] bool whole() const { return s_.length % kChunk == 0; }
  [[nodiscard]] bool euler() const { return !scan_.zero_order_hold; }
  // Number of states, rounded up to the threads that share a channel.
  [[nodiscard]] std::int64_t padded() const { return 4 * s_.threads_per_channel(); }

  // Returns the condition that the `width` numbers from `first` are below the limit: one bool if it
  // is the same for all, else a vector of bools.
  [[nodiscard]] static std::string run_below(const std::string& first, int width,
                                             std::int64_t limit);

  // Adds B and C to the prefetched inputs, in vectors of four states of one of them, in the order
  // of the staged chunk. The work is divided among `threads`; own_bc() is the number of vectors per
  // thread.
  void bring_bc(std::int64_t threads);
  void open_bc(Scope& scope) const;
  [[nodiscard]] std::int64_t own_bc(std::int64_t threads) const;

  // Writes the functions that read the prefetched inputs. All other inputs and the results are
  // scalar.
  void write_staged();
  // Reads the first chunk of a thread. Steps past the end read as zeros, which change nothing. Also
  // declares the positions from which bring_next() reads.
  void bring_first(const std::string& chunk);
  // Reads the next chunk, number `coming`. All threads read all their values without branches,
  // because copying a value waits until it is loaded.
  void bring_next(Scope& scope, const std::string& chunk) const;
  // Sets the values to zero if there is no next chunk. Otherwise the consumed values would occupy
  // registers until here.
  void bring_none(Scope& scope) const;

  // Applies the gate to the prefetched vector n of dy. Declares `dzN`, the gradient of z, and turns
  // the vector into the gradient of o.
  static void pass_gate(Scope& scope, const std::string& n);

  std::vector<Staged> staged_;

 private:
  void write_vector(Staged& staged, const std::set<int>& vectors);
  // Returns true if a chunk may extend past the last step: the chunk that is read first, or any
  // other.
  [[nodiscard]] bool ragged(const Staged& staged, bool first) const;
  // Returns the expression that reads vector n of the rows that begin at `row`.
  [[nodiscard]] std::string read(const Staged& staged, const std::string& row, std::size_t n,
                                 bool first) const;
};

}  // namespace tensorgrad::wgsl
