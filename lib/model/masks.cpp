#include "model/masks.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/builtin.hpp"
#include "mask/zoo.hpp"
#include "model/variants.hpp"

namespace masque::model {
namespace {

constexpr std::uint64_t kKnownBytes = 64 << 20;

// Some queries of a mask, renumbered.
class SomeQueries final : public mask::MaskNode {
 public:
  SomeQueries(mask::Mask mask, std::span<const Index> rows)
      : mask_(std::move(mask)), rows_(rows.begin(), rows.end()) {}
  bool allows(Index q, Index k) const override { return mask_.allows(row(q), k); }
  mask::Cover cover(mask::Range q, mask::Range k) const override {
    if (q.size() == 1) return mask_.cover({row(q.begin), row(q.begin) + 1}, k);
    return MaskNode::cover(q, k);
  }
  std::uint64_t bits(Index q, Index k0, int n) const override { return mask_.bits(row(q), k0, n); }

 private:
  Index row(Index q) const { return rows_[static_cast<std::size_t>(q)]; }
  mask::Mask mask_;
  std::vector<Index> rows_;
};

/// Tokens that stand at most `window` apart.
mask::Mask window_of(std::span<const Index> places, Index window) {
  const Index n = std::ssize(places);
  mask::BitMatrix bits(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const Index apart = places[static_cast<std::size_t>(i)] - places[static_cast<std::size_t>(j)];
      if (std::abs(apart) <= window) bits.set(i, j);
    }
  }
  return mask::from_bits(std::move(bits));
}

/// `mask` of some `rows`; empty: of all.
mask::Mask of_rows(mask::Mask mask, std::span<const Index> rows) {
  if (rows.empty()) return mask;
  const mask::Lengths lengths{std::ssize(rows), mask.lengths().keys};
  return {std::make_shared<const SomeQueries>(std::move(mask), rows), lengths};
}

/// The mask of `blocks`, by masque's language.
std::string sparse_text(const BlockSparseDesign& blocks) {
  return fmt::format("bigbird({},0,full={})", blocks.block_size, blocks.full_length);
}

void check_heads(const Design& design, std::span<const mask::MaskExpression> heads) {
  if (heads.empty()) return;
  if (std::ssize(heads) != design.num_attention_heads) {
    throw UsageError(fmt::format("a layer has {} masks, expected 1 or {}, one a head", heads.size(),
                                 design.num_attention_heads));
  }
  const VariantDesign& variants = design.variants;
  const bool talks = variants.talking_heads != TalkingHeads::kNone;
  if (talks || variants.mixer != nullptr) {
    throw UsageError(fmt::format("masks that differ between heads cannot be combined with {}",
                                 field(talks ? "talking_heads" : "mixer")));
  }
}

/// Throws UsageError for `layers` that do not fit the layers and heads of `design`.
void check_list(const Design& design, std::span<const mask::MaskLayer> layers) {
  Index count = 0;
  for (const mask::MaskLayer& layer : layers) {
    count += layer.count;
    check_heads(design, layer.mask.heads());
  }
  if (count == 1 || count == design.num_hidden_layers) return;
  throw UsageError(
      fmt::format("the mask list has {} layers, expected 1 or {}, the model's number of layers",
                  count, design.num_hidden_layers));
}

}  // namespace

mask::Mask first_key(mask::Lengths lengths) {
  std::vector<bool> first(static_cast<std::size_t>(lengths.keys), false);
  if (!first.empty()) first.front() = true;
  return mask::columns(lengths, first);
}

std::string_view default_mask_name(DefaultMask mask) {
  switch (mask) {
    case DefaultMask::kFull: return "full";
    case DefaultMask::kCausal: return "causal";
    case DefaultMask::kOthers: break;
  }
  return "tta";
}

mask::MaskExpression default_mask(DefaultMask mask) {
  return mask::parse_mask(default_mask_name(mask));
}

const BlockSparseDesign* sparse_blocks(const Design& design) {
  const VariantDesign& variants = design.variants;
  const bool replaced = design.mask != DefaultMask::kFull || !variants.masks.empty() ||
                        !variants.position.empty() || variants.mixer != nullptr;
  return design.block_sparse && !replaced ? &*design.block_sparse : nullptr;
}

Index longest_trained(const Design& design) {
  const Index positions = design.max_position_embeddings;
  const BlockSparseDesign* blocks = sparse_blocks(design);
  if (blocks == nullptr) return positions;
  return positions == 0 ? blocks->full_length : std::min(positions, blocks->full_length);
}

std::string_view trained_part(const Design& design) {
  return longest_trained(design) == design.max_position_embeddings
             ? ""
             : " without attention in blocks, which training does not have";
}

void set_mask(std::string_view masks, Design& design) {
  const std::vector<mask::MaskLayer> layers = mask::parse_open_mask_layers(masks);
  check_list(design, layers);
  const std::string text = layers_text(layers);
  design.variants.masks = layers;
  design.mask = DefaultMask::kFull;
  for (const DefaultMask usual : {DefaultMask::kFull, DefaultMask::kCausal, DefaultMask::kOthers}) {
    if (text != default_mask_name(usual)) continue;
    design.mask = usual;
    design.variants.masks.clear();
    return;
  }
}

