#include "probe/score/text_scorer.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/bit_matrix.hpp"

namespace masque::probe {

namespace {

/// log σ(x), without overflow.
double log_sigmoid(double x) {
  return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
}

/// Whether a kind reads one number a position, where others read a vocabulary.
bool reads_one_number(ScoreKind kind) {
  return kind == ScoreKind::kElectra || kind == ScoreKind::kElectric;
}

/// The score of a token from what the model says of it.
double score_of(ScoreKind kind, double value) {
  if (kind == ScoreKind::kElectra) return log_sigmoid(-value);
  return kind == ScoreKind::kElectric ? -value : value;
}

/// Keys that are `hidden` are read by none but, with `self`, themselves.
mask::Mask hiding(Index length, const std::vector<Index>& hidden, bool self) {
  mask::BitMatrix bits(length, length);
  std::vector<bool> seen(static_cast<std::size_t>(length), true);
  for (const Index t : hidden) seen[static_cast<std::size_t>(t)] = false;
  for (Index i = 0; i < length; ++i) {
    for (Index j = 0; j < length; ++j) {
      if (seen[static_cast<std::size_t>(j)] || (self && i == j)) bits.set(i, j);
    }
  }
  return mask::from_bits(std::move(bits));
}

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
      runner_(model, options.batch_tokens, options.sets) {
  MASQUE_CHECK(options.sets.empty() || (options.kind == ScoreKind::kCausal && !two_streams_));
  if (is_masked(options.kind) && !two_streams_ && !options.mask) {
    throw InputError(fmt::format("{} {}: the tokenizer has no mask token, expected one",
                                 field("kind"), kind_name(options.kind)));
  }
}

std::optional<std::string> TextScorer::length_problem(const Sentence& sentence) const {
  if (!longest_ || sentence.size() <= *longest_) return std::nullopt;
  if (options_.policy.kind == LengthPolicy::Kind::kError) {
    return fmt::format("{} tokens, expected at most {} ({} says what else to do)", sentence.size(),
                       *longest_, field("policy"));
  }
  if (*longest_ <= sentence.prefix + sentence.suffix) {
    return fmt::format("at most {} tokens, expected more than the template's {}", *longest_,
                       sentence.prefix + sentence.suffix);
  }
  return std::nullopt;
}

void TextScorer::add(std::uint64_t id, Sentence sentence) {
  MASQUE_CHECK(!length_problem(sentence));
  const Index tokens = sentence.tokens();
  const Index fits = longest_ ? *longest_ - sentence.prefix - sentence.suffix : tokens;
  const Index capacity = std::max<Index>(fits, 1);
  const bool left_only = options_.kind == ScoreKind::kCausal;
  const std::vector<Window> windows = cut_windows(tokens, capacity, options_.policy, left_only);
  Pending& pending = pending_.emplace_back();
  pending.scored.id = id;
  pending.scored.sentence = std::move(sentence);
  pending.scored.log_probabilities.resize(static_cast<std::size_t>(tokens));
  const auto places = static_cast<std::size_t>(tokens) + 1;
  pending.values.resize(places);
  pending.scored.sets.assign(places * options_.sets.size(),
                             std::numeric_limits<double>::quiet_NaN());
  pending.last_job = UINT64_MAX;
  for (const Window& window : windows) add_window(pending, window);
  pending.last_job = jobs_;
  deliver();
}

void TextScorer::add_window(Pending& pending, const Window& window) {
  const Sentence part = part_of(pending.scored.sentence, window.begin, window.end);
  if (is_masked(options_.kind)) {
    add_masked(pending, window, part);
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
  if (options_.kind == ScoreKind::kCausal && two_streams_) {
    job.mask = bound("causal", part.size());
    job.query_mask = bound("causal & tta", part.size());
  }
  if (options_.mask_of) job.mask = options_.mask_of(part.ids);
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

}  // namespace masque::probe
