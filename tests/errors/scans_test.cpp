// SPDX-License-Identifier: MIT
// Mistakes with recurrences and state space models.
#include <optional>

#include "errors/example.h"

namespace tensorgrad::testing {

using ScanErrors = Traced;

TEST_F(ScanErrors, associative_scan_function_reduces) {
  const auto combine = [](Tensor a, Tensor b) { return sum(a + b, 0, true); };
  EXPECT_ERROR(associative_scan(combine, x, 0), ShapeError,
               "associative_scan: the function returned f32[1,3] for two f32[3,3]");
}

TEST_F(ScanErrors, linear_recurrence_initial_shape_differs) {
  EXPECT_ERROR(linear_recurrence(x, x, 1, x), ShapeError,
               "linear_recurrence: initial must be [4,1] for a [4,3] along axis 1, got [4,3]");
}

TEST_F(ScanErrors, linear_recurrence_of_integers) {
  EXPECT_ERROR(linear_recurrence(i, i, 0), DtypeError,
               "linear_recurrence: expected f32, got i32[4]");
}

TEST_F(ScanErrors, linear_recurrence_shapes_differ) {
  EXPECT_ERROR(linear_recurrence(x, y, 0), ShapeError,
               "linear_recurrence: shapes differ: a [4,3], b [4,2]");
}

TEST_F(ScanErrors, selective_scan_of_matrices) {
  EXPECT_ERROR(selective_scan(x, x, y, x, x), ShapeError,
               "selective_scan: expected u [B, L, D], got [4,3]");
}

TEST_F(ScanErrors, selective_scan_too_few_documents) {
  const Tensor u = unsqueeze(x, 0), gates = matmul(u, transpose(x));
  const Tensor documents = iota({1, 3}, 1);
  EXPECT_ERROR(selective_scan(u, u, transpose(x), gates, gates, {.documents = documents}),
               ShapeError, "selective_scan: expected documents [1,4], got [1,3]");
}

TEST_F(ScanErrors, selective_scan_gate_shape_differs) {
  const Tensor u = unsqueeze(x, 0);
  const Tensor rate = narrow(transpose(x, 0, 1), 1, 0, 2);
  const Tensor gate = narrow(u, 1, 0, 1);
  EXPECT_ERROR(selective_scan(u, u, rate, narrow(u, 2, 0, 2), narrow(u, 2, 0, 2), {.z = gate}),
               ShapeError, "selective_scan: expected z [1,4,3], got [1,1,3]");
}

TEST_F(ScanErrors, selective_scan_rate_shape_differs) {
  const Tensor u = unsqueeze(x, 0);
  EXPECT_ERROR(selective_scan(u, u, y, u, u), ShapeError,
               "selective_scan: expected A [3, N], got [4,2]");
}

TEST_F(ScanErrors, selective_scan_state_shape_differs) {
  const Tensor u = unsqueeze(x, 0), gates = matmul(u, transpose(x));
  EXPECT_ERROR(selective_scan(u, u, transpose(x), gates, gates, {.initial_state = u}), ShapeError,
               "selective_scan: expected initial_state [1,3,4], got [1,4,3]");
}

TEST_F(ScanErrors, ssd_groups_do_not_divide_heads) {
  const Tensor u = reshape(x, {1, 2, 3, 2}), gates = reshape(y, {1, 2, 2, 2});
  EXPECT_ERROR(ssd(u, u, u, gates, gates), ShapeError,
               "ssd: expected x [B, L, H, P] and B [B, L, G, N] with G dividing H, got [1,2,3,2] "
               "and [1,2,2,2]");
}

TEST_F(ScanErrors, causal_conv1d_documents_of_floats) {
  const Tensor weight = transpose(x), documents = zeros({1, 4});
  EXPECT_ERROR(causal_conv1d(unsqueeze(x, 0), weight, std::nullopt, std::nullopt, documents),
               DtypeError, "causal_conv1d: expected i32 documents, got f32");
}

TEST_F(ScanErrors, causal_conv1d_channels_differ) {
  EXPECT_ERROR(causal_conv1d(unsqueeze(x, 0), y), ShapeError,
               "causal_conv1d: expected weight [3, K] with K of at least 2, got [4,2]");
}

TEST_F(ScanErrors, mamba_width_differs) {
  EXPECT_ERROR(nn::Mamba(8)(x), ShapeError, "Mamba: expected [B, L, 8], got [4,3]");
}

}  // namespace tensorgrad::testing
