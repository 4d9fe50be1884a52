// SPDX-License-Identifier: MIT
// Batched matrix product with equal batch axes: out[b,m,n] = sum_k a[b,m,k] * b[b,k,n].
//
// With kPartDepth, a split-K product: out[p,m,n] is the sum over part p of k. It has no batch axes
// and is introduced after autodiff.
#include <algorithm>

#include "base/check.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Type infer_matmul(std::span<const Type> in, const Attrs& attrs) {
  const Shape& a = in[0].shape;
  const Shape& b = in[1].shape;
  for (const Type& type : in) {
    if (type.dtype != DType::kF32) {
      dtype_error("expected f32, or both i32 or both u32, got " + to_string(in[0]) + " and " +
                  to_string(in[1]));
    }
    if (type.shape.size() < 2)
      shape_error("expected at least two axes, got " + to_string(type.shape));
  }
  const std::string both = "a " + to_string(a) + ", b " + to_string(b);
  if (a.size() != b.size()) shape_error("numbers of axes differ: " + both);
  const std::size_t rank = a.size();
  if (a[rank - 1] != b[rank - 2]) shape_error("inner sizes differ: " + both);
  Shape out = a;
  out[rank - 1] = b[rank - 1];
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (a[d] != b[d]) shape_error("batch sizes differ: " + both);
  }
  if (attrs.has(ops::kPartDepth)) {
    CHECK(rank == 2);
    const std::int64_t k = a[1], each = attrs.integer(ops::kPartDepth);
    out.insert(out.begin(), (k + each - 1) / each);
  }
  return {DType::kF32, out};
}

void eval_matmul(const EvalContext& ctx, RefTensor& out) {
  const Shape& a_shape = ctx.inputs[0]->type.shape;
  const std::size_t rank = a_shape.size();
  const auto m = static_cast<size_t>(a_shape[rank - 2]), k = static_cast<size_t>(a_shape[rank - 1]);
  const auto n = static_cast<size_t>(out.type.shape[rank - 1]);
  const auto total = static_cast<size_t>(numel(out.type.shape));
  const bool parts = ctx.node.attrs.has(ops::kPartDepth);
  const std::size_t each = parts ? static_cast<size_t>(ctx.node.attrs.integer(ops::kPartDepth)) : k;
  out.data.assign(total, 0);
  for (std::size_t z = 0; z < total / (m * n); ++z) {
    const std::size_t batch = parts ? 0 : z, first = parts ? z * each : 0;
    const double* a = ctx.inputs[0]->data.data() + batch * m * k;
    const double* b = ctx.inputs[1]->data.data() + batch * k * n;
    double* c = out.data.data() + z * m * n;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t p = first; p < std::min(k, first + each); ++p) {
        for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
      }
    }
  }
}

// da = dy . b^T, db = a^T . dy
std::vector<ValueId> grad_matmul(GradContext& ctx) {
  return {op::matmul(ctx.dy(), op::transpose(ctx.in(1))).id,
          op::matmul(op::transpose(ctx.in(0)), ctx.dy()).id};
}

}  // namespace

namespace ops {

constinit const OpDef matmul =
    make_op("matmul", OpKind::kContraction, 2, infer_matmul, grad_matmul, eval_matmul);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
