#include "evaluate/write/beam_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/write/open_texts.hpp"

namespace masque::evaluate {

namespace {

constexpr std::array<std::pair<std::string_view, EarlyStopping>, 3> kEarlyStoppingNames{
    {{"true", EarlyStopping::kTrue},
     {"false", EarlyStopping::kFalse},
     {"never", EarlyStopping::kNever}}};

/// A token that may follow an open text.
struct NextToken {
  TokenId id = 0;
  double score = 0;  ///< its log-probability as processors leave it
  double log_probability = 0;
};

/// An open text of a prompt.
struct Beam {
  OpenText text;
  double score = 0;  ///< sum of those of its tokens
  double log_probability = 0;
  Index place = 0;  ///< among all that are read together
  std::vector<NextToken> next;
};

/// The search of one prompt.
struct Search {
  std::vector<Beam> open;  ///< the best first
  std::vector<Generated> ended;
  Index longest = 0;  ///< most new tokens
  Index steps = 0;    ///< new tokens of the open texts, or of what they were
  bool over = false;
};

/// An open text with one token more.
struct BeamCandidate {
  const Beam* beam;
  TokenId id;
  double score;
  double log_probability;
};

/// Continuations of each step.
Index beam_candidates(const GenerateOptions& options) {
  return std::max<Index>(2, 1 + std::ssize(options.ends)) * options.beams.num_beams;
}

/// The best `count` tokens after `text`, without those that are excluded.
std::vector<NextToken> best_tokens(const OpenText& text, const GenerateOptions& options,
                                   std::span<const double> logits, Index count) {
  const kernel::LogSum whole = log_sum(logits);
  std::vector<double> scores(logits.begin(), logits.end());
  for (double& score : scores) score = score - whole;
  process_logits(options.processors, text_so_far(text, options.ends), scores);
  std::vector<TokenId> ids(scores.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  const auto middle = ids.begin() + std::min(count, std::ssize(ids));
  std::ranges::partial_sort(ids, middle, [&](TokenId a, TokenId b) {
    const double x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<NextToken> out;
  for (auto id = ids.begin(); id != middle; ++id) {
    const auto i = static_cast<std::size_t>(*id);
    if (scores[i] == -std::numeric_limits<double>::infinity()) break;
    out.push_back({*id, scores[i], logits[i] - whole});
  }
  return out;
}

std::vector<BeamCandidate> candidates_of(const Search& search, Index count) {
  std::vector<BeamCandidate> out;
  for (const Beam& beam : search.open) {
    for (const NextToken& next : beam.next)
      out.push_back(
          {&beam, next.id, beam.score + next.score, beam.log_probability + next.log_probability});
  }
  std::ranges::stable_sort(out, std::greater<>(), &BeamCandidate::score);
  if (std::ssize(out) > count) out.resize(static_cast<std::size_t>(count));
  return out;
}

double score_of(double sum, Index tokens, const BeamOptions& options) {
  return sum / std::pow(static_cast<double>(tokens), options.length_penalty);
}

Generated ended_text(const BeamCandidate& candidate, bool by_end, const BeamOptions& options) {
  const OpenText& text = candidate.beam->text;
  Generated out;
  out.ids.assign(text.ids.begin() + text.prompt, text.ids.end());
  out.ids.push_back(candidate.id);
  out.log_probability = candidate.log_probability;
  out.score = score_of(candidate.score, std::ssize(out.ids), options);
  out.ended = by_end;
  return out;
}

/// Whether the open texts of a prompt cannot, or need not, change those that have ended.
bool is_over(const Search& search, const BeamOptions& options) {
  if (search.open.empty()) return true;
  if (std::ssize(search.ended) < options.num_beams) return false;
  if (options.early_stopping == EarlyStopping::kTrue) return true;
  const Beam& best = search.open.front();
  const Index now = std::ssize(best.text.ids) - best.text.prompt;
  const bool longer = options.early_stopping == EarlyStopping::kNever && options.length_penalty > 0;
  const double hoped = score_of(best.score, longer ? search.longest : now, options);
  return hoped <= search.ended.back().score;
}

/// One step: what follows the open texts, some of which end.
void advance(const GenerateOptions& options, Search& search) {
  const BeamOptions& beams = options.beams;
  const std::vector<BeamCandidate> all = candidates_of(search, beam_candidates(options));
  std::vector<Beam> open;
  if (!all.empty()) ++search.steps;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BeamCandidate& candidate = all[i];
    const OpenText& text = candidate.beam->text;
    const bool by_end = std::ranges::find(options.ends, candidate.id) != options.ends.end();
    if (by_end || std::ssize(text.ids) - text.prompt + 1 == search.longest) {
      if (static_cast<Index>(i) < beams.num_beams)
        search.ended.push_back(ended_text(candidate, by_end, beams));
    } else if (std::ssize(open) < beams.num_beams) {
      Beam& longer = open.emplace_back();
      longer.text = text;
      longer.text.ids.push_back(candidate.id);
      longer.score = candidate.score;
      longer.log_probability = candidate.log_probability;
      longer.place = candidate.beam->place;
    }
  }
  std::ranges::stable_sort(search.ended, std::greater<>(), &Generated::score);
  if (std::ssize(search.ended) > beams.num_beams)
    search.ended.resize(static_cast<std::size_t>(beams.num_beams));
  search.open = std::move(open);
  search.over = is_over(search, beams);
  if (search.over) search.open.clear();
}

/// All open texts, in the order in which they are read; `from`: where each was before.
std::vector<Beam*> numbered(std::vector<Search>& searches, std::vector<Index>& from) {
  std::vector<Beam*> out;
  from.clear();
  for (Search& search : searches) {
    for (Beam& beam : search.open) {
      from.push_back(beam.place);
      beam.place = std::ssize(out);
      out.push_back(&beam);
    }
  }
  return out;
}

}  // namespace

NameTable<EarlyStopping> early_stopping_names() { return kEarlyStoppingNames; }

void check_beams(const GenerateOptions& options, Index vocabulary) {
  const Index beams = options.beams.num_beams;
  if (beams > 1 && beam_candidates(options) > vocabulary) {
    throw UsageError(fmt::format("{} {}: expected at most {} with a vocabulary of {} tokens",
                                 field("num_beams"), beams,
                                 vocabulary / (beam_candidates(options) / beams), vocabulary));
  }
  if (beams > 1 && options.num_return_sequences > beams) {
    throw UsageError(fmt::format("{} {}: expected at most {}, as many as {}",
                                 field("num_return_sequences"), options.num_return_sequences, beams,
                                 field("num_beams")));
  }
}

std::vector<Generated> beam_search(const model::Model& model, std::span<const Prompt> prompts,
                                   const GenerateOptions& options) {
  std::vector<Search> searches(prompts.size());
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const Index limit = text_limit(model.design(), prompts[p]);
    Beam& beam = searches[p].open.emplace_back();
    beam.text = open_text(prompts[p], most_new_tokens(options, std::ssize(prompts[p].ids)), limit);
    beam.place = static_cast<Index>(p);
    // The last token need not be read.
    searches[p].longest = beam.text.longest + 1 - beam.text.prompt;
  }
  TextReader reader(model, options.to_target, std::ssize(prompts));
  std::vector<Index> from;
  for (std::vector<Beam*> beams = numbered(searches, from); !beams.empty();
       beams = numbered(searches, from), reader.select(from)) {
    throw_if_interrupted();
    std::vector<const OpenText*> texts;
    texts.reserve(beams.size());
    for (const Beam* beam : beams) texts.push_back(&beam->text);
    const Index count = beam_candidates(options);
    reader.read(texts, [&](std::size_t i, std::span<const double> logits) {
      beams[i]->next = best_tokens(beams[i]->text, options, logits, count);
    });
    for (Search& search : searches) {
      if (!search.over) advance(options, search);
    }
  }
  std::vector<Generated> out;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    std::vector<Generated>& ended = searches[p].ended;
    if (std::ssize(ended) < options.num_return_sequences)
      refuse_stuck_text(prompts[p].id, searches[p].steps);
    for (Index rank = 0; rank < options.num_return_sequences; ++rank) {
      Generated& one = ended[static_cast<std::size_t>(rank)];
      one.id = prompts[p].id;
      one.sample = rank;
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace masque::evaluate
