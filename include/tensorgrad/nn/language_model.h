// SPDX-License-Identifier: MIT
// Language models of Mamba, attention and MLP blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/functional/losses.h"
#include "tensorgrad/nn/causal_attention.h"
#include "tensorgrad/nn/gated_mlp.h"
#include "tensorgrad/nn/mamba.h"
#include "tensorgrad/nn/mixture_of_experts.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/nn/shared_transformer.h"
#include "tensorgrad/optim/param_groups.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Kind of the mixer of a MixerBlock.
enum class MixerKind : std::uint8_t {
  kMamba1,
  kMamba2,
  kMamba3,
  kAttention,
  kMlp,
  kMoe,          ///< MixtureOfExperts.
  kMamba2Shared  ///< Mamba-2 whose input a SharedTransformer changes, as in Zamba2.
};

/// Returns the name of a kind: "mamba1", "mamba2", "mamba3", "attention", "mlp", "moe" or
/// "mamba2_shared".
std::string_view to_string(MixerKind kind);

/// Returns the kind with a name returned by to_string(), or nullopt if the name is unknown.
std::optional<MixerKind> parse_mixer_kind(std::string_view name);

/// Kind of the norms of a LanguageModel. kLayerNorm has a bias.
enum class NormKind : std::uint8_t { kRmsNorm, kLayerNorm };

/// Kind of its MLPs: GatedMlp or GeluMlp.
enum class MlpKind : std::uint8_t { kSwiGlu, kGelu };

/// Options of attention layers in LayerOptions; see LanguageModelConfig.
struct AttentionLayer {
  std::int64_t heads = 4;
  CausalAttention::Options options = {};
};

/// Options of MLPs in LayerOptions; see LanguageModelConfig.
struct MlpLayer {
  MlpKind kind = MlpKind::kSwiGlu;
  std::int64_t width = 0;
  bool bias = false;
};

/// Options of some layers of a LanguageModel. Each that is set replaces that of the model.
struct LayerOptions {
  /// The layers from `first` on, every `period`-th; with a period of 0, only `first`. Layers are
  /// counted from 0.
  std::int64_t first = 0, period = 0;

  std::optional<MambaOptions> mamba = std::nullopt;
  std::optional<Mamba2Options> mamba2 = std::nullopt;
  std::optional<Mamba3Options> mamba3 = std::nullopt;
  std::optional<AttentionLayer> attention = std::nullopt;
  std::optional<MlpLayer> mlp = std::nullopt;
  std::optional<MixtureOfExperts::Options> moe = std::nullopt;
};

/// Configuration of a LanguageModel.
struct LanguageModelConfig {
  std::int64_t vocab_size = 0, d_model = 0, n_layer = 0;  ///< Required.
  std::vector<MixerKind> layers = {};  ///< One mixer per layer; empty: kMamba1 in all layers.

  /// Options of the layers. `residuals` is ignored in all of them; the model sets it to `n_layer`.
  MambaOptions mamba = {};
  Mamba2Options mamba2 = {};
  Mamba3Options mamba3 = {};
  std::int64_t heads = 4;  ///< Number of heads of attention layers.
  CausalAttention::Options attention = {};

  /// See GatedMlp and GeluMlp; 0: 8/3 of d_model, up to a multiple of 8, or 4 * d_model for kGelu.
  std::int64_t mlp_width = 0;
  double norm_epsilon = 1e-5;
  bool tie_embeddings = true;  ///< The output layer uses the weight of the embedding.

  /// Format of the embedding, the output layer and the projections. Weights for which
  /// can_quantize() is false stay f32. Formats other than kF32 are for models that are not trained;
  /// lm::quantize() creates their weights.
  WeightFormat weight_format = WeightFormat::kF32;

  NormKind norm = NormKind::kRmsNorm;
  MlpKind mlp = MlpKind::kSwiGlu;

  /// Size of a table of learned position embeddings, added to the embedding; 0: no table. Texts
  /// have at most this many tokens. It also limits CausalAttention::Options::max_length. Cannot be
  /// combined with CausalAttention::Options::rope.
  std::int64_t n_positions = 0;

  bool mlp_bias = false;  ///< Adds biases to MLPs of kSwiGlu; those of kGelu have them.
  MixtureOfExperts::Options moe = {};  ///< Options of mixtures of experts.

  /// Options of the blocks that layers of kMamba2Shared share. These layers use them in turn.
  SharedTransformer::Options shared = {};

  /// Options of some layers. If several entries are for a layer, later ones replace earlier ones.
  std::vector<LayerOptions> layer_options = {};
};

