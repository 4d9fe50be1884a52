// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/shared_transformer.h"

#include <algorithm>
#include <cmath>

#include "nn/mixer_parts.h"
#include "nn/spoiled_steps.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

std::int64_t shared_mlp_width(std::int64_t d_model, const SharedTransformer::Options& options) {
  return options.mlp_width > 0 ? options.mlp_width : 4 * d_model;
}

}  // namespace

SharedTransformer::Use::Use(std::int64_t width, const Options& options, std::int64_t number,
                            Loc loc)
    : block(number), out(width, width, false, loc) {
  const std::int64_t rank = options.adapter_rank;
  if (options.attention_adapters && rank <= 0)
    throw UserError(
        "SharedTransformer::Use: attention_adapters: expected an adapter_rank above 0, got " +
            std::to_string(rank),
        loc);
  if (rank == 0) return;
  mlp.emplace(width, 2 * shared_mlp_width(width, options), rank, loc);
  if (!options.attention_adapters) return;
  const std::int64_t kv_heads =
      options.attention.kv_heads == 0 ? options.heads : options.attention.kv_heads;
  const std::int64_t kv_width = 2 * width / std::max<std::int64_t>(1, options.heads) * kv_heads;
  q.emplace(2 * width, 2 * width, rank, loc);
  k.emplace(2 * width, kv_width, rank, loc);
  v.emplace(2 * width, kv_width, rank, loc);
}

SharedTransformer::SharedTransformer(std::int64_t width, const Options& options, double epsilon,
                                     Loc loc)
    : d_model(width),
      mlp_width(shared_mlp_width(width, options)),
      norm(2 * width, epsilon, loc),
      attention(2 * width, options.heads, options.attention, loc),
      mlp_norm(width, epsilon, loc),
      fc1(width, 2 * mlp_width, options.mlp_bias, loc),
      fc2(scaled_linear(mlp_width, width, options.attention.residuals, loc, options.mlp_bias)) {
  attention.out_proj =
      scaled_linear(2 * width, width, options.attention.residuals, loc, options.attention.bias);
  attention.scale = 1 / std::sqrt(static_cast<double>(width) / static_cast<double>(options.heads));
}

RecurrentResult SharedTransformer::run(Tensor x, Tensor embedded, const Use& use,
                                       const std::vector<Tensor>& state,
                                       std::optional<Tensor> documents, Loc loc) const {
  demand_width("SharedTransformer", x, d_model, loc);
  demand_width("SharedTransformer", embedded, d_model, loc);
  Tensor h = norm(concat({x, embedded}, -1, loc), loc);
  std::optional<SpoiledSteps> spoiled;
  if (documents) spoiled.emplace(h, *documents, loc);
  Tensor qkv = attention.in_proj(h, loc);
  if (use.q) qkv = qkv + concat({(*use.q)(h, loc), (*use.k)(h, loc), (*use.v)(h, loc)}, -1, loc);
  RecurrentResult made = attention.attend(qkv, state, documents, loc);
  if (spoiled) made.y = spoiled->put_back(made.y, loc);
  h = mlp_norm(made.y, loc);
  Tensor both = fc1(h, loc);
  if (use.mlp) both = both + (*use.mlp)(h, loc);
  const Tensor gate = narrow(both, -1, 0, mlp_width, loc);
  const Tensor up = narrow(both, -1, mlp_width, mlp_width, loc);
  made.y = use.out(fc2(gelu(gate, GeluApproximation::kNone, loc) * up, loc), loc);
  return made;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
