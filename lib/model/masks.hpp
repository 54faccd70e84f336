// Which keys the queries of a sequence may read, layer by layer, as block maps.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/block_map.hpp"
#include "mask/expression.hpp"
#include "model/design.hpp"

namespace masque::model {

/// The mask language's name of the default mask `mask`.
std::string_view default_mask_name(DefaultMask mask);
/// The default mask `mask` itself, to be bound to the lengths of a sequence.
mask::MaskExpression default_mask(DefaultMask mask);

/// Gives `design` the masks `masks`, one for all layers or a list with one entry a layer, instead
/// of its own; a layer may have one for each head. Throws UsageError for what is no mask, for masks
/// that read files, or do not fit its layers and heads, and for masks by head with talking heads or
/// mixers.
void set_mask(std::string_view masks, Design& design);

/// Makes two towers of the layers of `design` (Streams::kTowers), under the masks `causal` and
/// `reverse`. Throws UsageError for an odd number of layers, for mixers, and for layers that read
/// scores of the layer before.
void set_towers(Design& design);

/// The attention in blocks that layers of `design` have in texts that are longer than its
/// full_length; nullptr if they have none: models without, and those that were given another mask,
/// other positions or a mixer. Points into `design`.
const BlockSparseDesign* sparse_blocks(const Design& design);
/// The longest text that training of `design` reads, in tokens; 0: no limit. Positions are one
/// limit; attention in blocks is another, because transformers trains it with blocks that it draws.
Index longest_trained(const Design& design);
/// What messages about longest_trained() of `design` add to the name of the model: "" where
/// positions are the limit.
std::string_view trained_part(const Design& design);

/// What `design` says that its layers may read: a list, one for all, or nothing if all are full.
/// Windows of layers come on top.
std::vector<mask::MaskLayer> own_masks(const Design& design);
/// What each layer of `design` may read by itself, windows, blocks and the first token of latent
/// bottlenecks included, an expression of the mask language each: "causal_window(4096)". Where the
/// mask leaves words to each text, it does so here ("tta_word").
std::vector<std::string> layer_mask_texts(const Design& design);
/// One mask for each layer of `design`, for `length` tokens, from such a `list`; empty: full.
/// Layers with a latent bottleneck also read the first token. Windows of layers are left out. A
/// layer with masks by head reads what any head reads. Throws UsageError for masks that do not fit.
std::vector<mask::Mask> bind_layers(const Design& design, std::span<const mask::MaskLayer> list,
                                    Index length);
/// The one mask for all layers and heads of `design`, for `length` tokens. Throws UsageError for a
/// list, and for masks that do not fit.
mask::Mask own_mask(const Design& design, Index length);

/// The mask of `design`, or the one of `given` in its place if there is any, that leaves words or a
/// seed to each text (MaskExpression::open); nothing if none does. Throws UsageError for such masks
/// in a list.
std::optional<mask::MaskExpression> open_mask(const Design& design,
                                              std::span<const mask::MaskLayer> given = {});

/// The b of causal_blocks(b), in tokens, if `design` reads under that alone, or by `given` in its
/// place: a model that block diffusion trained.
std::optional<Index> causal_block_size(const Design& design,
                                       std::span<const mask::MaskLayer> given = {});

/// Why the head of `design` cannot be shifted (HeadDesign::shifted); nothing if it can, and if it
/// is not.
std::optional<std::string> shifted_head_problem(const Design& design);

/// The mask of `lengths` under which every query reads the first key alone: what all queries read
/// in layers with a latent bottleneck, besides their mask.
mask::Mask first_key(mask::Lengths lengths);

/// What a sequence's own mask is to that of the model.
enum class OwnMask {
  kReplaces,  ///< a row reads what its own mask lets through
  kJoins,     ///< a row reads what both let through
};

/// The masks of a model's layers. Block maps of whole sequences under the model's own masks are
/// kept, up to about 64 MiB, for further sequences of the same length. Thread-safe.
class LayerMasks {
 public:
  /// The masks of `design`, of which nothing is borrowed. `given`: one for all layers or a list
  /// with one entry a layer; replaces the design's, windows and blocks of layers included. Throws
  /// UsageError if the list does not fit, as set_mask does.
  LayerMasks(const Design& design, const std::vector<mask::MaskLayer>& given);

  /// The blocks that layers read of long texts, sparse_blocks() unless masks were given; nullptr:
  /// none. Owned by this object.
  const BlockSparseDesign* sparse() const { return sparse_ ? &*sparse_ : nullptr; }

  /// The number of the masks of layer `layer`; layers with the same number share their masks.
  std::size_t kind(Index layer) const { return kinds_[static_cast<std::size_t>(layer)]; }

  /// What the queries `rows` (of a sequence of `length` tokens, counted from its first; empty: all)
  /// may read in layers of `kind`; nullptr: everything. `own` is the sequence's own mask: with
  /// `how` kReplaces it replaces the model's, with kJoins it holds besides the model's. The windows
  /// and blocks of layers hold in both cases, as does the first key, which all queries read in
  /// layers with a latent bottleneck. Windows go by `places`, one a token; empty: 0, 1, … Throws
  /// UsageError for a mask that does not fit the length.
  std::shared_ptr<const mask::BlockMap> blocks(std::size_t kind, Index length,
                                               std::span<const Index> rows,
                                               const std::optional<mask::Mask>& own,
                                               std::span<const Index> places = {},
                                               OwnMask how = OwnMask::kReplaces) const;

 private:
  struct Kind {
    std::optional<mask::MaskExpression> mask;  ///< none: full
    std::optional<Index> window;
    bool latent = false;  ///< every query also reads the first key
  };
  mask::BlockMap bind(const Kind& kind, Index length, std::span<const Index> rows,
                      const std::optional<mask::Mask>& own, std::span<const Index> places,
                      OwnMask how) const;

  /// Whether a sequence of `length` tokens is read in blocks.
  bool is_sparse(Index length) const { return sparse_ && length > sparse_->full_length; }

  std::vector<Kind> different_;
  std::vector<std::size_t> kinds_;
  std::optional<BlockSparseDesign> sparse_;
  mutable std::mutex mutex_;
  /// Maps of whole sequences under the model's own masks, by kind and length.
  mutable std::map<std::pair<std::size_t, Index>, std::shared_ptr<const mask::BlockMap>> known_;
  mutable std::uint64_t known_bytes_ = 0;
};

}  // namespace masque::model
