// What a model is, as data: everything needed to run it except the weights. A family makes
// one from config.json (model/family/).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/rotary.hpp"
#include "mask/expression.hpp"
#include "model/layer_list.hpp"

namespace masque::nn {
class Mixer;
}

namespace masque::model {

/// How positions enter, by masque's own terms (own_positions() in model/variants.hpp).
enum class PositionType {
  kNone,          ///< no positions, or those of VariantDesign::position
  kLearned,       ///< a table added to the token embeddings
  kSinusoidal,    ///< a fixed table added to the token embeddings
  kRotary,        ///< queries and keys are rotated
  kXlnet,         ///< XLNet's relative terms, per layer
  kT5,            ///< a bias by bucket, one table for all layers
  kDisentangled,  ///< DeBERTa's terms, one table for all layers
};

/// Where the norms of a layer stand: the formula of each of its two parts f.
enum class NormPlacement {
  kPost,            ///< x ← norm(x + f(x))
  kPre,             ///< x ← x + f(norm(x)), and a norm after the last layer
  kParallel,        ///< x ← x + attention(norm1(x)) + feed_forward(norm2(x)): GPT-NeoX
  kParallelShared,  ///< x ← x + attention(n) + feed_forward(n) with n = norm(x): GPT-J, Phi, Cohere
  kOutput,          ///< x ← x + norm(f(x)), and a norm after the last layer: OLMo 2
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

/// Norms of queries and keys, in front of their rotation: of Design::norm's kind.
enum class QueryKeyNorm {
  kNone,      ///< none
  kHead,      ///< of each head, one set of weights for all: Qwen3
  kEachHead,  ///< of each head, with weights of its own: Cohere
  kWidth,     ///< of all heads together: OLMo 2
};

/// What a layer consists of.
enum class LayerKind {
  kTransformer,     ///< attention, then feed-forward
  kGatedAttention,  ///< GAU: one layer that is both
};

/// Which keys a query may read, unless a mask is given.
enum class DefaultMask {
  kFull,    ///< all
  kCausal,  ///< itself and those before it
  kOthers,  ///< all but itself: T-TA
};

/// Which streams run.
enum class Streams {
  kOne,        ///< one stream of all rows
  kTwo,        ///< XLNet: a query stream next to the content stream where targets are requested
  kFixedKeys,  ///< T-TA: queries start without tokens, keys and values come from the embeddings
  /// TwoTower: the first half of the layers reads from left to right, the second half from right to
  /// left, both from the embeddings; position i predicts from the first at i − 1 and the second at
  /// i + 1. The layers' masks are those of tower_masks().
  kTowers,
};

/// A kind of norm with its constant; whether it has weights says Design::norm_weights.
struct NormDesign {
  kernel::Norm kind = kernel::Norm::kLayer;  ///< layer norm or RMS norm
  double epsilon = 1e-12;                    ///< added to the variance, or to the mean square
  double weight_offset = 0;  ///< added to stored weights: 1 in Gemma, which stores w − 1

  bool operator==(const NormDesign&) const = default;
};

/// Rotary positions of one layer; without frequencies nothing is rotated. Su et al. 2021,
/// arXiv:2104.09864.
struct RotaryDesign {
  kernel::RotaryLayout layout = kernel::RotaryLayout::kHalf;  ///< which features form a pair
  /// Radians of each pair for one position, after any scaling; the first 2 · size() features of a
  /// head are rotated.
  std::vector<double> frequencies;
  double factor = 1;          ///< multiplies cosine and sine
  bool float_angles = false;  ///< rounded to float, as transformers computes them
  bool values = false;        ///< values are rotated too (RoFormer's rotary_value)
  /// Of texts with more than `long_from` tokens, in place of `frequencies`; empty: the same. Ding
  /// et al. 2024 (LongRoPE), arXiv:2402.13753.
  std::vector<double> long_frequencies;
  Index long_from = 0;  ///< the longest text with `frequencies`; 0 without `long_frequencies`

  bool operator==(const RotaryDesign&) const = default;
};

/// A mixture of experts in the place of a feed-forward layer: each token goes through the few of
/// these that a router chooses for it. Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024
/// (Mixtral), arXiv:2401.04088.
struct ExpertsDesign {
  Index count = 0;              ///< experts of a layer
  Index per_token = 0;          ///< how many a token goes through: those of the largest probability
  Index intermediate_size = 0;  ///< of each expert
  bool normalized = false;      ///< the weights of the chosen ones are divided by their sum
  /// Intermediate size of an expert that all tokens go through, times a sigmoid; 0: there is none.
  Index shared_intermediate_size = 0;
  /// c of gpt-oss: what the activation reads is at most c, what multiplies it is 1 more than within
  /// ± c; 0: neither.
  double limit = 0;

