// SPDX-License-Identifier: MIT
// Container of modules that are applied in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/nn/module.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Modules that are applied in order, like torch.nn.Sequential. Parameters are named by position,
/// for example "0.weight". A copy has copies of the modules, but a module passed as a
/// `std::shared_ptr` stays shared.
class Sequential {  // NOLINT(*-special-member-functions): one assignment, by value, serves both
 public:
  Sequential() = default;

  /// Creates a sequence of modules, which are copied or moved.
  template <class... Modules>
    requires(sizeof...(Modules) > 0 && (!std::is_same_v<std::decay_t<Modules>, Sequential> || ...))
  explicit Sequential(Modules&&... modules) {
    (add(std::forward<Modules>(modules)), ...);
  }

  /// Copies the modules.
  Sequential(const Sequential& other);
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(Sequential other) noexcept {
    steps_.swap(other.steps_);
    return *this;
  }
  ~Sequential() = default;

  /// Appends a module and returns this object. The module is called with a Tensor, or with a Tensor
  /// and a Loc.
  template <class M>
  Sequential& add(M&& module) {
    steps_.push_back(std::make_unique<Held<std::decay_t<M>>>(std::forward<M>(module)));
    return *this;
  }

  /// Returns the number of modules.
  [[nodiscard]] std::size_t size() const { return steps_.size(); }

  /// Visits the parameters and buffers of all modules. Makes this class a Module.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Returns the output of the last module. An empty sequence returns `x`.
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

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
