#include "probe/write/generate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "mask/expression.hpp"

namespace masque::probe {

namespace {

/// A text on its way.
struct Open {
  std::vector<TokenId> ids;  ///< with the prompt
  Index prompt = 0;          ///< tokens of it
  Generated out;
};

/// Chooses the next token of each text when its logits come, from any thread.
class Chooser final : public model::Observer {
 public:
  Chooser(const GenerateOptions& options, std::span<Open* const> texts)
      : options_(options), texts_(texts) {}

  void logits(Index /*sequence*/, Index first, MatrixView<const float> rows) override {
    choose(first, rows);
  }
  void logits(Index /*sequence*/, Index first, MatrixView<const double> rows) override {
    choose(first, rows);
  }

 private:
  template <class T>
  void choose(Index first, MatrixView<const T> rows) {
    for (Index i = 0; i < rows.rows; ++i) {
      const std::span<const T> row = rows.row_span(i);
      const std::vector<double> logits(row.begin(), row.end());
      add_token(logits, *texts_[static_cast<std::size_t>(first + i)]);
    }
  }

  void add_token(std::span<const double> logits, Open& text) const {
    Generated& out = text.out;
    const RandomStream stream(options_.seed, "generate", out.id);
    const TokenId token = choose_token(logits, options_.sampling,
                                       uniform_at(stream, out.sample, std::ssize(out.ids)));
    out.log_probability += logits[static_cast<std::size_t>(token)] - log_sum(logits);
    out.ids.push_back(token);
    out.ended = std::ranges::find(options_.ends, token) != options_.ends.end();
    text.ids.push_back(token);
  }

  const GenerateOptions& options_;
  std::span<Open* const> texts_;
};

/// The tokens of a text that the cache, if there is one, has not.
void add_text(const Open& text, bool to_target, Index cached, model::Batch& batch) {
  const std::span<const TokenId> ids =
      std::span(text.ids).subspan(static_cast<std::size_t>(cached));
  if (!to_target) return batch.add(ids);
  const Index n = std::ssize(text.ids);
  std::vector<Index> segments(static_cast<std::size_t>(n), 1);
  std::fill_n(segments.begin(), text.prompt, 0);
  const mask::Mask mask =
      mask::parse_mask(fmt::format("unilm({},{})", text.prompt, n - text.prompt)).bind({n, n});
  batch.add(ids, {.positions = {},
                  .segments = std::span(segments).subspan(static_cast<std::size_t>(cached)),
                  .mask = mask,
                  .query_mask = {}});
}

/// One token more for each text.
void step(const model::Model& model, const GenerateOptions& options, std::span<Open* const> texts,
          model::KeyValueCache* cache) {
  model::Batch batch;
  model::Request request;
  request.logits = true;
  request.cache = cache;
  request.rows.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    add_text(*texts[i], options.to_target,
             cache != nullptr ? cache->length(static_cast<Index>(i)) : 0, batch);
    request.rows.push_back(batch.begins.back() - 1);
  }
  Chooser chooser(options, texts);
  model.run(batch, request, &chooser);
}

/// Takes out the texts that are at their end.
void close_texts(Index limit, std::vector<Open*>& open, model::KeyValueCache* cache) {
  std::vector<Open*> left;
  std::vector<Index> from;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i]->out.ended || (limit > 0 && std::ssize(open[i]->ids) > limit)) continue;
    left.push_back(open[i]);
    from.push_back(static_cast<Index>(i));
  }
  if (cache != nullptr && left.size() < open.size()) cache->select(from);
  open = std::move(left);
}

}  // namespace

void check_generation(const model::Design& design, bool to_target) {
  using model::HeadKind;
  if (design.streams == model::Streams::kTwo) {
    throw InputError("a model of two streams, expected one of one stream");
  }
  if (design.streams == model::Streams::kFixedKeys) {
    throw InputError(
        "a T-TA, which reads both sides of each token, expected a model that predicts the next "
        "one");
  }
  if (to_target && design.head.kind == HeadKind::kMasked) {
    if (design.type_vocab_size >= 2) return;
    throw InputError(fmt::format("{} token types, expected two: of sources and targets",
                                 design.type_vocab_size));
  }
  if (to_target) throw InputError("no masked head, expected a model that objective unilm trained");
  if (design.head.kind == HeadKind::kCausal) return;
  throw InputError(
      fmt::format("a bidirectional model without a causal head, expected a causal model, or {} "
                  "unilm for one that has learnt targets",
                  field("kind")));
}

std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options) {
  MASQUE_CHECK(options.num_return_sequences >= 1 && options.max_new_tokens >= 1);
  const Index limit = model.design().max_position_embeddings;
  std::vector<Open> texts;
  texts.reserve(prompts.size() * static_cast<std::size_t>(options.num_return_sequences));
  for (const Prompt& prompt : prompts) {
    MASQUE_CHECK(!prompt.ids.empty());
    for (Index k = 0; k < options.num_return_sequences; ++k)
      texts.push_back(
          {prompt.ids, std::ssize(prompt.ids), {.id = prompt.id, .sample = k, .ids = {}}});
  }
  std::vector<Open*> open;
  open.reserve(texts.size());
  for (Open& text : texts) open.push_back(&text);
  const auto cache = model.make_cache(std::ssize(open), options.to_target);
  for (Index n = 0; n < options.max_new_tokens && !open.empty(); ++n) {
    throw_if_interrupted();
    step(model, options, open, cache.get());
    close_texts(limit, open, cache.get());
  }
  std::vector<Generated> out;
  out.reserve(texts.size());
  for (Open& text : texts) out.push_back(std::move(text.out));
  return out;
}

}  // namespace masque::probe
