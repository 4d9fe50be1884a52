// SPDX-License-Identifier: MIT
// Layers. Weights are laid out and initialised as PyTorch's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tensorgrad/nn/activations.h"
#include "tensorgrad/nn/attention.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/mamba.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/nn/quantized.h"
#include "tensorgrad/nn/recurrent.h"
#include "tensorgrad/nn/conv.h"

namespace tensorgrad::nn {

// One module after another; parameters are named by position ("0.weight"). A copy has modules of
// its own. A module that is given as a shared_ptr stays shared.
class Sequential {  // NOLINT(*-special-member-functions): one assignment, by value, serves both
 public:
  Sequential() = default;
  template <class... Modules>
    requires(sizeof...(Modules) > 0 && (!std::is_same_v<std::decay_t<Modules>, Sequential> || ...))
  explicit Sequential(Modules&&... modules) {
    (add(std::forward<Modules>(modules)), ...);
  }
  Sequential(const Sequential& other);
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(Sequential other) noexcept {
    steps_.swap(other.steps_);
    return *this;
  }
  ~Sequential() = default;

  template <class M>
  Sequential& add(M&& module) {
    steps_.push_back(std::make_unique<Held<std::decay_t<M>>>(std::forward<M>(module)));
    return *this;
  }
  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  void visit_fields(ParameterVisitor& visitor) const;
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;

 private:
  struct Step {
    virtual ~Step() = default;
    [[nodiscard]] virtual std::unique_ptr<Step> clone() const = 0;
    virtual void visit(ParameterVisitor& visitor, const std::string& name) const = 0;
    virtual Tensor run(Tensor x, Loc loc) const = 0;
  };
  template <class M>
  struct Held final : Step {
    explicit Held(M m) : module(std::move(m)) {}
    [[nodiscard]] std::unique_ptr<Step> clone() const override {
      return std::make_unique<Held>(module);
    }
    void visit(ParameterVisitor& visitor, const std::string& name) const override {
      detail::visit_field(visitor, name, module);
    }
    Tensor run(Tensor x, Loc loc) const override {
      if constexpr (detail::kIs<M, std::shared_ptr>) {
        return call(*module, x, loc);
      } else {
        return call(module, x, loc);
      }
    }
    template <class Callee>
    static Tensor call(const Callee& callee, Tensor x, Loc loc) {
      if constexpr (std::is_invocable_v<const Callee&, Tensor, Loc>) {
        return callee(x, loc);
      } else {
        return callee(x);
      }
    }
    M module;
  };
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace tensorgrad::nn
