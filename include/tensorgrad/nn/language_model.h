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
  kMamba1,       ///< Mamba.
  kMamba2,       ///< Mamba2.
  kMamba3,       ///< Mamba3.
  kAttention,    ///< CausalAttention.
  kMlp,          ///< GatedMlp or GeluMlp, by LanguageModelConfig::mlp.
  kMoe,          ///< MixtureOfExperts.
  kMamba2Shared  ///< Mamba-2 whose input a SharedTransformer changes, as in Zamba2.
};

/// Returns the name of a kind: "mamba1", "mamba2", "mamba3", "attention", "mlp", "moe" or
/// "mamba2_shared".
std::string_view to_string(MixerKind kind);

/// Returns the kind with a name returned by to_string(), or nullopt if the name is unknown.
std::optional<MixerKind> parse_mixer_kind(std::string_view name);

/// Kind of the norms of a LanguageModel.
enum class NormKind : std::uint8_t {
  kRmsNorm,   ///< RMSNorm, without a bias.
  kLayerNorm  ///< LayerNorm, with a bias.
};

/// Kind of the MLPs of a LanguageModel.
enum class MlpKind : std::uint8_t {
  kSwiGlu,  ///< GatedMlp.
  kGelu     ///< GeluMlp.
};

/// Options of attention layers in LayerOptions.
struct AttentionLayer {
  std::int64_t heads = 4;                 ///< See LanguageModelConfig::heads.
  CausalAttention::Options options = {};  ///< See LanguageModelConfig::attention.
};

/// Options of MLPs in LayerOptions.
struct MlpLayer {
  MlpKind kind = MlpKind::kSwiGlu;  ///< See LanguageModelConfig::mlp.
  std::int64_t width = 0;           ///< See LanguageModelConfig::mlp_width.
  bool bias = false;                ///< See LanguageModelConfig::mlp_bias.
};

/// Options of some layers of a LanguageModel. Options that are set replace those of the model as a
/// whole; those that are not set stay as they are.
struct LayerOptions {
  std::int64_t first = 0;   ///< First of the layers, counted from 0.
  std::int64_t period = 0;  ///< Distance between the layers; 0: only the layer `first`.

  std::optional<MambaOptions> mamba = std::nullopt;             ///< For layers of kMamba1.
  std::optional<Mamba2Options> mamba2 = std::nullopt;           ///< For kMamba2 and kMamba2Shared.
  std::optional<Mamba3Options> mamba3 = std::nullopt;           ///< For layers of kMamba3.
  std::optional<AttentionLayer> attention = std::nullopt;       ///< For layers of kAttention.
  std::optional<MlpLayer> mlp = std::nullopt;                   ///< For layers of kMlp.
  std::optional<MixtureOfExperts::Options> moe = std::nullopt;  ///< For layers of kMoe.
};

/// Configuration of a LanguageModel. The member `residuals` of all options is ignored; the model
/// sets it to `n_layer`.
struct LanguageModelConfig {
  std::int64_t vocab_size = 0;         ///< Number of tokens. Required.
  std::int64_t d_model = 0;            ///< Size of the hidden states. Required.
  std::int64_t n_layer = 0;            ///< Number of residual blocks. Required.
  std::vector<MixerKind> layers = {};  ///< One mixer per layer; empty: kMamba1 in all layers.

  MambaOptions mamba = {};                  ///< Options of layers of kMamba1.
  Mamba2Options mamba2 = {};                ///< Options of layers of kMamba2 and kMamba2Shared.
  Mamba3Options mamba3 = {};                ///< Options of layers of kMamba3.
  std::int64_t heads = 4;                   ///< Number of query heads of layers of kAttention.
  CausalAttention::Options attention = {};  ///< Options of layers of kAttention.

  /// See GatedMlp and GeluMlp; 0: 8/3 of d_model, up to a multiple of 8, or 4 * d_model for kGelu.
  std::int64_t mlp_width = 0;

  double norm_epsilon = 1e-5;  ///< Epsilon of all norms but those of the mixers.
  bool tie_embeddings = true;  ///< The output layer uses the weight of the embedding.

  /// Format of the embedding, the output layer and the projections. The table of positions,
  /// Mamba::dt_proj, MixtureOfExperts::router and weights for which can_quantize() is false stay
  /// f32. Formats other than kF32 are for models that are not trained; lm::quantize() creates their
  /// weights.
  WeightFormat weight_format = WeightFormat::kF32;

  NormKind norm = NormKind::kRmsNorm;  ///< Kind of the norms of the blocks and of the final norm.
  MlpKind mlp = MlpKind::kSwiGlu;      ///< Kind of layers of kMlp.

