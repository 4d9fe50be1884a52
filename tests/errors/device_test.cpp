// SPDX-License-Identifier: MIT
// Mistakes with devices and environment variables.
#include "errors/example.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {

TEST(DeviceErrors, kind_unknown) {
  EXPECT_ERROR(compiled(plain_loss, {.device = {.kind = "cuda"}}), UserError,
               "device: expected auto, cpu, webgpu or null, got 'cuda'");
}

TEST(DeviceErrors, too_many_threads) {
  EXPECT_ERROR(compiled(plain_loss, {.device = {.kind = "cpu", .threads = 1000}}), UserError,
               "device: expected 1 to 256 threads, or 0 for one per core, got 1000");
}

TEST(DeviceErrors, submit_milliseconds_negative) {
  EXPECT_ERROR(compiled(plain_loss, {.device = {.submit_milliseconds = -5}}), UserError,
               "device: expected submit_milliseconds of at least 0, got -5");
}

TEST(EnvironmentErrors, cpu_target_unknown) {
  const ScopedEnv env("TENSORGRAD_CPU_TARGET", "AVX-2");
  EXPECT_ERROR(
      compiled(plain_loss), UserError,
      StartsWith("TENSORGRAD_CPU_TARGET: unsupported instruction set 'AVX-2'; available: "));
}

TEST(EnvironmentErrors, debug_level_malformed) {
  const ScopedEnv env("TENSORGRAD_DEBUG", "fuse");
  EXPECT_ERROR(compiled(plain_loss), UserError,
               "TENSORGRAD_DEBUG: expected a level from 0 to 5, optionally with names as in "
               "'3,fuse', got 'fuse'");
}

TEST(EnvironmentErrors, skipped_pass_unknown) {
  const ScopedEnv env("TENSORGRAD_SKIP", "cse,fusse");
  EXPECT_ERROR(compiled(plain_loss), UserError,
               "TENSORGRAD_SKIP: expected passes among dce, simplify, fold, cse, "
               "split_k_to_binding_limit, split_k, split_scatter, split_reduce, rematerialize, "
               "fuse, row_epilogue, row_operands, fused_sequences, got 'fusse'");
}

TEST(EnvironmentErrors, shadow_not_a_flag) {
  const ScopedEnv env("TENSORGRAD_SHADOW", "true");
  EXPECT_ERROR(compiled(plain_loss), UserError, "TENSORGRAD_SHADOW: expected 0 or 1, got 'true'");
}

TEST(EnvironmentErrors, threads_not_a_number) {
  const ScopedEnv env("TENSORGRAD_THREADS", "two");
  EXPECT_ERROR(compiled(plain_loss), UserError,
               "TENSORGRAD_THREADS: expected a number from 1 to 256, got 'two'");
}

}  // namespace tensorgrad::testing