/// Returns a configuration in which the options of `layer` stand in place of those of the model.
/// Its `layer_options` are empty. Throws UserError if there is no such layer.
LanguageModelConfig layer_config(const LanguageModelConfig& config, std::int64_t layer,
                                 Loc loc = Loc::current());

/// Returns the configuration of GPT-2 (Radford et al. 2019) with `blocks` blocks. A block is two
/// layers, attention and an MLP.
LanguageModelConfig gpt2_config(std::int64_t vocab_size, std::int64_t d_model, std::int64_t blocks,
                                std::int64_t heads, std::int64_t n_positions);

/// Returns the mixers of `n_layer` layers by the name of a schedule. "jamba" uses attention for
/// every fourth layer, else mamba2. "zamba" uses attention for every sixth layer, else mamba3. Any
/// other name is a list of names of kinds, separated by spaces, which repeats until there are
/// `n_layer` layers: "mamba2 mlp mamba2 moe". Throws UserError if a kind is unknown.
std::vector<MixerKind> mixer_schedule(const std::string& name, std::int64_t n_layer,
                                      Loc loc = Loc::current());

/// How LanguageModel::embed() reduces the hidden states of a sequence to one vector.
enum class Pooling : std::uint8_t {
  kMean,  ///< The mean over all tokens.
  kLast   ///< The hidden state of the last token.
};

/// Norm of a language model. Exactly one of the two is set.
struct BlockNorm {
  /// Creates the parameters.
  BlockNorm(NormKind kind, std::int64_t size, double epsilon, Loc loc = Loc::current());

  std::optional<RMSNorm> rms;
  std::optional<LayerNorm> layer;

  /// Visits "weight", and "bias" of a layer norm.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Returns the normalized `x`, in the shape of `x`.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Residual block of a language model: x + mixer(norm(x)). Exactly one of the mixers is set.
///
/// A block of kMamba2Shared has `mamba2` and `shared`. It is x + mamba2(norm(x + t)), with the
/// output t of a SharedTransformer.
struct MixerBlock {
  /// Creates a block with a mixer of this kind, by the options of the model (see layer_config()).
  /// A block of kMamba2Shared uses the shared block `shared_block`.
  MixerBlock(MixerKind kind, const LanguageModelConfig& config, std::int64_t shared_block,
             Loc loc = Loc::current());
  /// As above, with shared block 0.
  MixerBlock(MixerKind kind, const LanguageModelConfig& config, Loc loc = Loc::current());

  BlockNorm norm;
  std::optional<Mamba> mamba;
  std::optional<Mamba2> mamba2;
  std::optional<Mamba3> mamba3;
  std::optional<CausalAttention> attention;
  std::optional<GatedMlp> mlp;
  std::optional<GeluMlp> gelu_mlp;
  std::optional<MixtureOfExperts> moe;
  std::optional<SharedTransformer::Use> shared;

  /// Visits the norm, the mixer under the name "mixer", and `shared`.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// As above, for packed documents; see run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence, as the `run()` of the mixer. An MLP has no states.
  /// If the mixer is given NaN or infinity at a step of a packed document, that document is NaN
  /// from there on, and the other documents are not affected. Throws UserError if `shared` is set.
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// As run(), for a block of kMamba2Shared. `transformer` is the block that it uses, and
  /// `embedded` the embedding of the tokens [B, L, d_model]. The states are those of `transformer`,
  /// then those of the mixer.
  [[nodiscard]] RecurrentResult run_shared(Tensor x, Tensor embedded,
                                           const SharedTransformer& transformer,
                                           const std::vector<Tensor>& state,
                                           std::optional<Tensor> documents = std::nullopt,
                                           Loc loc = Loc::current()) const;

  /// Returns the states of the mixer for a batch size.
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const;

 private:
  // Returns x + mixer(norm(in)) and the states of the mixer.
  [[nodiscard]] RecurrentResult mix(Tensor x, Tensor in, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents, Loc loc) const;
};

/// Language model: an embedding, residual blocks, a final norm, and an output layer without bias.
///
/// `documents`, i32 [B, L], packs several documents into a row of tokens: tokens of a document have
/// the same number, and the next document has another one. Results equal those of each document in
/// a row of its own: states, convolutions, attention and positions start anew in each document.
/// Throws DtypeError or ShapeError if `documents` has another dtype or shape.
struct LanguageModel {
  /// The model without its output layer.
  struct Backbone {
    Embedding embedding;
    std::optional<Embedding> position_embedding;  ///< Set if LanguageModelConfig::n_positions is.
    std::vector<MixerBlock> layers;
    BlockNorm norm_f;

