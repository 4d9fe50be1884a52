// SPDX-License-Identifier: MIT
// What an objective does with the other ranks of distributed training.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/numbers.h"
#include "ops/registry.h"
#include "train/objective.h"
#include "train/training_graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

std::vector<StateEntry> ObjectiveImpl::changed_states() const {
  const Graph& graph = session().compiled().graph;
  std::vector<StateEntry> changed;
  for (const StateEntry& state : session().states()) {
    if (state.name.starts_with(kOptimPrefix) || is_scale_state(state.name)) continue;
    if (std::any_of(graph.updates.begin(), graph.updates.end(), [&](const GraphUpdate& update) {
          const Node& leaf = graph[update.leaf];
          return leaf.op == &ops::state && leaf.attrs.text("name") == state.name;
        })) {
      changed.push_back(state);
    }
  }
  return changed;
}

std::int64_t ObjectiveImpl::whole_batch() const {
  return options_.batch * (ranks_ == nullptr ? 1 : ranks_->size());
}

// The programs of ranks that update different shards differ.
std::uint64_t ObjectiveImpl::step_hash() const {
  if (part_.shards == 1) return hash(session().compiled().graph);
  const auto step = traced(options_.dynamic_size, false);
  return hash(differentiated(training_request(*step, table_, part_, options_, location_, 0)));
}

void ObjectiveImpl::agree() {
  std::string options;
  for (const std::int64_t number :
       {std::int64_t{options_.seed}, options_.batch, std::int64_t{options_.shuffle},
        std::int64_t{options_.accumulate}, rows_, ranks_->bucket_bytes()})
    options += std::to_string(number) + " ";
  options += schedule_.text();
  for (const auto& [name, value] : session().scalars())
    options += " " + name + "=" + hex_float(value);
  std::string parameters;
  for (const ParameterEntry& entry : table_.entries())
    parameters += entry.name + to_string(entry.parameter->shape()) + " ";
  detail::check_common(*ranks_, "compile",
                       {{"the version of the library", fnv1a(TENSORGRAD_VERSION_STRING)},
                        {"the model", fnv1a(parameters)},
                        {"the option shard_optimizer", std::uint64_t{options_.shard_optimizer}},
                        {"the option shard_parameters", std::uint64_t{options_.shard_parameters}},
                        {"the loss or the optimizer", step_hash()},
                        {"an option, such as seed, batch, accumulate or lr,", fnv1a(options)}});
  if (!part_.shards_params) exchanged_ = common_ranges(*ranks_, session().compiled().program);
}

void ObjectiveImpl::check_one_rank(const char* call) const {
  if (ranks_ != nullptr)
    throw UserError(std::string(call) + ": not supported in distributed training");
}

Ticket ObjectiveImpl::run_on_ranks(ProgramSession& session, std::span<const ScalarValues> rows,
                                   std::int64_t step) {
  Instance& instance = session.instance();
  if (ranks_ == nullptr || !instance.device().info().computes) return instance.run(rows);
  Ticket last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool updates = (step + static_cast<std::int64_t>(i) + 1) % options_.accumulate == 0;
    if (part_.shards_params) {
      last = run_sharded(*ranks_, instance, rows[i], part_, shard_copies_);
    } else if (updates) {
      last = run_and_exchange(*ranks_, instance, rows[i], exchanged_);
      if (part_.shards > 1) gather_params(*ranks_, instance, part_);
    } else {
      last = instance.run(rows.subspan(i, 1));
    }
    if (updates) mean_of_states(*ranks_, this->session(), averaged_states_);
  }
  return last;
}

bool ObjectiveImpl::is_sharded(const std::string& state) const {
  return part_.shards > 1 && state.starts_with(kOptimPrefix) &&
         session().instance().buffer_bytes(state_buffer(state)) !=
             part_.elements * static_cast<std::int64_t>(sizeof(float));
}

std::vector<float> ObjectiveImpl::download_state(const std::string& state) const {
  std::vector<float> values = session().download_floats(state_buffer(state));
  return is_sharded(state) ? gathered(*ranks_, part_, values) : values;
}

std::vector<float> ObjectiveImpl::download_arena() const {
  if (!part_.shards_params) return session().download_floats("params");
  return download_sharded(*ranks_, session(), part_);
}

void ObjectiveImpl::upload_arena(const std::vector<float>& arena) const {
  if (!part_.shards_params) return session().upload_params(arena);
  upload_sharded(*ranks_, session(), part_, arena);
}

void ObjectiveImpl::upload_state(const std::string& state, const std::vector<float>& values) const {
  session().upload_state(state, is_sharded(state) ? scattered(*ranks_, part_, values) : values);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
