// SPDX-License-Identifier: MIT
#include "train/update.h"

#include <algorithm>

#include "ops/registry.h"
#include "ops/structured.h"
#include "tensorgrad/ops/creation.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/state.h"
#include "tensorgrad/ops/views.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::vector<RowRange> picked_rows(const ParamGroup& group, const ParameterEntry& entry) {
  const Shape& shape = entry.parameter->shape();
  std::vector<RowRange> rows = group.rows(entry.name, shape);
  std::int64_t end = 0;
  bool fits = !rows.empty() && !shape.empty();
  for (const RowRange& each : rows) {
    fits = fits && each.begin >= end && each.end > each.begin;
    end = each.end;
  }
  if (fits && end <= shape[0]) return rows;
  std::string given;
  for (const RowRange& each : rows) {
    given += (given.empty() ? "" : ", ") + std::to_string(each.begin) + " to " +
             std::to_string(each.end);
  }
  throw UserError("group '" + group_name(group) + "': expected ascending rows of '" + entry.name +
                  "' " + to_string(shape) + ", got " + (given.empty() ? "none" : given));
}

}  // namespace

bool has_own_lr(const ParamGroup& group) { return group.lr || group.lr_factor != 1; }

ArenaUpdate::ArenaUpdate(Trace& trace, const ParameterRange& trained,
                         const std::vector<ParamGroup>& groups, const std::vector<ValueId>& grads,
                         std::string optimizer, int shard)
    : trace_(trace),
      trained_(trained),
      groups_(groups),
      builder_{trace.graph, {}, "optimizer"},
      optimizer_(std::move(optimizer)),
      shard_(shard) {
  if (trained_.shards > 1) shard_index_ = arange(trained_.shard_elements());
  Attrs attrs = flat_attrs("params", trained_.shard_elements());
  const bool whole = !trained_.shards_params;  // the whole part is in memory
  attrs.set("offset", trained_.begin + (whole ? shard_ * trained_.shard_elements() : 0));
  param_leaf_ = op::apply(builder_, ops::arena, {}, std::move(attrs));
  param = trace_.tensor(param_leaf_);
  if (!trained_.exclusive) {
    own_ = mask([](const std::string&, const Shape&) { return true; });
    param = where(*own_, param, 0.0);
  }
  for (const ParameterEntry& entry : trained_.entries)
    params_.push_back({entry.name, entry.parameter->shape()});
  if (trained_.shards_params) {
    grad = reduce_scatter(grads);
    of_shard_ = true;
  } else {
    std::vector<Tensor> gradients;
    gradients.reserve(grads.size());
    for (const ValueId id : grads) gradients.push_back(trace_.tensor(id));
    grad = flatten(gradients);
  }
  rows_ = trained_rows();
  if (rows_) grad = where(*rows_, grad, 0.0);
  std::vector<Tensor> rates;
  for (const GroupRange& range : trained_.ranges) {
    const bool own = range.group >= 0 && has_own_lr(groups_[static_cast<size_t>(range.group)]);
    rates.push_back(host_scalar(own ? group_lr_scalar(range.group) : kLrScalar));
  }
  lr = by_range(rates);
  step = host_scalar(kCountScalar);
}

Attrs ArenaUpdate::flat_attrs(const std::string& name, std::int64_t elements) const {
  return {{"name", name},
          {"shape", Shape{elements}},
          {"dtype", static_cast<std::int64_t>(DType::kF32)}};
}

Tensor ArenaUpdate::host_scalar(const std::string& name) const {
  return trace_.tensor(trace_.scalar(name, DType::kF32, 0, {}));
}

Tensor ArenaUpdate::element_index(bool of_shard) const {
  return of_shard && shard_index_ ? *shard_index_ : arange(trained_.elements);
}

Tensor ArenaUpdate::between(std::int64_t begin, std::int64_t end) const {
  const Tensor index = element_index(of_shard_);
  if (of_shard_ && shard_index_) {
    begin = trained_.elements_before(begin, shard_);
    end = trained_.elements_before(end, shard_);
  }
  return index >= begin && index < end;
}

