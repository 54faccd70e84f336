#include "evaluate/score/text_scorer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/sequence.hpp"
#include "kernel/number/elementary.hpp"
#include "model/variants.hpp"

namespace masque::evaluate {

namespace {

/// The score of a token from what the model says of it.
double score_of(ScoreKind kind, double value) {
  if (kind == ScoreKind::kElectra) return -kernel::softplus(value);  // log σ of original
  return kind == ScoreKind::kElectric ? -value : value;
}

/// Tokens at the end of `sentence` that are predicted and not read: of a target the last one.
Index unread(const Sentence& sentence) { return sentence.source.empty() ? 0 : 1; }

mask::Mask bound(std::string_view expression, Index length) {
  return mask::parse_mask(expression).bind({length, length});
}

}  // namespace

std::vector<Index> hidden_with(ScoreKind kind, const Sentence& sentence, Index t) {
  const Index end = sentence.size() - sentence.suffix;
  std::vector<Index> hidden;
  const auto same_word = [&](Index u) {
    return sentence.words[static_cast<std::size_t>(u)] ==
           sentence.words[static_cast<std::size_t>(t)];
  };
  for (Index u = sentence.prefix; u < end; ++u) {
    if (u == t || (kind == ScoreKind::kPllWord && same_word(u)) ||
        (kind == ScoreKind::kPllWordL2r && u > t && same_word(u)) ||
        (kind == ScoreKind::kPllGlobalL2r && u > t)) {
      hidden.push_back(u);
    }
  }
  return hidden;
}

TextScorer::TextScorer(const model::Model& model, const ScoreOptions& options, Sink sink)
    : options_(options),
      longest_(token_limit(model.design(), options.max_length)),
      two_streams_(model.design().streams == model::Streams::kTwo),
      sink_(std::move(sink)),
      runner_(model, options.batch_tokens, options.sets,
              options.kind == ScoreKind::kMdlm ? options.mask : std::nullopt) {
  const bool bound = options.kind == ScoreKind::kMdlm;
  MASQUE_CHECK(!bound || (options.draws >= 2 && !two_streams_));
  if (options.kind == ScoreKind::kMaskless && options.policy.kind == LengthPolicy::Kind::kSlide) {
    throw UsageError(
        fmt::format("{} {} cannot be combined with {} maskless, as overlapping windows would count "
                    "tokens twice; use chunk, first or last",
                    field("policy"), policy_text(options.policy), field("kind")));
  }
  MASQUE_CHECK(options.sets.empty() || (options.kind == ScoreKind::kCausal && !two_streams_));
  if ((is_masked(options.kind) || bound) && !two_streams_ && !options.mask) {
    throw InputError(fmt::format("{} {}: the tokenizer has no mask token, expected one",
                                 field("kind"), kind_name(options.kind)));
  }
  if (!bound || options.block_size == 0) return;
  // Each position stands there twice.
  const model::Design& design = model.design();
  const bool windows = std::ranges::any_of(
      design.layers, [](const model::LayerDesign& layer) { return layer.window.has_value(); });
  if (windows || (model::adds_position(design) && model::positions_act_in_attention(design))) {
    throw InputError(fmt::format(
        "{} mdlm with blocks does not support {}, expected a model without them", field("kind"),
        windows ? "attention windows of layers" : "relative positions with a position table"));
  }
}

std::optional<std::string> TextScorer::length_problem(const Sentence& sentence) const {
  if (options_.kind == ScoreKind::kMdlm) {
    const auto text = std::span(sentence.ids)
                          .subspan(static_cast<std::size_t>(sentence.prefix),
                                   static_cast<std::size_t>(sentence.tokens()));
    if (std::ranges::find(text, *options_.mask) != text.end())
      return "the text has a mask token, expected none: masked diffusion gives it probability 0";
  }
  const Index read = sentence.size() - unread(sentence);
  if (!longest_ || read <= *longest_) return std::nullopt;
  if (refuses_long(options_.policy)) return too_long(read, *longest_);
  if (*longest_ <= sentence.prefix + sentence.suffix) {
    return fmt::format("the limit is {} tokens, expected more than the {} of the template",
                       *longest_, sentence.prefix + sentence.suffix);
  }
  return std::nullopt;
}

void TextScorer::add(std::uint64_t id, Sentence sentence) {
  const Index tokens = sentence.tokens();
  add(id, std::move(sentence), 0, tokens);
}

void TextScorer::add(std::uint64_t id, Sentence sentence, Index begin, Index end) {
  MASQUE_CHECK(!length_problem(sentence));
  const Index tokens = sentence.tokens();
  MASQUE_CHECK(0 <= begin && begin <= end && end <= tokens);
  MASQUE_CHECK(options_.kind != ScoreKind::kMaskless || end - begin == tokens);
  const Index fits =
      longest_ ? *longest_ - sentence.prefix - sentence.suffix + unread(sentence) : tokens;
  const Index capacity = std::max<Index>(fits, 1);
  // What a bound is given stands in front of it.
  const bool left_only = options_.kind == ScoreKind::kCausal || options_.kind == ScoreKind::kMdlm;
  const std::vector<Window> windows = cut_windows(tokens, capacity, options_.policy, left_only);
  if (!windows.empty()) shortened_.add(windows.front().begin + tokens - windows.back().end);
  Pending& pending = pending_.emplace_back();
  pending.scored.id = id;
  pending.scored.sentence = std::move(sentence);
  pending.scored.log_probabilities.resize(static_cast<std::size_t>(tokens));
  const auto places = static_cast<std::size_t>(tokens) + 1;
  pending.values.resize(places);
  pending.scored.sets.assign(places * options_.sets.size(),
                             std::numeric_limits<double>::quiet_NaN());
  pending.last_job = UINT64_MAX;
  for (Window window : windows) {
    window.score_begin = std::clamp(window.score_begin, begin, end);
    window.score_end = std::clamp(window.score_end, begin, end);
    add_window(pending, window);
  }
  pending.last_job = jobs_;
  deliver();
}

void TextScorer::add_window(Pending& pending, const Window& window) {
  const Sentence part = part_of(pending.scored.sentence, window.begin, window.end);
  if (is_masked(options_.kind)) {
    add_masked(pending, window, part);
  } else if (options_.kind == ScoreKind::kMdlm) {
    add_bound(pending, window, part);
  } else if (options_.kind == ScoreKind::kMaskless) {
    add_whole(pending, window, part);
  } else {
    add_pass(pending, window, part);
  }
}

void TextScorer::add_masked(Pending& pending, const Window& window, const Sentence& part) {
  for (Index at = window.score_begin; at < window.score_end; ++at) {
    const Index t = part.prefix + at - window.begin;
    const std::vector<Index> hidden = hidden_with(options_.kind, part, t);
    Job job;
    job.ids = part.ids;
    job.segments = part.segments;
    if (two_streams_) {
      job.mask = hiding(part.size(), hidden, true);
      job.query_mask = hiding(part.size(), hidden, false);
    } else {
      for (const Index u : hidden) job.ids[static_cast<std::size_t>(u)] = *options_.mask;
      // As in training, where a mask token is a word.
      if (options_.mask_of) job.mask = options_.mask_of(job.ids);
    }
    job.rows.push_back(t);
    job.targets.push_back(part.ids[static_cast<std::size_t>(t)]);
    job.out.push_back(&pending.values[static_cast<std::size_t>(at)]);
    pending.scored.log_probabilities[static_cast<std::size_t>(at)] = 0;
    add_job(std::move(job));
  }
}

void TextScorer::add_bound(Pending& pending, const Window& window, const Sentence& part) {
  const Index first = part.prefix + window.score_begin - window.begin;
  const Index last = part.prefix + window.score_end - window.begin;
  Draw draw(static_cast<std::uint64_t>(window.begin), "score mdlm", pending.scored.id);
  for (Index at = window.score_begin; at < window.score_end; ++at)
    pending.scored.log_probabilities[static_cast<std::size_t>(at)] = 0;
  if (first == last) return;
  Job copy;
  copy.ids = part.ids;
  copy.segments = part.segments;
  if (options_.block_size > 0) {
    // A noised half, then the clean one, at the same positions.
    for (int half = 0; half < 2; ++half) {
      for (Index i = 0; i < part.size(); ++i) copy.positions.push_back(i);
    }
    copy.ids.insert(copy.ids.end(), part.ids.begin(), part.ids.end());
    copy.segments.insert(copy.segments.end(), part.segments.begin(), part.segments.end());
    copy.mask = bound(fmt::format("block_diffusion({})", options_.block_size), 2 * part.size());
  }
  for (HiddenTokens& hidden : draw_hidden(first, last, options_.block_size, options_.draws, draw)) {
    Job job = copy;
    BoundDraw& one = pending.bound.emplace_back();
    one.values.resize(hidden.places.size());
    for (std::size_t i = 0; i < hidden.places.size(); ++i) {
      TokenId& id = job.ids[static_cast<std::size_t>(hidden.places[i])];
      job.rows.push_back(hidden.places[i]);
      job.targets.push_back(std::exchange(id, *options_.mask));
      job.out.push_back(&one.values[i]);
      hidden.places[i] += window.score_begin - first;
    }
    if (options_.mask_of) job.mask = options_.mask_of(job.ids);
    one.hidden = std::move(hidden);
    add_job(std::move(job));
  }
}

void TextScorer::sum_bound(Pending& pending) const {
  const auto draws = static_cast<std::size_t>(options_.draws);
  std::vector<double> totals(draws, 0);
  for (std::size_t k = 0; k < pending.bound.size(); ++k) {
    const BoundDraw& one = pending.bound[k];
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      const double value = one.hidden.weights[i] * one.values[i];
      totals[k % draws] += value;
      pending.values[static_cast<std::size_t>(one.hidden.places[i])] +=
          value / static_cast<double>(draws);
    }
  }
  pending.scored.score_variance = variance_of_mean(totals);
}

