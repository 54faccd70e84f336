#include "model/transformer.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "kernel/activation.hpp"
#include "kernel/embedding.hpp"
#include "kernel/parallel.hpp"
#include "kernel/softmax/log_probability.hpp"
#include "model/forward/head_forward.hpp"
#include "model/layer_list.hpp"
#include "tensor/finite.hpp"

namespace masque::model {
namespace {

// Logits are handed out for so many rows at a time.
constexpr Index kLogitRows = 64;

PassSettings settings_of(const Design& design, const ModelOptions& options) {
  const bool fixed = design.streams == Streams::kFixedKeys;
  PassSettings settings;
  const NormalizerList normalizer =
      options.normalizer.empty() ? design.normalizer : NormalizerList(options.normalizer);
  if (design.variants.detector && normalizer.is_list()) {
    throw UsageError(
        fmt::format("{} '{}': a list cannot be combined with a detector, expected one normalizer "
                    "for all layers",
                    field("normalizer"), escape(normalizer.text())));
  }
  settings.normalizers = normalizer.normalizers(design.num_hidden_layers);
  const auto learned = [](const auto& one) { return one->offset_of_learned().has_value(); };
  if (normalizer != design.normalizer && std::ranges::any_of(settings.normalizers, learned)) {
    throw UsageError(fmt::format(
        "{} '{}': its s is learned in training, expected ssmax with a number, or the "
        "model's own normalizer '{}'",
        field("normalizer"), escape(normalizer.text()), escape(design.normalizer.text())));
  }
  settings.keys = options.keys.value_or(fixed ? mask::KeySource::kInput : mask::KeySource::kLayer);
  settings.query =
      options.query.value_or(fixed ? mask::QueryStart::kPosition : mask::QueryStart::kToken);
  if (settings.query == mask::QueryStart::kPosition) {
    const auto id = options.mask_token_id ? options.mask_token_id : design.mask_token_id;
    if (!id || *id < 0 || *id >= design.vocab_size) {
      throw UsageError(
          "queries that start from their position need a mask token, but the model has none");
    }
    settings.mask_token_id = *id;
  }
  return settings;
}

/// Keeps the last states of a whole batch.
template <class T>
class KeepStates final : public Observer {
 public:
  /// Fills `to` (tokens of the batch, width).
  explicit KeepStates(MatrixView<T> to) : to_(to) {}
  void last_states(Index, Index first, MatrixView<const float> rows) override { put(first, rows); }
  void last_states(Index, Index first, MatrixView<const double> rows) override { put(first, rows); }

 private:
  template <class U>
  void put(Index first, MatrixView<const U> rows) {
    if constexpr (std::is_same_v<T, U>)
      kernel::copy_rows<T>(rows, to_.middle_rows(first, rows.rows));
  }

