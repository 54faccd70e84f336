#include "evaluate/write/generate.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/write/beam_search.hpp"
#include "evaluate/write/open_texts.hpp"

namespace masque::evaluate {

namespace {

/// A text of its own: greedy, or a sample.
struct Single {
  OpenText text;
  Generated out;
  Index place = 0;     ///< among those that are read together: that of the prompt, later its own
  bool stuck = false;  ///< every next token is excluded
};

void add_token(std::span<const double> logits, const GenerateOptions& options, Single& single) {
  Generated& out = single.out;
  const RandomStream stream(options.seed, "generate", out.id);
  std::vector<double> scores(logits.begin(), logits.end());
  process_logits(options.processors, text_so_far(single.text, options.ends), scores);
  single.stuck = *std::ranges::max_element(scores) == -std::numeric_limits<double>::infinity();
  if (single.stuck) return;
  const TokenId token =
      choose_token(scores, options.sampling, uniform_at(stream, out.sample, std::ssize(out.ids)));
  out.log_probability += logits[static_cast<std::size_t>(token)] - log_sum(logits);
  out.ids.push_back(token);
  out.ended = std::ranges::find(options.ends, token) != options.ends.end();
  single.text.ids.push_back(token);
}

/// The tokens after open texts. Until its samples have their first token a prompt is one of them.
void add_tokens(const GenerateOptions& options, std::span<Single* const> open, TextReader& reader) {
  std::vector<const OpenText*> read(static_cast<std::size_t>(open.back()->place) + 1);
  for (const Single* single : open) read[static_cast<std::size_t>(single->place)] = &single->text;
  reader.read(read, [&](std::size_t i, std::span<const double> logits) {
    const auto place = static_cast<Index>(i);
    auto single = std::ranges::lower_bound(open, place, {}, &Single::place);
    for (; single != open.end() && (*single)->place == place; ++single)
      add_token(logits, options, **single);
  });
  for (const Single* single : open) {
    if (single->stuck) refuse_stuck_text(single->out.id, std::ssize(single->out.ids));
  }
}

/// Takes out the texts that are at their end; the others get a place of their own.
void close_texts(std::vector<Single*>& open, TextReader& reader) {
  std::erase_if(open, [&](const Single* single) {
    const OpenText& text = single->text;
    return single->out.ended || std::ssize(text.ids) > text.longest;
  });
  if (open.empty()) return;
  std::vector<Index> from;
  from.reserve(open.size());
  for (Single* single : open) {
    from.push_back(single->place);
    single->place = std::ssize(from) - 1;
  }
  reader.select(from);
}

}  // namespace

void check_generation(const model::Design& design, bool to_target) {
  using model::HeadKind;
  if (design.streams == model::Streams::kTwo) {
    throw InputError("the model has two streams, expected a model with one");
  }
  if (design.streams == model::Streams::kFixedKeys) {
    throw InputError(
        "the model is a T-TA, which reads both sides of each token; expected a model that predicts "
        "the next token");
  }
  check_reads_one_text(design);
  if (to_target && design.head.shifted)
    throw InputError(
        "the model predicts each token from the position before it, expected a model trained with "
        "objective unilm");
  if (to_target && design.head.kind == HeadKind::kMasked) {
    if (design.type_vocab_size >= 2) return;
    throw InputError(fmt::format("{} token types, expected two: for sources and targets",
                                 design.type_vocab_size));
  }
  if (to_target) throw InputError("no masked head, expected a model trained with objective unilm");
  if (design.head.kind == HeadKind::kCausal) return;
  throw InputError(
      fmt::format("a bidirectional model without a causal head, expected a causal model; use {} "
                  "unilm for a model trained with objective unilm",
                  field("kind")));
}

std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options) {
  MASQUE_CHECK(options.num_return_sequences >= 1 && options.max_new_tokens >= 1);
  check_logits_processors(options.processors, model.design().vocab_size);
  if (options.beams.num_beams > 1) {
    MASQUE_CHECK(!options.sampling.do_sample);
    return beam_search(model, prompts, options);
  }
  std::vector<Single> texts;
  texts.reserve(prompts.size() * static_cast<std::size_t>(options.num_return_sequences));
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const OpenText text =
        open_text(prompts[p], most_new_tokens(options, std::ssize(prompts[p].ids)),
                  text_limit(model.design(), prompts[p]));
    for (Index k = 0; k < options.num_return_sequences; ++k)
      texts.push_back({text, {.id = prompts[p].id, .sample = k, .ids = {}}, static_cast<Index>(p)});
  }
  std::vector<Single*> open;
  open.reserve(texts.size());
  for (Single& text : texts) open.push_back(&text);
  TextReader reader(model, options.to_target, std::ssize(prompts));
  while (!open.empty()) {
    throw_if_interrupted();
    add_tokens(options, open, reader);
    close_texts(open, reader);
  }
  std::vector<Generated> out;
  out.reserve(texts.size());
  for (Single& text : texts) {
    text.out.score = text.out.log_probability;
    out.push_back(std::move(text.out));
  }
  return out;
}

}  // namespace masque::evaluate