  bool operator==(const ExpertsDesign&) const = default;
};

/// What differs from layer to layer.
struct LayerDesign {
  Index weights = 0;            ///< whose weights it uses: ALBERT's layers share
  std::optional<Index> window;  ///< |i − j| ≤ window: local attention
  RotaryDesign rotary;          ///< for PositionType::kRotary
  bool input_norm = true;       ///< pre-norm: whether there is one (ModernBERT's first has none)
  double attention_scale = 1;   ///< scale of scores, in addition to Design::attention_scale
  bool experts = false;         ///< its feed-forward layer is Design::experts

  bool operator==(const LayerDesign&) const = default;
};

/// What the head of a model predicts.
enum class HeadKind {
  kNone,           ///< no head
  kMasked,         ///< a vocabulary at each position: the token that stands there
  kCausal,         ///< a vocabulary at each position: the next token
  kDiscriminator,  ///< one logit a position: replaced (> 0) or original
  kEnergy,         ///< one number a position, Electric's energy E: p(token | others) ∝ exp(−E)
  kText,  ///< one number a text, of its first token's state (model/checkpoint/text_head.hpp)
};

/// Whether a head of this `kind` gives one number for each position, and not one for each token; of
/// kText only that of the first position means something.
inline bool has_one_number(HeadKind kind) {
  return kind == HeadKind::kDiscriminator || kind == HeadKind::kEnergy || kind == HeadKind::kText;
}

/// How the head computes its result from the last states.
struct HeadDesign {
  HeadKind kind = HeadKind::kNone;  ///< what it predicts
  bool transform = false;           ///< dense, activation, norm before the vocabulary
  kernel::Activation activation = kernel::Activation::kGelu;  ///< activation of the transform
  std::optional<NormDesign> norm;  ///< norm of the transform; none: it has no norm
  bool tied = true;                ///< the vocabulary matrix is the word table
  double scale = 1;                ///< scale of the states before the vocabulary matrix
  double logit_cap = 0;            ///< c of a soft cap: logits become c · tanh(logit / c); 0: none
  /// Of kMasked: what stands at a position is predicted from the last state of the position before
  /// it, at the first position of a sequence from its own. A model of next tokens that became one
  /// of masked diffusion keeps its weights so. Ye et al. 2025 (Dream), arXiv:2508.15487.
  bool shifted = false;

  bool operator==(const HeadDesign&) const = default;
};

/// Where heads are mixed with each other: Shazeer 2020, arXiv:2003.02436.
enum class TalkingHeads {
  kNone,    ///< nowhere
  kBefore,  ///< scores, before the normalizer
  kAfter,   ///< weights, after the normalizer
  kBoth,
};

/// Whether `talking` mixes the heads of weights: kAfter or kBoth.
inline bool mixes_weights(TalkingHeads talking) {
  return talking == TalkingHeads::kAfter || talking == TalkingHeads::kBoth;
}

/// What is added to the scores of a layer. RealFormer: He 2020, arXiv:2012.11747.
enum class PreviousScores {
  kNone,         ///< nothing
  kOneLayer,     ///< the layer before's own
  kAccumulated,  ///< the sum of all layers' before
};

/// Sizes of the detection network of Soft-Masked BERT, which reads what enters the layers and says
/// of each token how likely it is wrong: Zhang et al. 2020, arXiv:2005.07421. What else it is
/// follows from the design that it belongs to (model/detector.hpp).
struct DetectorDesign {
  Index num_hidden_layers = 1;    ///< its own layers
  Index hidden_size = 0;          ///< width of its states; a multiple of the number of heads
  Index num_attention_heads = 1;  ///< in each layer
  Index intermediate_size = 0;    ///< intermediate size of its feed-forward layers

  bool operator==(const DetectorDesign&) const = default;
};

/// The bottlenecks of UniVAE, in front of the last layers: see forward/latent_forward.hpp.
struct LatentDesign {
  Index layers = 0;   ///< how many of the last layers have one; these also read the first token
  Index size = 16;    ///< dimension of the sphere's space
  double kappa = 32;  ///< concentration of the von Mises–Fisher distribution while training
  /// Each bottleneck learns its own, from `kappa` on.
  bool learned_kappa = false;

