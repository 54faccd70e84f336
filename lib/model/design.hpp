// What a model is, as data: everything needed to run it except the weights. A family makes
// one from config.json (model/family/).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/rotary.hpp"

namespace masque::model {

/// How positions enter, by masque's own terms (own_positions() in model/variants.hpp).
enum class PositionType {
  kNone,
  kLearned,       ///< a table added to the token embeddings
  kSinusoidal,    ///< a fixed table added to the token embeddings
  kRotary,        ///< queries and keys are rotated
  kXlnet,         ///< XLNet's relative terms, per layer
  kT5,            ///< a bias by bucket, one table for all layers
  kDisentangled,  ///< DeBERTa's terms, one table for all layers
};

enum class NormPlacement {
  kPost,      ///< x ← norm(x + f(x))
  kPre,       ///< x ← x + f(norm(x)), and a norm after the last layer
  kParallel,  ///< x ← x + attention(norm1(x)) + feed_forward(norm2(x)): GPT-NeoX
  /// x ← x + norm'(f(norm(x))), and a norm after the last layer. Ding et al. 2021,
  /// arXiv:2105.13290.
  kSandwich,
  /// x ← x + α f(x), α a number of each part that starts at 0, without norms in layers. Bachlechner
  /// et al. 2020, arXiv:2003.04887.
  kReZero,
  /// x ← norm(ω ⊙ x + f(x)), ω a vector of each part. A new one starts from the sizes of what the
  /// parts in front of it give (train/run/residual_start.hpp). Liu et al. 2020, arXiv:2004.08249.
  kAdmin,
  /// Pre-norm; a norm of what attention gives, a norm in front of the second feed-forward product,
  /// and a number for each head. Shleifer et al. 2021, arXiv:2110.09456.
  kNormFormer,
};

enum class LayerKind {
  kTransformer,     ///< attention, then feed-forward
  kGatedAttention,  ///< GAU: one layer that is both
};

/// Which keys a query may read, unless a mask is given.
enum class DefaultMask {
  kFull,
  kCausal,
  kOthers,  ///< all but itself: T-TA
};

/// Which streams run.
enum class Streams {
  kOne,
  kTwo,        ///< XLNet: a query stream next to the content stream where targets are requested
  kFixedKeys,  ///< T-TA: queries start without tokens, keys and values come from the embeddings
  /// TwoTower: the first half of the layers reads from left to right, the second half from right to
  /// left, both from the embeddings; position i predicts from the first at i − 1 and the second at
  /// i + 1. The layers' masks are those of tower_masks().
  kTowers,
};

struct NormDesign {
  kernel::Norm kind = kernel::Norm::kLayer;
  double epsilon = 1e-12;

  bool operator==(const NormDesign&) const = default;
};

struct RotaryDesign {
  kernel::RotaryLayout layout = kernel::RotaryLayout::kHalf;
  std::vector<double>
      frequencies;            ///< after any scaling; 2 · size() features of a head are rotated
  double factor = 1;          ///< of cosine and sine
  bool float_angles = false;  ///< rounded to float, as transformers computes them
  bool values = false;        ///< values are rotated too (RoFormer's rotary_value)

  bool operator==(const RotaryDesign&) const = default;
};

/// What differs from layer to layer.
struct LayerDesign {
  Index weights = 0;            ///< whose weights it uses: ALBERT's layers share
  std::optional<Index> window;  ///< |i − j| ≤ window: local attention
  RotaryDesign rotary;          ///< of PositionType::kRotary
  bool input_norm = true;       ///< pre-norm: whether there is one (ModernBERT's first has none)
  double attention_scale = 1;   ///< of scores, besides Design::attention_scale

  bool operator==(const LayerDesign&) const = default;
};

enum class HeadKind {
  kNone,
  kMasked,         ///< a vocabulary at each position: the token that stands there
  kCausal,         ///< a vocabulary at each position: the next token
  kDiscriminator,  ///< one logit a position: replaced (> 0) or original
  kEnergy,         ///< one number a position, Electric's energy E: p(token | others) ∝ exp(−E)
  kText,  ///< one number a text, of its first token's state (model/checkpoint/text_head.hpp)
};

/// Whether a head gives one number for each position, and not one for each token; of kText only
/// that of the first position means something.
inline bool has_one_number(HeadKind kind) {
  return kind == HeadKind::kDiscriminator || kind == HeadKind::kEnergy || kind == HeadKind::kText;
}

struct HeadDesign {
  HeadKind kind = HeadKind::kNone;
  bool transform = false;  ///< dense, activation, norm before the vocabulary
  kernel::Activation activation = kernel::Activation::kGelu;
  std::optional<NormDesign> norm;  ///< of the transform
  bool tied = true;                ///< the vocabulary matrix is the word table
  double scale = 1;                ///< of the states before the vocabulary matrix