void set_towers(Design& design) {
  if (design.num_hidden_layers < 2 || design.num_hidden_layers % 2 != 0) {
    throw UsageError(fmt::format("two towers with {} {}, expected an even number",
                                 field("num_hidden_layers"), design.num_hidden_layers));
  }
  const VariantDesign& variants = design.variants;
  if (variants.mixer != nullptr) {
    throw UsageError(fmt::format("two towers cannot be combined with {} {}, expected attention",
                                 field("mixer"), mixer_name(design)));
  }
  if (variants.previous_scores != PreviousScores::kNone)
    throw UsageError(
        fmt::format("two towers cannot be combined with {}", field("previous_scores")));
  const Index half = tower_layers(design);
  design.streams = Streams::kTowers;
  set_mask(fmt::format("{}*causal, {}*reverse", half, half), design);
}

std::vector<mask::MaskLayer> own_masks(const Design& design) {
  if (!design.variants.masks.empty()) return design.variants.masks;
  if (design.mask == DefaultMask::kFull) return {};
  return {{1, default_mask(design.mask)}};
}

std::vector<std::string> layer_mask_texts(const Design& design) {
  std::vector<std::string> texts;
  for (const mask::MaskLayer& layer : own_masks(design))
    texts.insert(texts.end(), static_cast<std::size_t>(layer.count), layer.mask.text());
  const auto layers = static_cast<std::size_t>(design.num_hidden_layers);
  if (texts.size() <= 1) texts.resize(layers, texts.empty() ? "full" : std::string(texts.front()));
  for (std::size_t l = 0; l < layers; ++l) {
    std::string& text = texts[l];
    if (const std::optional<Index> window = design.layers[l].window) {
      text = text == "full"     ? fmt::format("window({})", *window)
             : text == "causal" ? fmt::format("causal_window({})", *window + 1)
                                : fmt::format("({}) & window({})", text, *window);
    }
    if (const BlockSparseDesign* blocks = sparse_blocks(design)) {
      text = text == "full" ? sparse_text(*blocks)
                            : fmt::format("({}) & {}", text, sparse_text(*blocks));
    }
    const bool latent = static_cast<Index>(l) >= first_latent_layer(design);
    if (latent && text != "full") text = fmt::format("({}) | prefix(1)", text);
  }
  return texts;
}

std::vector<mask::Mask> bind_layers(const Design& design, std::span<const mask::MaskLayer> list,
                                    Index length) {
  const mask::MaskLayer full{1, default_mask(DefaultMask::kFull)};
  if (list.empty()) list = {&full, 1};
  std::vector<mask::Mask> masks;
  for (const mask::MaskLayer& layer : list) {
    const Index count = list.size() == 1 ? design.num_hidden_layers : layer.count;
    masks.insert(masks.end(), static_cast<std::size_t>(count),
                 layer.mask.any_head().bind_sequence(length));
  }
  for (Index l = first_latent_layer(design); l < std::ssize(masks); ++l) {
    mask::Mask& own = masks[static_cast<std::size_t>(l)];
    own = own | first_key(own.lengths());
  }
  return masks;
}

mask::Mask own_mask(const Design& design, Index length) {
  const std::vector<mask::MaskLayer> layers = own_masks(design);
  if (layers.empty()) return default_mask(DefaultMask::kFull).bind_sequence(length);
  if (layers.size() > 1) {
    throw UsageError(
        fmt::format("a list of masks, {}, expected one for all layers", layers_text(layers)));
  }
  return layers.front().mask.bind_sequence(length);
}

std::optional<mask::MaskExpression> open_mask(const Design& design,
                                              std::span<const mask::MaskLayer> given) {
  const std::vector<mask::MaskLayer> layers =
      given.empty() ? own_masks(design) : std::vector(given.begin(), given.end());
  const auto is_open = [](const mask::MaskLayer& layer) { return layer.mask.open(); };
  if (std::ranges::none_of(layers, is_open)) return std::nullopt;
  if (layers.size() == 1 && layers.front().mask.heads().empty()) return layers.front().mask;
  throw UsageError(fmt::format(
      "{} '{}': a mask of words cannot be part of a list, expected one mask for all layers",
      field("mask"), mask::shown_layers(layers)));
}

std::optional<Index> causal_block_size(const Design& design,
                                       std::span<const mask::MaskLayer> given) {
  const std::vector<mask::MaskLayer> layers =
      given.empty() ? own_masks(design) : std::vector(given.begin(), given.end());
  if (layers.size() != 1) return std::nullopt;
  const mask::MaskExpression& mask = layers.front().mask;
  if (mask.kind() != mask::MaskExpression::Kind::kName || mask.name() != "causal_blocks")
    return std::nullopt;
  return mask::mask_values(mask.named()).count("b");
}