void TextScorer::add_pass(Pending& pending, const Window& window, const Sentence& part) {
  Job job;
  // A query stream predicts the token of its own place, other causal heads the next one.
  const bool next = options_.kind == ScoreKind::kCausal && !two_streams_;
  const auto add_out = [&](Index at) {
    const auto place = static_cast<std::size_t>(at);
    job.out.push_back(&pending.values[place]);
    if (!options_.sets.empty())
      job.set_out.push_back(&pending.scored.sets[place * options_.sets.size()]);
  };
  for (Index at = window.score_begin; at < window.score_end; ++at) {
    const Index t = part.prefix + at - window.begin;
    if (next && t == 0) continue;  // nothing stands in front of it
    job.rows.push_back(next ? t - 1 : t);
    if (!reads_one_number(options_.kind))
      job.targets.push_back(part.ids[static_cast<std::size_t>(t)]);
    add_out(at);
    pending.scored.log_probabilities[static_cast<std::size_t>(at)] = 0;
  }
  const Index tokens = pending.scored.sentence.tokens();
  if (!options_.sets.empty() && tokens > 0 && window.score_end == tokens) {
    const Index last = part.prefix + part.tokens() - 1;
    job.rows.push_back(last);
    job.targets.push_back(part.ids[static_cast<std::size_t>(last)]);  // any: it is not looked at
    add_out(tokens);
  }
  if (job.rows.empty()) return;
  if (options_.check_length) options_.check_length(part.size());
  job.ids = part.ids;
  job.segments = part.segments;
  job.source = part.source;
  job.ids.resize(job.ids.size() - static_cast<std::size_t>(unread(part)));
  if (options_.kind == ScoreKind::kCausal && two_streams_) {
    job.mask = bound("causal", part.size());
    job.query_mask = bound("causal & tta", part.size());
  }
  if (options_.mask_of) job.mask = options_.mask_of(part.ids);
  add_job(std::move(job));
}

