// SPDX-License-Identifier: MIT
// All primitive ops by name: pointwise and structured ones.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op_def.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace ops {
// Leaves. parameter{name, offset} and arena{name, offset}: `offset` is the position in the
// parameter arena.
extern const OpDef parameter, arena, input, data, state, scalar, constant, literal;
extern const OpDef iota;
extern const OpDef reshape, permute, broadcast, slice, pad, flip, unfold;
extern const OpDef reduce_sum, reduce_max, reduce_min, argmax, argmin;
extern const OpDef concat, pack, gather, scatter_add, index_update, matmul;
// reduce_scatter{offsets, size, shards}: like pack, but the result has only this rank's part of the
// mean over all ranks. The host computes it (plan/bucket_placement.h).
extern const OpDef reduce_scatter;
// Attribute of a split-K matmul: the number of elements of K in each part.
inline constexpr const char* kPartDepth = "part_depth";
extern const OpDef attention, attention_lse, attention_dq, attention_dkv, attention_backward;
extern const OpDef selective_scan, selective_scan_adjoint, selective_scan_grad;
extern const OpDef custom;  // user-defined ops (custom.cpp)
extern const OpDef cumsum, cumprod, linear_recurrence, arg_cummax, arg_cummin, argsort,
    topk_indices, sample_tokens;
// Identities of their first operand that direct autodiff and fusion (marks.cpp).
extern const OpDef barrier, checkpoint, custom_gradient;
// Macro ops, which the pass `expand` replaces by other ops.
extern const OpDef conv2d, conv_transpose2d, conv2d_weight;
extern const OpDef sum_pool, sum_unpool, max_pool, max_pool_index, max_unpool, max_pick;
// One declaration for each line of pointwise.def: ops::add, ops::exp, ops::where, ops::cast ...
}  // namespace ops

// Returns the op of that name, or null.
const OpDef* find_op(std::string_view name);
// Returns all ops, structured ones first.
const std::vector<const OpDef*>& all_ops();

}  // namespace tensorgrad::inline TENSORGRAD_ABI