  /// Size of a table of learned position embeddings, added to the embedding; 0: no table. Texts
  /// have at most this many tokens. It also limits CausalAttention::Options::max_length. Cannot be
  /// combined with CausalAttention::Options::rope.
  std::int64_t n_positions = 0;

  bool mlp_bias = false;  ///< Adds biases to MLPs of kSwiGlu; those of kGelu have them.
  MixtureOfExperts::Options moe = {};  ///< Options of layers of kMoe.

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

/// Reduction of the hidden states of a sequence to one vector, for LanguageModel::embed().
enum class Pooling : std::uint8_t {
  kMean,  ///< The mean over all tokens.
  kLast   ///< The hidden state of the last token.
};

/// Norm of a language model. Exactly one of the two is set.
struct BlockNorm {
  /// Creates the parameters.
  BlockNorm(NormKind kind, std::int64_t size, double epsilon, Loc loc = Loc::current());

  std::optional<RMSNorm> rms;      ///< Set for NormKind::kRmsNorm.
  std::optional<LayerNorm> layer;  ///< Set for NormKind::kLayerNorm.

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
  /// Creates a block that uses shared block 0.
  MixerBlock(MixerKind kind, const LanguageModelConfig& config, Loc loc = Loc::current());

  BlockNorm norm;                                ///< Norm of the input of the mixer.
  std::optional<Mamba> mamba;                    ///< Mixer of kMamba1.
  std::optional<Mamba2> mamba2;                  ///< Mixer of kMamba2 and kMamba2Shared.
  std::optional<Mamba3> mamba3;                  ///< Mixer of kMamba3.
  std::optional<CausalAttention> attention;      ///< Mixer of kAttention.
  std::optional<GatedMlp> mlp;                   ///< Mixer of kMlp with MlpKind::kSwiGlu.
  std::optional<GeluMlp> gelu_mlp;               ///< Mixer of kMlp with MlpKind::kGelu.
  std::optional<MixtureOfExperts> moe;           ///< Mixer of kMoe.
  std::optional<SharedTransformer::Use> shared;  ///< Set for kMamba2Shared.

  /// Visits the norm, the mixer under the name "mixer", and `shared`.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// Returns the output for packed documents: [B, L, d_model] -> [B, L, d_model]. See run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence, like the `run()` of the mixer. An MLP has no
  /// states. If the mixer is given NaN or infinity at a step of a packed document, that document is
  /// NaN from there on, and the other documents are not affected. Throws UserError if `shared` is
  /// set.
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Like run(), but for a block of kMamba2Shared. `transformer` is the block that it uses, and
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
    Embedding embedding;  ///< [vocab_size, d_model].

    /// [n_positions, d_model]. Set if LanguageModelConfig::n_positions is not 0.
    std::optional<Embedding> position_embedding;

    std::vector<MixerBlock> layers;  ///< Residual blocks, in order.
    BlockNorm norm_f;                ///< Norm of the output of the last block.

    /// Blocks that the layers of kMamba2Shared use: SharedTransformer::Options::blocks, or one per
    /// such layer if those are fewer.
    std::vector<SharedTransformer> shared;
    TG_MODULE(embedding, position_embedding, layers, norm_f, shared)
  };

  /// Creates the parameters. Throws UserError if a size is missing, `layers` does not have
  /// `n_layer` elements, learned positions are combined with rotary ones, or `layer_options` names
  /// a layer that does not exist, or sets options for a kind that none of its layers has.
  explicit LanguageModel(const LanguageModelConfig& config, Loc loc = Loc::current());

  /// Configuration of the constructor, with `layers` filled in, and with
  /// CausalAttention::Options::max_length limited to `n_positions`.
  LanguageModelConfig config;

  Backbone backbone;              ///< All parameters but those of `lm_head`.
  std::optional<Linear> lm_head;  ///< Unset if LanguageModelConfig::tie_embeddings is set.
  TG_MODULE(backbone, lm_head)

  /// Returns the logits of whole sequences: i32 [B, L] -> [B, L, vocab_size]. Throws ShapeError if
  /// L is above LanguageModelConfig::n_positions, if that is set. With `documents`, L may be
  /// larger, and logits of tokens beyond that position of a document are NaN.
  Tensor operator()(Tensor tokens, Loc loc = Loc::current()) const;
  Tensor operator()(Tensor tokens, Tensor documents, Loc loc = Loc::current()) const;

  /// Returns the hidden states of whole sequences after the final norm, from which the output layer
  /// computes the logits: i32 [B, L] -> [B, L, d_model]. Throws the errors of operator().
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
