// SPDX-License-Identifier: MIT
// Recurrent layers, with the gates, parameters, names and initial values of torch.nn. The steps are
// unrolled in the trace, each as a product and a pointwise launch. This suits sequences of tens of
// steps, not thousands.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tensorgrad/nn/module.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Options of LSTM and GRU.
struct RecurrentOptions {
  std::int64_t num_layers = 1;  ///< Number of layers, at least 1.
  bool bias = true;             ///< Adds the biases `bias_ih` and `bias_hh` to each layer.
  bool batch_first = false;     ///< `x` is [B, T, in] instead of [T, B, in].
  double dropout = 0;           ///< Dropout of the output of each layer except the last, in [0, 1].

  /// Each layer also processes its input in reverse, with separate parameters (Schuster and Paliwal
  /// 1997). The output of a step has both results, of size 2 * hidden.
  bool bidirectional = false;
};

/// Base class of LSTM and GRU. For layer k, the parameters are "weight_ih_lk" [gates * hidden, in],
/// "weight_hh_lk" [gates * hidden, hidden], and "bias_ih_lk" and "bias_hh_lk" [gates * hidden]. The
/// names for the reverse direction end in "_reverse". All are initialized uniformly in
/// +-1/sqrt(hidden). Layers after the first take the output of the previous layer.
///
/// States are [all, B, hidden]. `all` is num_layers, or 2 * num_layers if bidirectional, in the
/// order layer 0, layer 0 reversed, layer 1 and so on. Unbatched inputs [T, in] with states
/// [all, hidden] are also allowed.
class Recurrent {
 public:
  /// Visits the parameters. Makes this class a Module.
  void visit_fields(ParameterVisitor& visitor) const;

 protected:
  /// Creates the parameters. Throws UserError if `num_layers` is less than 1.
  Recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates,
            const RecurrentOptions& options, Loc loc);

  /// Parameters of one direction of a layer.
  struct Layer {
    Parameter weight_ih;                        ///< [gates * hidden, size of the layer's input].
    Parameter weight_hh;                        ///< [gates * hidden, hidden].
    std::optional<Parameter> bias_ih, bias_hh;  ///< [gates * hidden]. Set if the bias option is.
  };

  /// Operands of one step of a layer.
  struct Step {
    Tensor from_input;   ///< Product of the input and `weight_ih`, plus bias: [B, gates * hidden].
    Tensor from_hidden;  ///< Product of h and `weight_hh`, plus bias: [B, gates * hidden].

    /// True for each sequence that has this step: bool [B, 1]. Unset if all sequences have it.
    std::optional<Tensor> valid;

    /// Returns the new state of the sequences that have the step, and the old one of the others.
    [[nodiscard]] Tensor next(Tensor state, Tensor old) const;
  };

  /// Function that computes one step of layer `which` of `all` and returns the new h.
  using Cell = std::function<Tensor(std::size_t which, const Step& step)>;

  /// Returns h of the last layer at each step, in the layout of `x`. `h` holds the state
  /// [B, hidden] of each of `all`, and is updated to the final states.
  Tensor run(Tensor x, std::vector<Tensor>& h, const Cell& cell,
             const std::optional<Tensor>& lengths, Loc loc) const;

  /// Returns the initial states [B, hidden] of all layers: slices of `given` [all, B, hidden], or
  /// zeros. Throws ShapeError if the shape of `x` or `given` does not match.
  [[nodiscard]] std::vector<Tensor> first(Tensor x, const std::optional<Tensor>& given,
                                          Loc loc) const;

  /// Returns the final states as one tensor, [all, B, hidden], or [all, hidden] if `x` is
  /// unbatched.
  static Tensor last(Tensor x, const std::vector<Tensor>& states, Loc loc);

  std::int64_t in_;            ///< Size of the input.
  std::int64_t hidden_;        ///< Size of h.
  std::int64_t gates_;         ///< Number of gates.
  RecurrentOptions options_;   ///< Options of the constructor.
  std::vector<Layer> layers_;  ///< One for each state, in the order of the states.
};

/// Long short-term memory (torch.nn.LSTM; Hochreiter and Schmidhuber 1997). The gates are in the
/// order input, forget, cell, output.
class LSTM : public Recurrent {
 public:
  /// Creates the parameters. Throws UserError if `num_layers` is less than 1.
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {},
       Loc loc = Loc::current())
      : Recurrent(in, hidden, 4, options, loc) {}

  /// Result of the layer.
  struct Output {
    /// h of the last layer at each step, in the layout of `x`. The last axis is `hidden`, or 2 *
    /// hidden if bidirectional.
    Tensor output;

    Tensor h, c;  ///< States after the last step: [all, B, hidden].
  };

  /// Returns the outputs and final states of a sequence. `h` and `c` are the initial states
  /// [all, B, hidden] (default: zeros). `lengths`, i32 [B], has the number of steps of each
  /// sequence in a padded batch, like a packed sequence of PyTorch: later outputs are 0, the final
  /// states are those after the last step, and the reverse direction begins there. All T steps are
  /// computed. Throws ShapeError or DtypeError if an argument does not match.
  Output operator()(Tensor x, std::optional<Tensor> h = std::nullopt,
                    std::optional<Tensor> c = std::nullopt,
                    std::optional<Tensor> lengths = std::nullopt, Loc loc = Loc::current()) const;
};

/// Gated recurrent unit (torch.nn.GRU; Cho et al. 2014). The gates are in the order reset, update,
/// new.
class GRU : public Recurrent {
 public:
  /// Creates the parameters. Throws UserError if `num_layers` is less than 1.
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {},
      Loc loc = Loc::current())
      : Recurrent(in, hidden, 3, options, loc) {}

  /// Result of the layer.
  struct Output {
    Tensor output;  ///< See LSTM::Output.
    Tensor h;       ///< State after the last step: [all, B, hidden].
  };

  /// Returns the outputs and the final state of a sequence. `h` is the initial state
  /// [all, B, hidden] (default: zeros). `lengths` is as for LSTM. Throws ShapeError or DtypeError
  /// if an argument does not match.
  Output operator()(Tensor x, std::optional<Tensor> h = std::nullopt,
                    std::optional<Tensor> lengths = std::nullopt, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
