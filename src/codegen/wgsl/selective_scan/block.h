// SPDX-License-Identifier: MIT
// The shader of a selective scan by blocks of channels. Private to codegen/wgsl/selective_scan.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/wgsl/selective_scan/chunks.h"

namespace tensorgrad::wgsl {

// A workgroup processes a block of at least four channels of one batch. A thread has four states of
// one channel.
class SelectiveBlock : SelectiveChunks {
 public:
  SelectiveBlock(const Launch& launch, const WgslOptions& options);
  Shader write();

 private:
  void open_channel();
  void share();
  [[nodiscard]] std::int64_t shared_bytes() const;
  // Staging of per-step values in workgroup memory, in vectors of four channels. of_steps() returns
  // their names.
  [[nodiscard]] std::vector<std::string> of_steps() const;
  [[nodiscard]] std::int64_t quads() const { return block_ / 4; }
  [[nodiscard]] std::int64_t rows_at_once() const { return threads_ / quads(); }
  [[nodiscard]] std::int64_t own_rows() const;
  void list_staged();
  void unload(Scope& scope) const;
  void store_dz(Scope& scope, std::int64_t e) const;
  void read_quad(Scope& scope, const std::string& name, const std::string& call) const;
  void store_quad(Scope& scope, const std::string& name, const std::string& call,
                  const std::string& condition) const;
  [[nodiscard]] std::string state_of(const std::string& vector, std::int64_t i) const;
  [[nodiscard]] std::string read_state(const std::string& call, const std::string& n,
                                       const std::string& rest) const;
  [[nodiscard]] std::string there(std::int64_t i) const;
  void load_step(Scope& scope, std::int64_t i, bool all) const;
  void open_step(Scope& scope, std::int64_t i, bool all) const;
  [[nodiscard]] std::string unless_reset(const std::string& state, std::int64_t i) const;
  void write_forward();
  void sum_outputs(Scope& scope, std::int64_t from) const;
  // Distance in steps between the outputs of a chunk that one thread finishes.
  [[nodiscard]] std::int64_t rows_between() const {
    return std::min(threads_per_channel_, sums_.steps);
  }
  void write_backward();
  void write_step_back(Scope& scope, std::int64_t i) const;

  // Sums of the backward pass. For each step, the gradients of u and delta are the sums of `of_u`
  // and `of_delta` over states. Those of B and C are the sums of `of_b` and `of_c` over channels.
  void choose_sums();
  void share_sums();
  [[nodiscard]] std::int64_t sums_bytes() const;
  void write_sums();
  void give_to_sums(Scope& scope, std::int64_t i) const;
  void sum_steps(Scope& scope, std::int64_t from) const;
  void store_skip();
  void share_out(Scope& scope, const Scope& body, std::int64_t count) const;
  void store_bc(Scope& scope, const std::string& vector, const std::string& i,
                const std::string& value) const;

  // - steps: number of steps summed at a time
  // - shares: threads per sum over channels (backward only)
  // - pitch: distance of the vectors that are summed, padded to avoid bank conflicts (backward
  //   only)
  struct Sums {
    std::int64_t steps = 1, shares = 1, pitch = 1;
  };
  [[nodiscard]] std::int64_t vectors() const { return sums_.steps * 2 * threads_per_channel_; }
  [[nodiscard]] bool even() const { return s_.channels % block_ == 0; }
  static std::string component(std::int64_t i) { return std::string(1, "xyzw"[i]); }

  std::int64_t block_, threads_per_channel_, threads_;
  Sums sums_;
};

}  // namespace tensorgrad::wgsl
