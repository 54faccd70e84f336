#include "evaluate/write/open_texts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/batching.hpp"
#include "mask/expression.hpp"

namespace masque::evaluate {

namespace {

/// Hands logits on, one row a text.
class NextRows final : public LogitRowObserver {
 public:
  explicit NextRows(const TakeNext& take) : take_(take) {}

  bool takes_logits_at_once() const override { return true; }

 private:
  void take(Index /*sequence*/, Index row, std::span<const double> logits) override {
    take_(static_cast<std::size_t>(row), logits);
  }

  const TakeNext& take_;
};

/// The tokens of a text that the cache, if there is one, has not.
void add_text(const OpenText& text, bool to_target, Index cached, model::Batch& batch) {
  const std::span<const TokenId> ids =
      std::span(text.ids).subspan(static_cast<std::size_t>(cached));
  if (!to_target) {
    model::SequenceParts parts;
    // A cache reads the source once.
    if (cached == 0 && text.encoder_ids != nullptr) parts.source = *text.encoder_ids;
    batch.add(ids, parts);
    return;
  }
  const Index n = std::ssize(text.ids);
  std::vector<Index> segments(static_cast<std::size_t>(n), 1);
  std::fill_n(segments.begin(), text.source, 0);
  const bool latent = !text.latents.empty();
  const mask::Mask mask = mask::parse_mask(fmt::format("{}({},{})", latent ? "uniae" : "unilm",
                                                       text.source, n - text.source))
                              .bind({n, n});
  std::vector<Index> positions;
  if (latent) {
    positions.resize(static_cast<std::size_t>(n));
    for (Index i = text.source; i < n; ++i)
      positions[static_cast<std::size_t>(i)] = i - text.source;
  }
  const auto fresh = [&](const std::vector<Index>& all) {
    return all.empty() ? std::span<const Index>()
                       : std::span<const Index>(all).subspan(static_cast<std::size_t>(cached));
  };
  batch.add(
      ids,
      {.positions = fresh(positions), .segments = fresh(segments), .mask = mask, .query_mask = {}});
  if (latent) {
    batch.latents.resize(static_cast<std::size_t>(batch.sequences()) - 1);
    batch.latents.push_back(text.latents);
  }
}

}  // namespace

OpenText open_text(const Prompt& prompt, Index max_new_tokens, Index limit) {
  const Index length = std::ssize(prompt.ids);
  MASQUE_CHECK(length > 0 && max_new_tokens > 0);
  Index longest = length + max_new_tokens - 1;
  if (limit > 0) longest = std::min(longest, limit);
  return {.ids = prompt.ids,
          .prompt = length,
          .source = prompt.source,
          .longest = longest,
          .limit = limit,
          .latents = prompt.latents,
          .encoder_ids = prompt.encoder_ids.empty()
                             ? nullptr
                             : std::make_shared<const std::vector<TokenId>>(prompt.encoder_ids)};
}

TextSoFar text_so_far(const OpenText& text, std::span<const TokenId> ends) {
  // What stands for points of latent bottlenecks is no token of the text.
  const Index begin = text.latents.empty() ? 0 : text.source;
  return {.ids = std::span(text.ids).subspan(static_cast<std::size_t>(begin)),
          .prompt = text.prompt - begin,
          .last = std::ssize(text.ids) >= text.longest,
          .ends = ends};
}

void refuse_stuck_text(std::uint64_t id, Index new_tokens) {
  throw InputError(fmt::format(
      "prompt {}: no token is left to choose after {} new tokens: all are excluded, as by {} or {}",
      id, new_tokens, field("suppress_tokens"), field("no_repeat_ngram_size")));
}

Index text_limit(const model::Design& design, const Prompt& prompt) {
  const Index limit = design.max_position_embeddings;
  return limit > 0 && !prompt.latents.empty() ? limit + prompt.source : limit;
}

TextReader::TextReader(const model::Model& model, bool to_target, Index texts)
    : model_(model), to_target_(to_target), cache_(model.make_cache(texts, to_target)) {}

void TextReader::read(std::span<const OpenText* const> texts, const TakeNext& take) {
  model::Batch batch;
  model::Request request;
  request.logits = true;
  request.cache = cache_.get();
  request.rows.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto number = static_cast<Index>(i);
    if (cache_ != nullptr) cache_->set_longest(number, texts[i]->longest);
    Index cached = cache_ != nullptr ? cache_->length(number) : 0;
    // The angles of all its tokens change, as in transformers.
    const Index from = model::long_from(model_.design());
    if (from > 0 && cached > 0 && cached <= from && std::ssize(texts[i]->ids) > from)
      cache_->cut(number, cached = 0);
    add_text(*texts[i], to_target_, cached, batch);
    request.rows.push_back(batch.begins.back() - 1);
  }
  if (!batch.latents.empty()) batch.latents.resize(static_cast<std::size_t>(batch.sequences()));
  NextRows rows(take);
  model_.run(batch, request, &rows);
}

void TextReader::select(std::span<const Index> from) {
  if (cache_ != nullptr) cache_->select(from);
}

}  // namespace masque::evaluate
