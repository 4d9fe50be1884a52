// SPDX-License-Identifier: MIT
// Recurrent layers, with the gates, parameters, names and initial values of torch.nn. The steps are
// written out in the trace, one after another, as a product and a pointwise launch each: for
// sequences of tens of steps, not thousands.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tensorgrad/nn/module.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  // x is [B, T, in], else [T, B, in]
  double dropout = 0;        // of each layer's output but the last's, in training
  // Each layer goes over its input a second time from the end, with parameters of its own; its
  // output is both results of a step, 2 * hidden wide (Schuster and Paliwal 1997).
  bool bidirectional = false;
};

// What LSTM and GRU share: for layer k weight_ih_lk [gates * hidden, in], weight_hh_lk
// [gates * hidden, hidden], bias_ih_lk and bias_hh_lk [gates * hidden], all uniform in
// +-1/sqrt(hidden); for the way back the same with "_reverse" behind. `in` of later layers is what
// the one before gives. Below, `all` is num_layers, or 2 * num_layers if bidirectional: layer 0,
// layer 0 backwards, layer 1 ... Everything may be without B: x [T, in], states [all, hidden].
class Recurrent {
 public:
  void visit_fields(ParameterVisitor& visitor) const;

 protected:
  Recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates,
            const RecurrentOptions& options, Loc loc);

  struct Layer {
    Parameter weight_ih, weight_hh;
    std::optional<Parameter> bias_ih, bias_hh;
  };
  // One step of one of `all`: the gates' arguments [B, gates * hidden] from the input and from h,
  // biases included; gives the new h.
  using Cell = std::function<Tensor(std::size_t which, Tensor from_input, Tensor from_hidden)>;
  // h of the last layer at each step, like x. `h` [B, hidden] of each is what they begin with, and
  // end with.
  Tensor run(Tensor x, std::vector<Tensor>& h, const Cell& cell, Loc loc) const;
  // What they begin with, [B, hidden] each: parts of `given` [all, B, hidden], or 0.
  [[nodiscard]] std::vector<Tensor> first(Tensor x, const std::optional<Tensor>& given,
                                          Loc loc) const;
  // What they end with, as `given` is, for x.
  static Tensor last(Tensor x, const std::vector<Tensor>& states, Loc loc);

  std::int64_t in_, hidden_, gates_;
  RecurrentOptions options_;
  std::vector<Layer> layers_;
};

// Hochreiter and Schmidhuber 1997; gates in the order input, forget, cell, output.
class LSTM : public Recurrent {
 public:
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {},
       Loc loc = Loc::current())
      : Recurrent(in, hidden, 4, options, loc) {}

  struct Output {
    Tensor output;  // like x, with `hidden` (2 * hidden) for `in`: h of the last layer at each step
    Tensor h, c;    // [all, B, hidden], after the last step
  };
  // h and c: what they begin with, 0 if not given.
  Output operator()(Tensor x, std::optional<Tensor> h = std::nullopt,
                    std::optional<Tensor> c = std::nullopt, Loc loc = Loc::current()) const;
};

// Cho et al. 2014; gates in the order reset, update, new.
class GRU : public Recurrent {
 public:
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {},
      Loc loc = Loc::current())
      : Recurrent(in, hidden, 3, options, loc) {}

  struct Output {
    Tensor output;
    Tensor h;  // [all, B, hidden]
  };
  Output operator()(Tensor x, std::optional<Tensor> h = std::nullopt,
                    Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