  bool operator==(const HeadDesign&) const = default;
};

/// Where heads are mixed with each other: Shazeer 2020, arXiv:2003.02436.
enum class TalkingHeads {
  kNone,
  kBefore,  ///< scores, before the normalizer
  kAfter,   ///< weights, after the normalizer
  kBoth,
};

/// Whether weights are mixed.
inline bool mixes_weights(TalkingHeads talking) {
  return talking == TalkingHeads::kAfter || talking == TalkingHeads::kBoth;
}

/// What is added to the scores of a layer. RealFormer: He 2020, arXiv:2012.11747.
enum class PreviousScores {
  kNone,
  kOneLayer,     ///< the layer before's own
  kAccumulated,  ///< the sum of all layers' before
};

/// Sizes of the detection network of Soft-Masked BERT, which reads what enters the layers and says
/// of each token how likely it is wrong: Zhang et al. 2020, arXiv:2005.07421. What else it is
/// follows from the design that it belongs to (model/detector.hpp).
struct DetectorDesign {
  Index num_hidden_layers = 1;
  Index hidden_size = 0;
  Index num_attention_heads = 1;
  Index intermediate_size = 0;

  bool operator==(const DetectorDesign&) const = default;
};

/// The bottlenecks of UniVAE, in front of the last layers: see forward/latent_forward.hpp.
struct LatentDesign {
  Index layers = 0;   ///< how many of the last layers have one; these also read the first token
  Index size = 16;    ///< of the sphere's space
  double kappa = 32;  ///< concentration of the von Mises–Fisher distribution while training
  /// Each bottleneck learns its own, from `kappa` on.
  bool learned_kappa = false;

  bool operator==(const LatentDesign&) const = default;
};

/// What only the family `masque` has. Names are those of nn's registries.
struct VariantDesign {
  /// What layers may read, in the mask language: one for all or a list; a mask may leave words and
  /// seed to each text (mask::MaskExpression::open). Empty: Design::mask counts, else that is
  /// kFull. Set by set_mask().
  std::string mask;
  /// A scheme of nn/position_scheme.hpp with its arguments; empty: Design::position counts, else
  /// that is kNone. It acts on the input where tables are added: in front of the embedding norm.
  /// Or a list (layer_list.hpp) of one scheme and `none`: "3*rope, none".
  std::string position;
  /// Its parameters inside layers are one set for all layers; those of the input always are.
  bool position_shared = false;
  /// Of nn/mixer.hpp, instead of attention: x + output(mix(x)); empty: attention. Its longest
  /// sequence is max_position_embeddings.
  std::string mixer;
  Index mixer_inner_size = 0;  ///< this and what follows: fields of nn::MixerShape
  Index mixer_attention_size = 64;
  Index mixer_kernel_size = 7;
  Index mixer_dilation = 1;
  Index mixer_chunk_size = 256;
  TalkingHeads talking_heads = TalkingHeads::kNone;
  /// With TalkingHeads::kBoth: heads of weights between the two mixings; 0: num_attention_heads.
  Index softmax_heads = 0;
  /// Where weights are mixed, heads of values, each with values of its own; 0: num_attention_heads.
  Index value_heads = 0;
  Index largest_keys = 0;  ///< how many keys a query keeps, those of the largest scores; 0: all
  PreviousScores previous_scores = PreviousScores::kNone;
  double residual_scale = 1;  ///< α of DeepNorm: x ← norm(α x + f(x)); post-norm only
  /// false: what the first layer's attention (or mixer, or gated unit) gives takes the place of the
  /// embeddings, without their residual: a token reaches its own row through attention alone.
  bool input_residual = true;
  /// Learned absolute positions join the states in front of so many of the last layers.
  Index late_positions = 0;
  /// Tokens are softly masked by it (model/forward/soft_mask_forward.hpp).
  std::optional<DetectorDesign> detector;
  std::optional<LatentDesign> latent;