    /// Blocks that the layers of kMamba2Shared use: SharedTransformer::Options::blocks, or one per
    /// such layer if those are fewer.
    std::vector<SharedTransformer> shared;
    TG_MODULE(embedding, position_embedding, layers, norm_f, shared)
  };

  /// Creates the parameters. Throws UserError if a size is missing, `layers` does not have
  /// `n_layer` elements, learned positions are combined with rotary ones, or `layer_options` names
  /// a layer that does not exist or has options of which none of its layers is.
  explicit LanguageModel(const LanguageModelConfig& config, Loc loc = Loc::current());

  LanguageModelConfig config;
  Backbone backbone;
  std::optional<Linear> lm_head;  ///< Unset if LanguageModelConfig::tie_embeddings is set.
  TG_MODULE(backbone, lm_head)

  /// Returns the logits of whole sequences: i32 [B, L] -> [B, L, vocab_size]. Throws ShapeError if
  /// L is above LanguageModelConfig::n_positions, if that is set. With `documents`, L may be
  /// larger, and logits of tokens beyond that position of a document are NaN.
  Tensor operator()(Tensor tokens, Loc loc = Loc::current()) const;
  Tensor operator()(Tensor tokens, Tensor documents, Loc loc = Loc::current()) const;

  /// Returns the hidden states of whole sequences after the final norm, from which the output layer
  /// computes the logits: i32 [B, L] -> [B, L, d_model]. Throws as operator().
  [[nodiscard]] Tensor hidden_states(Tensor tokens, std::optional<Tensor> documents = std::nullopt,
                                     Loc loc = Loc::current()) const;

  /// Returns an embedding of each sequence, pooled from its hidden_states(): i32 [B, L] ->
  /// [B, d_model]. `lengths`, i32 [B], is the number of tokens of each sequence, from 1 to L; what
  /// follows is padding. Throws ShapeError or DtypeError if `lengths` has another shape or dtype.
  [[nodiscard]] Tensor embed(Tensor tokens, Tensor lengths, Pooling pooling = Pooling::kMean,
                             Loc loc = Loc::current()) const;

  /// Returns the cross-entropy of the logits with the next tokens, i32 [B, L]. Uses
  /// linear_cross_entropy(), so that the logits of a large vocabulary are not stored, unless the
  /// output layer is quantized. Leave `options.bias` unset.
  [[nodiscard]] Tensor loss(Tensor tokens, Tensor next,
                            const LinearCrossEntropyOptions& options = {},
                            std::optional<Tensor> documents = std::nullopt,
                            Loc loc = Loc::current()) const;

  /// Returns the logits of the next L tokens of B sequences that are processed in chunks of any
  /// length. The layers' states are states of the traced function ("layers.0.ssm"). `keep` [B]
  /// holds 1 to continue a sequence and 0 to start a new one. A chunk of one token needs no scan.
  /// Logits of tokens beyond LanguageModelConfig::n_positions are NaN.
  [[nodiscard]] Tensor resume(Tensor tokens, Tensor keep, Loc loc = Loc::current()) const;

  /// Like resume(), but returns only the logits of the last token, [B, vocab_size], for generation.
  [[nodiscard]] Tensor resume_last(Tensor tokens, Tensor keep, Loc loc = Loc::current()) const;

  /// Returns a group without weight decay, as in the papers: biases, including those of B and C in
  /// Mamba-3, weights of norms, A_log, D, and the factors of ranks.
  [[nodiscard]] static ParamGroup no_weight_decay();

 private:
  // The output of a layer. `embedded` is the input of the first layer.
  [[nodiscard]] RecurrentResult run_layer(const MixerBlock& block, Tensor x, Tensor embedded,
                                          const std::vector<Tensor>& state,
                                          std::optional<Tensor> documents, Loc loc) const;
  // The states of a layer.
  [[nodiscard]] std::vector<StateSpec> layer_states(const MixerBlock& block,
                                                    std::int64_t batch) const;
  // The output of the blocks for the next chunk: [B, L, d_model]. Updates the states.
  [[nodiscard]] Tensor resumed(Tensor tokens, Tensor keep, Loc loc) const;
  // The embeddings of the positions of the next chunk: [B, L, d_model]. Updates the state.
  [[nodiscard]] Tensor resumed_positions(Tensor tokens, Tensor keep, Loc loc) const;
  // The output of the blocks for whole sequences.
  [[nodiscard]] Tensor hidden(Tensor tokens, std::optional<Tensor> documents, Loc loc) const;
  // Row `at` (f32 [B, L]) of the position table for each token, NaN beyond the last one.
  [[nodiscard]] Tensor embedded_positions(Tensor at, Loc loc) const;
  // The final norm and the output layer.
  [[nodiscard]] Tensor logits(Tensor x, Loc loc) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