Tensor ArenaUpdate::reduce_scatter(const std::vector<ValueId>& grads) const {
  std::vector<Expr> inputs;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    inputs.push_back({&builder_, grads[i]});
    offsets.push_back(trained_.entries.at(i).offset);
  }
  return trace_.tensor(
      op::apply(builder_, ops::reduce_scatter, inputs,
                {{"offsets", offsets}, {"size", trained_.elements}, {"shards", trained_.shards}}));
}

void ArenaUpdate::keep_shard() {
  if (of_shard_ || !shard_index_) return;
  of_shard_ = true;
  grad = narrow(grad, 0, shard_ * trained_.shard_elements(), trained_.shard_elements());
  rows_ = trained_rows();
}

void ArenaUpdate::check_whole(const char* call) const {
  if (!of_shard_) return;
  throw UserError("compile: " + std::string(shard_option(trained_)) +
                  ": expected an elementwise optimizer, but " + optimizer_ + " calls " + call +
                  ", which needs whole parameters");
}

Tensor ArenaUpdate::by_range(const std::vector<Tensor>& values) const {
  const auto& ranges = trained_.ranges;
  Tensor result = values.back();
  for (std::size_t i = values.size() - 1; i-- > 0;) {
    const bool all_equal =
        std::all_of(values.begin() + static_cast<std::ptrdiff_t>(i), values.end(),
                    [&](const Tensor& v) { return v.id() == values[i].id(); });
    if (all_equal) continue;
    const std::int64_t end =
        shard_index_ ? trained_.elements_before(ranges[i].end, shard_) : ranges[i].end;
    result = where(element_index(true) < end, values[i], result);
  }
  return result;
}

Tensor ArenaUpdate::state(const std::string& name, double initial) {
  const std::string full = trained_.state(name);
  ValueId leaf = trace_.graph.find_leaf(ops::state, full);
  if (leaf == kNoValue) {
    Attrs attrs = flat_attrs(full, of_shard_ ? trained_.shard_elements() : trained_.elements);
    attrs.set("init", initial);
    leaf = op::apply(builder_, ops::state, {}, std::move(attrs)).id;
  }
  return trace_.tensor(leaf);
}

void ArenaUpdate::change_only_if(const Tensor& condition) {
  condition_ = condition_ ? *condition_ && condition : condition;
}

Tensor ArenaUpdate::gated(const Tensor& value, const Tensor& old) const {
  return condition_ ? where(*condition_, value, old) : value;
}

void ArenaUpdate::set_state(const std::string& name, Tensor value) {
  const ValueId leaf = trace_.graph.find_leaf(ops::state, trained_.state(name));
  if (leaf == kNoValue)
    throw UserError("optimizer: set_state('" + name + "') called before state('" + name + "')");
  const Tensor next = gated(value, trace_.tensor(leaf));
  trace_.graph.updates.push_back({leaf, trace_.value(next, "set_state", {})});
}

void ArenaUpdate::set_param(Tensor value) {
  const Tensor old = trace_.tensor(param_leaf_);
  if (rows_) value = where(*rows_, value, old);
  new_param_ = value;
  const Tensor next = gated(value, old);
  trace_.graph.updates.push_back(
      {param_leaf_.id, trace_.value(own_ ? where(*own_, next, old) : next, "set_param", {})});
}