  MatrixView<T> to_;
};

template <class T>
std::unique_ptr<Model> open_as(const std::string& path, const ModelOptions& options) {
  const LoadOptions load{.family = options.family, .later = std::is_same_v<T, float>};
  if (options.decoder) {
    if (auto pair = load_pair<T>(path, load)) {
      auto encoder = std::make_unique<const Transformer<T>>(
          prepare(std::move(pair->encoder), options.precision, options.memory), ModelOptions());
      return std::make_unique<Transformer<T>>(
          prepare(std::move(pair->decoder), options.precision, options.memory), options,
          std::move(encoder));
    }
  }
  return std::make_unique<Transformer<T>>(
      prepare(load_model<T>(path, load), options.precision, options.memory), options);
}

}  // namespace

template <class T>
Transformer<T>::Transformer(PreparedModel<T> model, const ModelOptions& options,
                            std::unique_ptr<const Transformer> encoder)
    : model_(std::move(model)),
      encoder_(std::move(encoder)),
      masks_(model_.design, options.masks),
      settings_(settings_of(model_.design, options)),
      restricted_(!options.masks.empty() || options.keys || options.query) {
  const bool plain = settings_.reads_own_layers();
  if (model_.mixer != nullptr && model_.mixer->info().reads_own && !plain) {
    throw UsageError(
        fmt::format("{} reads each row's own states and cannot be combined with {} or {}",
                    model_.mixer->info().name, field("kv"), field("query")));
  }
  const Design& design = model_.design;
  for (const auto& [has, part] : {std::pair{design.streams == Streams::kTowers, "two towers"},
                                  {design.variants.latent.has_value(), "latent bottlenecks"},
                                  {design.variants.late_positions > 0, "late positions"},
                                  {design.token_dropout > 0, "token dropout"},
                                  {design.head.shifted, "a shifted head"}}) {
    if (!has || plain) continue;
    throw UsageError(
        fmt::format("{} cannot be combined with {} or {}", part, field("kv"), field("query")));
  }
  MASQUE_CHECK((encoder_ != nullptr) == design.source.has_value());
  if (encoder_ != nullptr && (restricted_ || !options.normalizer.empty())) {
    throw UsageError(fmt::format(
        "{}, {}, {} and {} cannot be combined with an encoder–decoder, which has three kinds of "
        "attention",
        field("mask"), field("kv"), field("query"), field("normalizer")));
  }
  if (model_.detector == nullptr) return;
  if (restricted_) {
    throw UsageError(fmt::format(
        "the model's detector reads all tokens and cannot be combined with {}, {} or {}",
        field("mask"), field("kv"), field("query")));
  }
  detector_masks_ =
      std::make_unique<const LayerMasks>(model_.detector->design, std::vector<mask::MaskLayer>());
  settings_.detector_masks = detector_masks_.get();
}

template <class T>
void Transformer<T>::check_variants(const Request& request) const {
  const auto has = [&](AttentionOverride one) {
    return std::ranges::find(request.attention, one) != request.attention.end();
  };
  if (model_.mixer != nullptr && request.attentions) {
    throw UsageError(fmt::format("{} has no attention weights", model_.mixer->info().name));
  }
  if (model_.mixer != nullptr && has(AttentionOverride::kMean)) {
    throw UsageError(
        fmt::format("{} has no attention that could be made uniform", model_.mixer->info().name));
  }
  if (request.attention_rows) {
    const auto refuse = [](const std::string& part) {
      throw UsageError(fmt::format(
          "attention weights do not follow from scores and a normalizer alone in a model with {}",
          part));
    };
    if (mixes_weights(model_.design.variants.talking_heads))
      refuse("talking heads after the normalizer");
    if (model_.scheme && model_.scheme_facts.weights)
      refuse("position " + escape(model_.design.variants.position.text()));
  }
  if (model_.design.variants.previous_scores != PreviousScores::kNone &&
      (has(AttentionOverride::kZero) || has(AttentionOverride::kMean))) {
    throw UsageError(
        "the model uses previous scores, and a layer without attention has none for the next "
        "layer");
  }
}

template <class T>
void Transformer<T>::number_positions(const KeyValues<T>* cache, Batch& batch) const {
  const Design& design = model_.design;
  batch.positions.resize(batch.ids.size(), Batch::kNoPosition);
  for (Index s = 0; s < batch.sequences(); ++s) {
    const auto begin = static_cast<std::size_t>(batch.begins[static_cast<std::size_t>(s)]);
    const auto end = static_cast<std::size_t>(batch.begins[static_cast<std::size_t>(s) + 1]);
    if (begin == end || batch.positions[begin] != Batch::kNoPosition) continue;
    Index next = cache != nullptr ? cache->next_position(s) : 0;
    for (std::size_t i = begin; i < end; ++i) {
      // Where positions begin after that of padding, padding itself is not counted.
      const bool padding = design.position_offset > 0 && design.pad_token_id == batch.ids[i];
      batch.positions[i] = padding ? -1 : next++;
    }
  }
}

template <class T>
Batch Transformer<T>::checked(const Batch& batch, const KeyValues<T>* cache) const {
  const Design& design = model_.design;
  const auto fail = [&](const std::string& message) { throw InputError(model_.path, message); };
  MASQUE_CHECK(batch.begins.back() == std::ssize(batch.ids));
  MASQUE_CHECK(batch.positions.empty() || batch.positions.size() == batch.ids.size());
  MASQUE_CHECK(batch.segments.empty() || batch.segments.size() == batch.ids.size());
  Batch result = batch;
  for (const Index position : batch.positions) {
    // Padding that positions do not count stands in front of them.
    const Index least = design.position_offset > 0 ? -1 : 0;
    if (position < least && position != Batch::kNoPosition) {
      fail(fmt::format("position {}, expected at least {}", position, least));
    }
  }
  for (const TokenId id : batch.ids) {
    if (id < 0 || id >= design.vocab_size) {
      fail(fmt::format("token id {}, expected 0 to {}", id, design.vocab_size - 1));
    }
  }
  number_positions(cache, result);
  const Index rows = model_.position_table ? model_.position_table.view.rows : 0;
  // A scheme of the zoo says itself what it does beyond the trained length.
  const bool any = model_.scheme && model_.mixer == nullptr && !model_.late_positions;
  const Index longest = any ? 0 : design.max_position_embeddings;
  const Index limit = rows > 0 ? rows - design.position_offset : longest;
  for (const Index position : result.positions) {
    if (limit > 0 && position >= limit) {
      fail(fmt::format("position {}, expected 0 to {}", position, limit - 1));
    }
  }
  for (const Index segment : batch.segments) {
    if (segment < 0 || (design.type_vocab_size > 0 && segment >= design.type_vocab_size)) {
      fail(design.type_vocab_size > 0
               ? fmt::format("token type {}, expected 0 to {}", segment, design.type_vocab_size - 1)
               : fmt::format("token type {}, expected at least 0", segment));
    }
  }
  MASQUE_CHECK(batch.latents.empty() || std::ssize(batch.latents) == batch.sequences());
  const std::optional<LatentDesign>& latent = design.variants.latent;
  for (const std::vector<double>& points : batch.latents) {
    if (points.empty()) continue;
    const Index expected = latent ? latent->layers * latent->size : 0;
    if (std::ssize(points) != expected)
      fail(fmt::format("{} latent numbers, expected {}", points.size(), expected));
  }
  if (!batch.query_masks.empty() && !model_.query_start) {
    fail(fmt::format("a query stream was requested, but {} has one stream", design.model_type));
  }
  if (!batch.query_masks.empty() && !settings_.reads_own_layers()) {
    throw UsageError(
        fmt::format("two streams cannot be combined with {} or {}", field("kv"), field("query")));
  }
  return result;
}

template <class T>
void Transformer<T>::give_logits(const Batch& batch, std::span<const Index> rows,
                                 MatrixView<const T> x, Observer& observer) const {
  const auto& decoder = model_.head().decoder;
  const double cap = model_.design.head.logit_cap;
  // Rows of several sequences go through the head together: it is the largest matrix.
  struct Part {
    Index sequence, first, count;
  };
  Matrix<T> logits;
  std::vector<Part> parts;
  Index s = 0;
  for (Index first = 0; first < x.rows; first += logits.rows()) {
    const Index end = std::min(first + kLogitRows, x.rows);
    logits.resize(end - first, decoder.outputs());
    decoder.forward(x.middle_rows(first, end - first), logits.view());
    if (cap > 0) kernel::soft_cap(cap, logits.view());
    parts.clear();
    for (Index r = first; r < end; ++r) {
      const Index row = rows[static_cast<std::size_t>(r)];
      const Index before = s;
      while (row >= batch.begins[static_cast<std::size_t>(s) + 1]) ++s;
      if (parts.empty() || s != before) parts.push_back({s, r, 0});
      ++parts.back().count;
    }
    const auto give = [&](Index p) {
      const Part& part = parts[static_cast<std::size_t>(p)];
      observer.logits(part.sequence, part.first,
                      std::as_const(logits).view().middle_rows(part.first - first, part.count));
    };
    if (observer.takes_logits_at_once()) {
      kernel::parallel_items(std::ssize(parts), give);
    } else {
      for (Index p = 0; p < std::ssize(parts); ++p) give(p);
    }
  }
}

template <class T>
std::vector<double> Transformer<T>::use_head(const Batch& batch, const Request& request,
                                             std::span<const Index> rows,
                                             MatrixView<const T> states, Observer* observer) const {
  const auto& head = model_.head();
  HeadMemory<T> memory;
  const MatrixView<const T> x = head_forward<false, typename PreparedModel<T>::Head, T>(
      model_.design.head, head, states, memory);
  if (request.logits && observer != nullptr) give_logits(batch, rows, x, *observer);
  std::vector<double> result(request.targets.size());
  if (!result.empty()) {
    for (const TokenId id : request.targets) {
      if (id < 0 || id >= head.decoder.outputs()) {
        throw InputError(model_.path, fmt::format("token id {}, expected 0 to {}", id,
                                                  head.decoder.outputs() - 1));
      }
    }
    kernel::log_probability_forward<T>(x, head.decoder, 1, request.targets, result,
                                       request.excluded.value_or(-1), model_.design.head.logit_cap);
  }
  return result;
}

/// Which last states a run makes, and which of them the results are of.
struct MadeRows {
  std::vector<Index> made;  ///< rows of the batch, ascending
  /// Of each requested row its place in `made`, where its own state is wanted of a shifted head.
  std::vector<Index> own;
  std::vector<Index> head;  ///< the same of the row that a shifted head reads for it
};

/// The rows of `batch` that a run for `rows`, ascending, makes the last states of. `shifted`: the
/// head reads the rows before them (HeadDesign::shifted). `states`: their own are wanted, too.
MadeRows made_rows(const Batch& batch, std::span<const Index> rows, bool shifted, bool states) {
  MadeRows read;
  read.made.assign(rows.begin(), rows.end());
  if (!shifted) return read;
  std::vector<Index> before;
  before.reserve(rows.size());
  std::size_t s = 0;
  for (const Index row : rows) {
    while (row >= batch.begins[s + 1]) ++s;
    before.push_back(std::max(batch.begins[s], row - 1));
  }
  std::vector<Index> both = before;
  if (states) both.insert(both.end(), rows.begin(), rows.end());
  std::ranges::sort(both);
  both.erase(std::ranges::unique(both).begin(), both.end());
  read.made = std::move(both);
  const auto places = [&](std::span<const Index> of) {
    std::vector<Index> found;
    found.reserve(of.size());
    for (const Index row : of)
      found.push_back(std::ranges::lower_bound(read.made, row) - read.made.begin());
    return found;
  };
  if (states) read.own = places(rows);
  read.head = places(before);
  return read;
}

/// The rows `places` of `states`, in `own`; `states` themselves if they are not of a shifted head.
template <class T>
MatrixView<const T> rows_at(std::span<const Index> places, bool shifted, MatrixView<const T> states,
                            Matrix<T>& own) {
  if (!shifted) return states;
  own.resize(std::ssize(places), states.columns);
  kernel::embedding_forward<T, Index>(states, places, own.view());
  return own.view();
}

/// Gives `observer` the last `states` of the rows `rows` of `batch`, sequence by sequence.
template <class T>
void give_last_states(const Batch& batch, std::span<const Index> rows, MatrixView<const T> states,
                      Observer& observer) {
  Index first = 0;
  for (Index s = 0; s < batch.sequences(); ++s) {
    Index end = first;
    while (end < std::ssize(rows) &&
           rows[static_cast<std::size_t>(end)] < batch.begins[static_cast<std::size_t>(s) + 1])
      ++end;
    observer.last_states(s, first, states.middle_rows(first, end - first));
    first = end;
  }
}

template <class T>
std::optional<SourceStates<T>> Transformer<T>::read_sources(const Batch& batch,
                                                            KeyValues<T>* cache) const {
  MASQUE_CHECK(batch.sources.empty() ||
               (encoder_ != nullptr && std::ssize(batch.sources) == batch.sequences()));
  if (encoder_ == nullptr) return std::nullopt;
  if (batch.sources.empty()) {
    bool read = cache != nullptr;
    for (Index s = 0; read && s < batch.sequences(); ++s) read = cache->has_source(s);
    if (!read) {
      throw UsageError(
          "the model is an encoder–decoder and reads a source next to each text, but there is "
          "none");
    }
    return std::nullopt;
  }
  Batch sources;
  for (const std::vector<TokenId>& source : batch.sources) {
    if (source.empty())
      throw InputError(model_.path, "a source without tokens, expected at least one");
    sources.add(source);
  }
  SourceStates<T> read{Matrix<T>(std::ssize(sources.ids), encoder_->design().hidden_size),
                       sources.begins};
  KeepStates<T> keep(read.states.view());
  encoder_->run(sources, {.last_states = true, .all_rows = true}, &keep);
  for (Index s = 0; cache != nullptr && s < batch.sequences(); ++s) {
    MASQUE_CHECK(batch.length(s) > 0);
    cache->begin_source(s);
  }
  return read;
}

template <class T>
std::vector<double> Transformer<T>::run(const Batch& given, const Request& request,
                                        Observer* observer) const {
  auto* const cache = dynamic_cast<KeyValues<T>*>(request.cache);
  MASQUE_CHECK((cache != nullptr) == (request.cache != nullptr));
  const Batch batch = checked(given, cache);
  const std::optional<SourceStates<T>> sources = read_sources(batch, cache);
  if (cache != nullptr) cache->extend(batch);
  check_variants(request);
  std::vector<Index> rows = request.rows;
  if (request.all_rows) {
    rows.resize(batch.ids.size());
    std::iota(rows.begin(), rows.end(), Index{0});
  }
  MASQUE_CHECK(std::is_sorted(rows.begin(), rows.end()));
  MASQUE_CHECK(rows.empty() || (rows.front() >= 0 && rows.back() < std::ssize(batch.ids)));
  MASQUE_CHECK(request.targets.empty() || request.targets.size() == rows.size());
  MASQUE_CHECK(request.attention.empty() ||
               std::ssize(request.attention) == model_.design.num_hidden_layers);
  const bool needs_head = request.logits || !request.targets.empty();
  if (needs_head) model_.head();
  if (model_.detector != nullptr) model_.detector->head();
  if (request.detections && model_.detector == nullptr)
    throw InputError(model_.path, "the model has no detector, expected one");
  if (request.latents && !model_.design.variants.latent)
    throw InputError(
        model_.path,
        "the model has no latent bottlenecks, expected one that objective univae made");

  const bool shifted = needs_head && model_.design.head.shifted;
  MASQUE_CHECK(!shifted || cache == nullptr);
  const bool shows_states = request.last_states && observer != nullptr;
  const MadeRows read = made_rows(batch, rows, shifted, shows_states);
  Matrix<T> last(std::ssize(read.made), last_width(model_.design));
  const ChunkPlan plan = cut_batch(batch, read.made, kernel::threads());
  std::atomic<bool> overflowed{false};
  const auto work = [&](Index c) {
    const Chunk& chunk = plan.chunks[static_cast<std::size_t>(c)];
    Pass<T> pass(model_, masks_, settings_, batch, request, observer, chunk, cache,
                 sources ? &*sources : nullptr);
    pass.run(last.view().middle_rows(chunk.first_wanted, std::ssize(chunk.wanted)));
    if (pass.overflowed()) overflowed = true;
  };
  if (plan.parallel) {
    kernel::parallel_items(std::ssize(plan.chunks), work);
  } else {
    for (Index c = 0; c < std::ssize(plan.chunks); ++c) {
      throw_if_interrupted();
      work(c);
    }
  }
  if (overflowed || first_not_finite(std::as_const(last).span()))
    throw InputError(model_.path, "states that are not finite: the weights overflow");
  Matrix<T> taken;
  if (shows_states) {
    give_last_states<T>(batch, rows, rows_at<T>(read.own, shifted, last.view(), taken), *observer);
  }
  if (!needs_head) return {};
  return use_head(batch, request, rows, rows_at<T>(read.head, shifted, last.view(), taken),
                  observer);
}

template <class T>
std::unique_ptr<KeyValueCache> Transformer<T>::make_cache(Index sequences, bool own_masks) const {
  const Design& design = model_.design;
  const bool left_to_right = own_masks || (design.mask == DefaultMask::kCausal && !restricted_ &&
                                           design.variants.masks.empty());
  // Convolutions, mixers, token dropout and some schemes on the input read neighbours; XLNet's
  // distances and what materialized attention keeps are made for whole sequences.
  const bool reads_neighbours =
      model_.scheme_facts.input && model_.scheme_facts.masks != nn::MaskSupport::kAny;
  const bool keys_tell_all = model_.mixer == nullptr && design.convolution_size == 0 &&
                             !reads_neighbours && !model_.materialized_attention &&
                             model_.detector == nullptr && design.token_dropout == 0 &&
                             design.position != PositionType::kXlnet &&
                             design.streams == Streams::kOne && settings_.reads_own_layers();
  // Texts that grow beyond long_from() are read again, which whoever has masks of its own does not.
  const bool reads_again = own_masks && long_from(design) > 0;
  // A shifted head reads the row before those that are added.
  // Which block is the last one depends on all tokens.
  const bool by_length = sparse_blocks(design) != nullptr;
  if (!left_to_right || !keys_tell_all || reads_again || by_length || design.head.shifted)
    return nullptr;
  return std::make_unique<KeyValues<T>>(design.num_hidden_layers, sequences);
}

template class Transformer<float>;
template class Transformer<double>;

std::unique_ptr<Model> open_model(const std::string& path, const ModelOptions& options) {
  if (options.precision == kernel::Precision::kF64) return open_as<double>(path, options);
  return open_as<float>(path, options);
}

}  // namespace masque::model