void TextScorer::add_whole(Pending& pending, const Window& window, const Sentence& part) {
  if (part.tokens() == 0) return;
  Job job;
  job.ids = part.ids;
  job.segments = part.segments;
  if (options_.mask_of) job.mask = options_.mask_of(part.ids);
  job.rows.push_back(0);
  // Windows do not overlap: each has a place of its own, and others stay 0.
  job.out.push_back(&pending.values[static_cast<std::size_t>(window.begin)]);
  pending.scored.tokens += part.tokens();
  add_job(std::move(job));
}

void TextScorer::add_job(Job job) {
  runner_.add(std::move(job));
  ++jobs_;
}

void TextScorer::deliver() {
  while (!pending_.empty() && pending_.front().last_job <= runner_.done()) {
    Pending& pending = pending_.front();
    ScoredSentence& scored = pending.scored;
    if (options_.kind == ScoreKind::kMdlm) sum_bound(pending);
    if (options_.kind == ScoreKind::kMaskless) {
      for (const double value : pending.values) scored.score += value;
    }
    for (std::size_t i = 0; i < scored.log_probabilities.size(); ++i) {
      if (!scored.log_probabilities[i]) continue;
      const double value = score_of(options_.kind, pending.values[i]);
      scored.log_probabilities[i] = value;
      scored.score += value;
      ++scored.tokens;
    }
    sink_(std::move(scored));
    pending_.pop_front();
  }
}

void TextScorer::flush() {
  runner_.run();
  deliver();
}

}  // namespace masque::evaluate