std::optional<Tensor> ArenaUpdate::trained_rows() const {
  // Adjacent ranges are merged, to need few comparisons.
  std::vector<RowRange> elements;
  bool some = false;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    if (elements.empty() || elements.back().end != begin) {
      elements.push_back({begin, end});
    } else {
      elements.back().end = end;
    }
  };
  for (const ParameterEntry& entry : trained_.entries) {
    const auto range = std::find_if(trained_.ranges.begin(), trained_.ranges.end(),
                                    [&](const GroupRange& r) { return entry.offset < r.end; });
    const ParamGroup* group =
        range->group < 0 ? nullptr : &groups_[static_cast<std::size_t>(range->group)];
    if (group == nullptr || !group->rows) {
      add(entry.offset, entry.end());
      continue;
    }
    some = true;
    for (const RowRange& rows : picked_rows(*group, entry)) {
      const std::int64_t width = entry.count() / entry.parameter->shape()[0];
      add(entry.offset + rows.begin * width, entry.offset + rows.end * width);
    }
  }
  if (!some) return std::nullopt;
  Tensor result = full(element_index(of_shard_).shape(), 0, boolean);
  for (const RowRange& each : elements) result = result || between(each.begin, each.end);
  return result;
}

std::optional<Tensor> ArenaUpdate::weight_decay(double initial) {
  const auto own = [&](const GroupRange& range) -> std::optional<double> {
    if (range.group < 0) return std::nullopt;
    return groups_[static_cast<size_t>(range.group)].weight_decay;
  };
  const auto& ranges = trained_.ranges;
  if (std::none_of(ranges.begin(), ranges.end(),
                   [&](const GroupRange& range) { return own(range).value_or(initial) != 0; })) {
    return std::nullopt;
  }
  std::vector<Tensor> decays;
  for (const GroupRange& range : ranges) {
    const auto special = own(range);
    const std::string group =
        special ? "." + group_name(groups_[static_cast<size_t>(range.group)]) : "";
    decays.push_back(scalar(kDecayScalar + group, special.value_or(initial)));
  }
  return by_range(decays);
}

Tensor ArenaUpdate::per_update(const std::string& name,
                               std::function<double(std::int64_t update)> value) {
  const std::string full = "_optim." + name;
  trace_.counts_updates = true;
  trace_.per_update[full] = [value = std::move(value)](std::int64_t update, const Scalars&) {
    return value(update);
  };
  return host_scalar(full);
}

Tensor ArenaUpdate::hyperparameter(const std::string& name, const optim::Hyperparameter& number,
                                   double below, const std::function<double(double)>& of) {
  if (!number.adjustable) return tensorgrad::full({}, of ? of(number) : number.value);
  trace_.scalar_limits[name] = below;
  const Tensor itself = scalar(name, number);
  if (!of) return itself;
  const std::string full = "_optim." + name + "." + std::to_string(trace_.per_update.size());
  trace_.per_update[full] = [name, of](std::int64_t, const Scalars& now) {
    return of(now.at(name));
  };
  return host_scalar(full);
}

Tensor ArenaUpdate::param_view(const Tensor& flat, std::size_t index) {
  check_whole("param_view()");
  const ParameterEntry& entry = trained_.entries.at(index);
  return reshape(narrow(flat, 0, entry.offset, entry.count()), entry.parameter->shape());
}

Tensor ArenaUpdate::flatten(const std::vector<Tensor>& params) {
  check_whole("flatten()");
  std::vector<Expr> inputs;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i].trace() == nullptr) continue;
    inputs.push_back({&builder_, trace_.value(params[i], "flatten", {})});
    offsets.push_back(trained_.entries.at(i).offset);
  }
  if (inputs.empty()) return zeros({trained_.elements});
  return trace_.tensor(
      op::apply(builder_, ops::pack, inputs, {{"offsets", offsets}, {"size", trained_.elements}}));
}

Tensor ArenaUpdate::mask(const ParamFilter& filter) {
  Tensor result = full(element_index(of_shard_).shape(), 0, boolean);
  std::int64_t begin = -1, end = 0;  // current run of selected parameters
  const auto add = [&] {
    if (begin >= 0) result = result || between(begin, end);
    begin = -1;
  };
  for (const ParameterEntry& entry : trained_.entries) {
    const bool picked = filter(entry.name, entry.parameter->shape());
    if (!picked || end != entry.offset) add();
    if (!picked) continue;
    if (begin < 0) begin = entry.offset;
    end = entry.end();
  }
  add();
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