  bool operator==(const LatentDesign&) const = default;
};

/// Attention in blocks, of long texts alone: BigBird's. Queries of the first and of the last block
/// read everything, others three blocks around their own, the first and the last. Zaheer 2020,
/// arXiv:2007.14062.
struct BlockSparseDesign {
  Index block_size = 0;   ///< tokens of a block; the last one of a text may have fewer
  Index full_length = 0;  ///< texts of up to so many tokens are read under full attention
  /// How often each key of the first block counts in the softmax of queries outside of the first
  /// and the last block, besides once: transformers' BigBird reads that block in the place of each
  /// random one, except while it trains.
  Index repeats = 0;

  bool operator==(const BlockSparseDesign&) const = default;
};

/// What the decoder of an encoder–decoder has: its layers read the last states of an encoder,
/// between attention and feed-forward layer. Vaswani et al. 2017, arXiv:1706.03762.
struct SourceDesign {
  std::optional<Index> start_token_id;  ///< the token in front of a target; none: not stated
  /// A target whose tokens are given begins with its last one instead (mBART's language).
  bool begins_with_last = false;

  bool operator==(const SourceDesign&) const = default;
};

/// The token in front of a target that ends with `last`, as `source` says. Throws InputError
/// (message only) if it does not state one.
TokenId begin_of_target(const SourceDesign& source, TokenId last);

/// What only the family `masque` has. Names are those of nn's registries.
struct VariantDesign {
  /// What layers may read: one for all or a list; a mask may leave words and seed to each text
  /// (mask::MaskExpression::open). Empty: Design::mask counts, else that is kFull. Set by
  /// set_mask().
  std::vector<mask::MaskLayer> masks;
  /// A scheme of nn/position/position_scheme.hpp with its arguments, or a list of one and `none`;
  /// empty: Design::position counts, else that is kNone. It acts on the input where tables are
  /// added: in front of the embedding norm.
  PositionList position;
  /// Its parameters inside layers are one set for all layers; those of the input always are.
  bool position_shared = false;
  /// Instead of attention: x + output(mix(x)), see mixer_output; nullptr: attention. Lives as long
  /// as the program. Its longest sequence is max_position_embeddings.
  const nn::Mixer* mixer = nullptr;
  Index mixer_inner_size = 0;       ///< nn::MixerShape::inner_size; 0: what the mixer says
  Index mixer_attention_size = 64;  ///< nn::MixerShape::attention_size
  Index mixer_kernel_size = 7;      ///< nn::MixerShape::kernel_size: taps of a convolution
  Index mixer_dilation = 1;         ///< nn::MixerShape::dilation: tokens between taps
  Index mixer_chunk_size = 256;     ///< nn::MixerShape::chunk_size, in tokens
  /// false: x + mix(x), without the output projection of attention: FNet.
  bool mixer_output = true;
  TalkingHeads talking_heads = TalkingHeads::kNone;  ///< where attention mixes its heads
  /// With TalkingHeads::kBoth: heads of weights between the two mixings; 0: num_attention_heads.
  Index softmax_heads = 0;
  /// Where weights are mixed, heads of values, each with values of its own; 0: num_attention_heads.
  Index value_heads = 0;
  Index largest_keys = 0;  ///< how many keys a query keeps, those of the largest scores; 0: all
  /// What each layer adds to its scores from the layers before it.
  PreviousScores previous_scores = PreviousScores::kNone;
  double residual_scale = 1;  ///< α of DeepNorm: x ← norm(α x + f(x)); post-norm only
  /// false: what the first layer's attention (or mixer, or gated unit) gives takes the place of the
  /// embeddings, without their residual: a token reaches its own row through attention alone.
  bool input_residual = true;
  /// Learned absolute positions join the states in front of so many of the last layers.
  Index late_positions = 0;
  /// Tokens are softly masked by it (model/forward/soft_mask_forward.hpp).
  std::optional<DetectorDesign> detector;
  std::optional<LatentDesign> latent;  ///< none: no bottlenecks