  bool operator==(const VariantDesign&) const = default;
};

/// Whether a norm follows the sum of the states and what a part of a layer gives.
inline bool norms_sum(NormPlacement placement) {
  return placement == NormPlacement::kPost || placement == NormPlacement::kAdmin;
}

/// Whether the parts of a layer read norms of the states.
inline bool norms_input(NormPlacement placement) {
  return !norms_sum(placement) && placement != NormPlacement::kReZero;
}

/// Whether what attention, and what the feed-forward layer gives passes a norm in front of the sum.
inline bool norms_attention_output(NormPlacement placement) {
  return placement == NormPlacement::kSandwich || placement == NormPlacement::kNormFormer;
}
inline bool norms_feed_forward_output(NormPlacement placement) {
  return placement == NormPlacement::kSandwich;
}

/// A model without its weights.
struct Design {
  std::string family;      ///< stem: "bert"
  std::string model_type;  ///< of config.json

  Index vocab_size = 0;
  Index hidden_size = 0;
  Index embedding_size = 0;  ///< width of the tables; a projection follows where weights have one
  Index num_hidden_layers = 0;
  Index num_attention_heads = 1;
  Index num_key_value_heads = 1;
  Index head_size = 0;
  Index value_size = 0;  ///< of a head; 0: head_size
  Index intermediate_size = 0;
  Index type_vocab_size = 0;          ///< 0: no token types
  Index max_position_embeddings = 0;  ///< longest sequence; 0: no limit
  Index position_offset = 0;          ///< added to positions: RoBERTa's 2
  std::optional<Index> pad_token_id;
  std::optional<TokenId> mask_token_id;  ///< what a query stream without tokens starts from

  std::optional<NormDesign> embedding_norm;
  double embedding_scale = 1;
  PositionType position = PositionType::kLearned;
  bool sinusoidal_interleaved = false;

  LayerKind layer_kind = LayerKind::kTransformer;
  NormPlacement norm_placement = NormPlacement::kPost;
  NormDesign norm;
  bool norm_weights = true;  ///< norms have weights (false: gau_alpha, RoFormerV2)
  /// Dense layers have biases; stated by families that leave it open (gau_alpha, roformer, masque).
  bool use_bias = true;
  bool final_norm = false;
  kernel::Activation activation = kernel::Activation::kGelu;
  bool gated = false;  ///< act(x W_gate) ⊙ (x W_up)
  double attention_scale = 1;
  std::string normalizer = "softmax";  ///< of nn's, one for all layers or a list (layer_list.hpp)
  DefaultMask mask = DefaultMask::kFull;
  Streams streams = Streams::kOne;
  std::vector<LayerDesign> layers;  ///< num_hidden_layers of them

  // T5 and MPNet
  Index relative_buckets = 0;
  Index relative_max_distance = 0;
  Index distance_clamp = 0;  ///< XLNet's clamp_len: distances beyond it count as it; 0: none
  // DeBERTa
  bool content_to_position = false;
  bool position_to_content = false;
  bool share_attention_key = false;
  Index position_buckets = -1;
  Index max_relative_positions = 0;
  bool relative_norm = false;
  Index convolution_size = 0;  ///< conv_kernel_size of its first layer; 0: none
  kernel::Activation convolution_activation = kernel::Activation::kTanh;
  // GAU
  Index attention_key_size = 0;

  VariantDesign variants;
  HeadDesign head;
  std::string missing_head;        ///< of HeadKind::kNone: what the checkpoint lacks for a head
  std::vector<std::string> notes;  ///< what else to know of the checkpoint, one line each

  bool operator==(const Design&) const = default;
};

/// Whether two designs compute the same from the same weights: all but family, model_type,
/// missing_head, notes, and `pad_token_id` where positions do not count from it.
bool same_design(const Design& a, const Design& b);

/// What a model of HeadKind::kNone lacks.
inline std::string missing_head(const Design& design) {
  return design.missing_head.empty() ? "the model has no head" : design.missing_head;
}

/// Columns of a head's values.
inline Index head_value_size(const Design& design) {
  return design.value_size > 0 ? design.value_size : design.head_size;
}

/// Layers of each of two towers (Streams::kTowers).
inline Index tower_layers(const Design& design) { return design.num_hidden_layers / 2; }

/// Columns of the last states, which the head reads: of two towers those of both, side by side.
inline Index last_width(const Design& design) {
  return design.streams == Streams::kTowers ? 2 * design.hidden_size : design.hidden_size;
}

}  // namespace masque::model
