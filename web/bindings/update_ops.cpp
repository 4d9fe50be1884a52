// SPDX-License-Identifier: MIT
// Ops for optimizers written in JavaScript, called by web/src/optimizer.ts.
#include "model.h"
#include "registry.h"

namespace tensorgrad::web {
namespace {

optim::Update& update(const Call& call) {
  optim::Update* const found = Tracing::current(call.name(), call.location).update;
  if (found == nullptr)
    throw UserError(std::string(call.name()) + ": only an optimizer can call it", call.location);
  return *found;
}

constexpr std::pair<std::string_view, Op> kUpdateOps[] = {
    {"update.param", [](const Call& c, Writer& w) { put(w, update(c).param); }},
    {"update.grad", [](const Call& c, Writer& w) { put(w, update(c).grad); }},
    {"update.lr", [](const Call& c, Writer& w) { put(w, update(c).lr); }},
    {"update.step", [](const Call& c, Writer& w) { put(w, update(c).step); }},
    {"update.state",
     [](const Call& c, Writer& w) {
       put(w, update(c).state(c.get<std::string>(0, "name"), c.get<double>(1, "initial", 0)));
     }},
    {"update.setState",
     [](const Call& c, Writer& w) {
       update(c).set_state(c.get<std::string>(0, "name"), c.get<Tensor>(1, "value"));
       w.nothing();
     }},
    {"update.setParam",
     [](const Call& c, Writer& w) {
       update(c).set_param(c.get<Tensor>(0, "value"));
       w.nothing();
     }},
    {"update.weightDecay",
     [](const Call& c, Writer& w) { put(w, update(c).weight_decay(c.get<double>(0, "initial"))); }},
    {"update.hyperparameter",
     [](const Call& c, Writer& w) {
       put(w, update(c).hyperparameter(c.get<std::string>(0, "name"),
                                       c.get<optim::Hyperparameter>(1, "number"),
                                       c.get<double>(2, "below")));
     }},
    {"update.paramInfos",
     [](const Call& c, Writer& w) {
       const auto& all = update(c).param_infos();
       w.list(all.size());
       for (const auto& each : all) {
         w.object(2);
         w.key("name");
         w.string(each.name);
         w.key("shape");
         put(w, each.shape);
       }
     }},
    {"update.paramView",
     [](const Call& c, Writer& w) {
       const auto index = c.get<std::size_t>(1, "index");
       if (const auto count = update(c).param_infos().size(); index >= count) {
         throw UserError("update.paramView: expected an index below " + std::to_string(count) +
                             ", got " + std::to_string(index),
                         c.location);
       }
       put(w, update(c).param_view(c.get<Tensor>(0, "flat"), index));
     }},
    {"update.flatten",
     [](const Call& c, Writer& w) {
       std::vector<Tensor> all;
       for (const auto& each : c.get<std::vector<std::optional<Tensor>>>(0, "params"))
         all.push_back(each.value_or(Tensor()));
       put(w, update(c).flatten(all));
     }},
    {"update.mask",
     [](const Call& c, Writer& w) { put(w, update(c).mask(c.get<ParamFilter>(0, "filter"))); }},
};

struct TracedOptimizer {
  Schedule lr;
  ParamFilter params;
  std::shared_ptr<Tape> tape;

  void operator()(optim::Update& update) const {
    static const Model nothing;
    const Inputs none;
    Tracing tracing(nothing, none);
    tracing.update = &update;
    if (!tape) throw Recorded{tracing.record()};  // NOLINT(*-exception-baseclass)
    tracing.replay(*tape);
  }
};

}  // namespace

OpTable update_ops() { return kUpdateOps; }

Optimizer traced_optimizer(const Value& value, const Where& where, std::shared_ptr<Tape> tape) {
  const Value& params = value["params"];
  return TracedOptimizer{
      read<Schedule>(value["lr"], where.field("lr")),
      params.present() ? read<ParamFilter>(params, where.field("params")) : ParamFilter{},
      std::move(tape)};
}

Optimizer traced_optimizer(const Value& value, const Where& where) {
  const Value& tape = value["tape"];
  return traced_optimizer(value, where,
                          tape.present() ? std::make_shared<Tape>(read_tape(tape)) : nullptr);
}

}  // namespace tensorgrad::web