  bool operator==(const VariantDesign&) const = default;
};

/// Whether `placement` puts a norm after the sum of the states and what a part of a layer gives:
/// kPost and kAdmin.
inline bool norms_sum(NormPlacement placement) {
  return placement == NormPlacement::kPost || placement == NormPlacement::kAdmin;
}

/// Whether with `placement` the parts of a layer read norms of the states: all others but kReZero
/// and kOutput.
inline bool norms_input(NormPlacement placement) {
  return !norms_sum(placement) && placement != NormPlacement::kReZero &&
         placement != NormPlacement::kOutput;
}

/// Whether with `placement` the sum that a layer ends in has no norm of its own, so that one
/// follows the last layer: as norms_input(), and kOutput.
inline bool norms_last_sum(NormPlacement placement) {
  return norms_input(placement) || placement == NormPlacement::kOutput;
}

/// Whether with `placement` attention and the feed-forward layer read the same states: kParallel
/// and kParallelShared.
inline bool is_parallel(NormPlacement placement) {
  return placement == NormPlacement::kParallel || placement == NormPlacement::kParallelShared;
}

/// Whether with `placement` a layer has a norm of what attention reads, or of the sum that
/// attention ends in: all others but kReZero and kOutput.
inline bool has_attention_norm(NormPlacement placement) {
  return norms_sum(placement) || norms_input(placement);
}
/// Whether with `placement` a layer has such a norm of its feed-forward layer: as
/// has_attention_norm(), but not kParallelShared, which has one norm for both.
inline bool has_feed_forward_norm(NormPlacement placement) {
  return has_attention_norm(placement) && placement != NormPlacement::kParallelShared;
}

/// Whether with `placement` what the feed-forward layer gives passes a norm in front of the sum:
/// kSandwich and kOutput.
inline bool norms_feed_forward_output(NormPlacement placement) {
  return placement == NormPlacement::kSandwich || placement == NormPlacement::kOutput;
}
/// Whether with `placement` what attention gives passes a norm in front of the sum: kSandwich,
/// kOutput and kNormFormer.
inline bool norms_attention_output(NormPlacement placement) {
  return norms_feed_forward_output(placement) || placement == NormPlacement::kNormFormer;
}

/// A model without its weights.
struct Design {
  std::string family;      ///< stem: "bert"
  std::string model_type;  ///< "model_type" of config.json

  Index vocab_size = 0;           ///< V: ids are 0 … V − 1
  Index hidden_size = 0;          ///< d: width of the states
  Index embedding_size = 0;       ///< width of the tables; a projection follows if weights have one
  Index num_hidden_layers = 0;    ///< L, also where layers share weights
  Index num_attention_heads = 1;  ///< h: heads of queries; gated attention has 1
  Index num_key_value_heads = 1;  ///< divides num_attention_heads
  Index head_size = 0;            ///< d_h: columns of a head's queries and keys
  Index value_size = 0;           ///< columns of a head's values; 0: head_size
  Index intermediate_size = 0;    ///< f of feed-forward layers; e of gated attention
  Index type_vocab_size = 0;      ///< 0: no token types
  Index max_position_embeddings = 0;  ///< longest sequence; 0: no limit
  Index position_offset = 0;          ///< added to positions: RoBERTa's 2
  /// With a position_offset, positions do not count this token.
  std::optional<Index> pad_token_id;
  std::optional<TokenId> mask_token_id;  ///< what a query stream without tokens starts from

  std::optional<NormDesign> embedding_norm;  ///< norm of the sum of the tables; none: no norm
  double embedding_scale = 1;                ///< multiplies rows of the word table
  /// Token dropout of protein models: rows of mask_token_id are 0, and those of a text are
  /// multiplied by (1 − token_dropout) / (1 − the share of mask_token_id in it); 0: neither. Rives
  /// et al. 2021 (ESM-1b).
  double token_dropout = 0;
  PositionType position = PositionType::kLearned;  ///< masque's own terms
  bool sinusoidal_interleaved = false;  ///< kSinusoidal: sine, cosine, …; false: sines first
  /// The rows of the table of positions are as wide as the states, and join them after the
  /// projection of the embeddings: OPT-350m.
  bool positions_after_projection = false;