std::optional<std::string> shifted_head_problem(const Design& design) {
  if (!design.head.shifted) return std::nullopt;
  if (design.head.kind != HeadKind::kMasked)
    return "the head predicts no masked tokens, expected one that does";
  if (design.streams != Streams::kOne) return "the model has several streams, expected one";
  if (design.variants.latent) return "the model has latent bottlenecks, expected none";
  if (design.variants.detector) return "the model has a detector, expected none";
  if (causal_block_size(design))
    return "the mask has blocks of block diffusion, expected another mask";
  return std::nullopt;
}

LayerMasks::LayerMasks(const Design& design, const std::vector<mask::MaskLayer>& given) {
  std::vector<mask::MaskLayer> own;
  if (given.empty() && !design.variants.masks.empty()) own = own_masks(design);
  const std::vector<mask::MaskLayer>& list = own.empty() ? given : own;
  if (!list.empty()) check_list(design, list);
  std::vector<const mask::MaskExpression*> of_layer;
  for (const mask::MaskLayer& layer : list)
    of_layer.insert(of_layer.end(), static_cast<std::size_t>(layer.count), &layer.mask);
  const auto layers = static_cast<std::size_t>(design.num_hidden_layers);
  if (of_layer.size() == 1) of_layer.resize(layers, of_layer.front());
  const BlockSparseDesign* blocks = given.empty() ? sparse_blocks(design) : nullptr;
  if (blocks != nullptr) sparse_ = *blocks;
  std::optional<mask::MaskExpression> usual;
  if (design.mask != DefaultMask::kFull) usual = default_mask(design.mask);
  kinds_.reserve(layers);
  for (std::size_t l = 0; l < layers; ++l) {
    Kind kind = of_layer.empty()
                    ? Kind{usual, design.layers[l].window}
                    : Kind{*of_layer[l], given.empty() ? design.layers[l].window : std::nullopt};
    kind.latent = static_cast<Index>(l) >= first_latent_layer(design);
    std::size_t k = 0;
    while (k < different_.size() &&
           !(different_[k].mask == kind.mask && different_[k].window == kind.window &&
             different_[k].latent == kind.latent)) {
      ++k;
    }
    if (k == different_.size()) different_.push_back(kind);
    kinds_.push_back(k);
  }
}

mask::BlockMap LayerMasks::bind(const Kind& kind, Index length, std::span<const Index> rows,
                                const std::optional<mask::Mask>& own, std::span<const Index> places,
                                OwnMask how) const {
  const mask::Lengths lengths{length, length};
  const auto bound = [&](const std::optional<mask::MaskExpression>& of_layer) {
    std::optional<mask::Mask> mask = own;
    if (of_layer) {
      if (const auto problem = usage_error_message([&] { mask = of_layer->bind_sequence(length); }))
        throw UsageError("mask " + *problem);
      if (own) mask = *mask & *own;
    }
    if (kind.window) {
      const mask::Mask window = places.empty() ? mask::band(lengths, -*kind.window, *kind.window)
                                               : window_of(places, *kind.window);
      mask = mask ? *mask & window : window;
    }
    if (is_sparse(length)) {
      const mask::Mask sparse = mask::parse_mask(sparse_text(*sparse_)).bind_sequence(length);
      mask = mask ? *mask & sparse : sparse;
    }
    if (kind.latent && mask) mask = *mask | first_key(lengths);
    return of_rows(*std::move(mask), rows);
  };
  if (!kind.mask || (own && how == OwnMask::kReplaces)) return mask::BlockMap(bound(std::nullopt));
  if (kind.mask->heads().empty()) return mask::BlockMap(bound(kind.mask));
  std::vector<mask::BlockMap> heads;
  for (const mask::MaskExpression& head : kind.mask->heads()) heads.emplace_back(bound(head));
  return {bound(kind.mask->any_head()), std::move(heads)};
}

std::shared_ptr<const mask::BlockMap> LayerMasks::blocks(std::size_t kind, Index length,
                                                         std::span<const Index> rows,
                                                         const std::optional<mask::Mask>& own,
                                                         std::span<const Index> places,
                                                         OwnMask how) const {
  const Kind& what = different_[kind];
  if (!own && !what.mask && !what.window && !is_sparse(length)) return nullptr;
  if (own && own->lengths() != mask::Lengths{length, length}) {
    throw UsageError(fmt::format("the mask is {} × {}, but the sequence has {} tokens",
                                 own->lengths().queries, own->lengths().keys, length));
  }
  const auto made_anew = [&] {
    return std::make_shared<const mask::BlockMap>(bind(what, length, rows, own, places, how));
  };
  const bool by_places = what.window && !places.empty();
  if (!rows.empty() || own || by_places) return made_anew();
  const std::pair key{kind, length};
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  auto made = made_anew();
  const std::lock_guard lock(mutex_);
  if (known_bytes_ > kKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += made->bytes();
  return known_.emplace(key, std::move(made)).first->second;
}

}  // namespace masque::model