  LayerKind layer_kind = LayerKind::kTransformer;       ///< layer kind of all layers
  NormPlacement norm_placement = NormPlacement::kPost;  ///< norm placement of all layers
  NormDesign norm;           ///< norm of the layers, of final_norm and of relative_norm
  bool norm_weights = true;  ///< norms have weights (false: gau_alpha, RoFormerV2)
  /// Dense layers have biases; stated by families that leave it open (gau_alpha, roformer, masque).
  bool use_bias = true;
  bool final_norm = false;  ///< a norm follows the last layer
  /// Activation of layers; the head has its own.
  kernel::Activation activation = kernel::Activation::kGelu;
  bool gated = false;  ///< act(x W_gate) ⊙ (x W_up)
  /// Each head has a score of its own for a key without a value, a learned number in each layer:
  /// the weights of a row sum to less than 1. OpenAI 2025 (gpt-oss), arXiv:2508.10925.
  bool sinks = false;
  bool clip_after_norms = false;         ///< clip_qkv is after norms of queries and keys: OLMoE
  std::optional<ExpertsDesign> experts;  ///< of layers with LayerDesign::experts; these are gated
  double attention_scale = 1;  ///< multiplies q · k, often 1/√head_size; LayerDesign has another
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;  ///< norms of queries and keys, in all layers
  /// Queries, keys and values are cut off at ± this number, before norm and rotation; 0: nowhere.
  double clip_qkv = 0;
  /// c of a soft cap of scores: a score becomes c · tanh(score / c), before the mask; 0: none.
  double score_cap = 0;
  /// Multiplies what each part of a layer adds to the residual; 1 where norms_sum().
  double residual_multiplier = 1;
  NormalizerList normalizer = "softmax";  ///< normalizer of attention
  /// Mask of all layers, unless VariantDesign::masks has some.
  DefaultMask mask = DefaultMask::kFull;
  Streams streams = Streams::kOne;  ///< which streams run
  /// Of all layers, on top of their masks (sparse_blocks() in model/masks.hpp).
  std::optional<BlockSparseDesign> block_sparse;
  std::vector<LayerDesign> layers;  ///< num_hidden_layers of them

  // T5 and MPNet
  /// Number of buckets of distances, half of them for each sign: rows of the table.
  Index relative_buckets = 0;
  /// Rows of the table that are not used, after those of the buckets.
  Index unused_relative_rows = 0;
  Index relative_max_distance = 0;  ///< tokens; beyond it all share the last bucket
  Index distance_clamp = 0;         ///< XLNet's clamp_len: distances beyond it count as it; 0: none
  bool relative_backwards = false;  ///< all buckets are of keys up to the query: T5's decoder
  // DeBERTa
  bool content_to_position = false;  ///< pos_att_type has c2p: queries meet distances
  bool position_to_content = false;  ///< pos_att_type has p2c: keys meet distances
  bool share_attention_key = false;  ///< distances use the projections of tokens
  Index position_buckets = -1;       ///< logarithmic, for each sign; ≤ 0: plain distances
  Index max_relative_positions = 0;  ///< longest distance, in tokens
  bool relative_norm = false;        ///< the table of distances passes a norm
  Index convolution_size = 0;        ///< conv_kernel_size of its first layer; 0: none
  kernel::Activation convolution_activation = kernel::Activation::kTanh;  ///< conv_act
  // GAU
  Index attention_key_size = 0;  ///< s: columns of queries and keys

  std::optional<SourceDesign> source;  ///< a decoder that reads the states of an encoder
  VariantDesign variants;              ///< what only the family `masque` has
  HeadDesign head;                     ///< kNone: the model has none
  std::string missing_head;        ///< for HeadKind::kNone: what the checkpoint lacks for a head
  std::vector<std::string> notes;  ///< what else to know of the checkpoint, one line each

  bool operator==(const Design&) const = default;
};

/// Whether `a` and `b` compute the same from the same weights: all but family, model_type,
/// missing_head, notes, and `pad_token_id` where positions do not count from it.
bool same_design(const Design& a, const Design& b);

/// The longest text before angles of `design` change (RotaryDesign::long_from); 0: they do not.
inline Index long_from(const Design& design) {
  Index longest = 0;
  for (const LayerDesign& layer : design.layers)
    longest = std::max(longest, layer.rotary.long_from);
  return longest;
}

/// What a model of HeadKind::kNone lacks, for messages: `design.missing_head`, or a general text.
inline std::string missing_head(const Design& design) {
  return design.missing_head.empty() ? "the model has no head" : design.missing_head;
}

/// Columns of a head's values: `design.value_size`, or head_size if that is 0.
inline Index head_value_size(const Design& design) {
  return design.value_size > 0 ? design.value_size : design.head_size;
}

/// Layers of each of two towers (Streams::kTowers): half of those of `design`.
inline Index tower_layers(const Design& design) { return design.num_hidden_layers / 2; }

/// Columns of the last states of `design`, which the head reads: of two towers those of both, side
/// by side.
inline Index last_width(const Design& design) {
  return design.streams == Streams::kTowers ? 2 * design.hidden_size : design.hidden_size;
}

}  // namespace masque::model
