#include "evaluate/write/masked_writer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/score/batching.hpp"
#include "mask/builtin.hpp"

namespace masque::evaluate {

namespace {

/// A token for a mask.
struct ChosenToken {
  TokenId token = 0;
  double log_probability = 0;
  double rank = 0;  ///< MaskedPass::kept_by
};

/// A draft that is not finished, and the pass over it.
struct OpenDraft {
  Draft* draft = nullptr;
  MaskedPass pass;
  std::vector<ChosenToken> chosen;  ///< one each of pass.masks
};

/// What a token of log-probability `chosen` is ranked by, for the mask `mask`. `logits` have the
/// sum `whole`.
double rank_of(std::span<const double> logits, const kernel::LogSum& whole, double chosen,
               Index mask, const MaskedPass& pass) {
  switch (pass.kept_by) {
    case TokenRank::kProbability: break;
    case TokenRank::kUniform: return pass.rank(mask);
    case TokenRank::kMargin: {
      double first = -std::numeric_limits<double>::infinity(), second = first;
      for (const double logit : logits) {
        second = std::max(second, std::min(first, logit));
        first = std::max(first, logit);
      }
      return std::exp(first - whole) - std::exp(second - whole);
    }
    case TokenRank::kEntropy: {
      double sum = 0;
      for (const double logit : logits) {
        const double log = logit - whole, p = std::exp(log);
        if (p > 0) sum += p * log;
      }
      return sum;
    }
  }
  return chosen;
}

ChosenToken choose(std::span<const double> given, Index mask, const MaskedPass& pass,
                   const MaskedWriterOptions& options) {
  constexpr double kOut = -std::numeric_limits<double>::infinity();
  std::vector<double> logits(given.begin(), given.end());
  if (options.excluded) logits[static_cast<std::size_t>(*options.excluded)] = kOut;
  const kernel::LogSum whole = log_sum(logits);
  std::vector<double> all;
  const bool ranks = pass.kept > 0 && pass.kept_by != TokenRank::kProbability;
  if (ranks) all = logits;
  if (!options.targets.empty()) {
    std::vector<double> targets(logits.size(), kOut);
    for (const TokenId id : options.targets)
      targets[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
    logits = std::move(targets);
  }
  for (const TokenId id : options.never) logits[static_cast<std::size_t>(id)] = kOut;
  const double uniform = pass.sampling.do_sample ? pass.uniform(mask) : 0;
  const TokenId token = choose_token(logits, pass.sampling, uniform);
  const double log = logits[static_cast<std::size_t>(token)] - whole;
  const double rank = ranks ? rank_of(all, whole, log, mask, pass) : log;
  if (pass.kept == 0 || pass.rank_temperature == 0) return {token, log, rank};
  // The largest of such sums are draws without replacement: Kool et al. 2019, arXiv:1903.06059.
  const double confidence = ranks ? rank : std::exp(log);
  const double gumbel = -std::log(-std::log(pass.rank(mask)));
  return {token, log, confidence / pass.rank_temperature + gumbel};
}

void choose_at(std::size_t row, std::span<const double> logits, const MaskedWriterOptions& options,
               OpenDraft& open) {
  open.chosen[row] = choose(logits, open.pass.masks[row], open.pass, options);
}

/// Puts the tokens of a pass in their places.
void put_tokens(OpenDraft& open) {
  std::vector<std::size_t> order(open.chosen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (open.pass.kept > 0) {
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t i) { return open.chosen[i].rank; });
    order.resize(static_cast<std::size_t>(open.pass.kept));
  }
  for (const std::size_t i : order) {
    const auto at = static_cast<std::size_t>(open.pass.masks[i]);
    open.draft->tokens[at] = open.chosen[i].token;
    open.draft->log_probabilities[at] = open.chosen[i].log_probability;
    open.draft->put_log_probability += open.chosen[i].log_probability;
  }
}

/// Where a mask of the draft stands in its text.
Index place_of(const Draft& draft, Index mask) {
  return draft.text->places[static_cast<std::size_t>(mask)];
}

/// The whole text as the pass reads it.
std::vector<TokenId> ids_of_pass(const OpenDraft& open) {
  const Draft& draft = *open.draft;
  std::vector<TokenId> ids = draft.text->sentence.ids;
  for (Index mask = 0; mask < draft.masks(); ++mask)
    ids[static_cast<std::size_t>(place_of(draft, mask))] =
        draft.tokens[static_cast<std::size_t>(mask)];
  for (const Index mask : open.pass.masks) {
    const auto place = static_cast<std::size_t>(place_of(draft, mask));
    ids[place] = draft.text->sentence.ids[place];
  }
  return ids;
}

/// Takes masks from `shown` on out of what has one element a token.
template <class T>
void hide_end(const MaskedText& text, Index shown, std::vector<T>& values) {
  if (values.empty()) return;
  for (auto i = text.places.size(); i > static_cast<std::size_t>(shown); --i)
    values.erase(values.begin() + text.places[i - 1]);
}

/// `open` must stay until the job has run.
Job job_of_pass(const MaskedWriterOptions& options, OpenDraft& open) {
  const MaskedText& text = *open.draft->text;
  const MaskedPass& pass = open.pass;
  Job job;
  job.ids = ids_of_pass(open);
  for (const Index mask : pass.masks) job.rows.push_back(place_of(*open.draft, mask));
  job.segments = text.sentence.segments;
  if (pass.shown > 0) {
    MASQUE_CHECK(pass.masks.back() < pass.shown);
    hide_end(text, pass.shown, job.ids);
    hide_end(text, pass.shown, job.segments);
  }
  if (options.mask_of) job.mask = options.mask_of(job.ids);
  job.take = [&options, &open](std::size_t row, std::span<const double> logits) {
    choose_at(row, logits, options, open);
  };
  return job;
}

/// Chooses tokens from the rows of a batch.
class PassLogits final : public LogitRowObserver {
 public:
  PassLogits(const MaskedWriterOptions& options, std::span<OpenDraft> open,
             std::vector<Index> firsts)
      : options_(options), open_(open), firsts_(std::move(firsts)) {}

 private:
  void take(Index sequence, Index row, std::span<const double> logits) override {
    const auto at = static_cast<std::size_t>(sequence);
    choose_at(static_cast<std::size_t>(row - firsts_[at]), logits, options_, open_[at]);
  }

  const MaskedWriterOptions& options_;
  std::span<OpenDraft> open_;
  std::vector<Index> firsts_;  ///< of each sequence, among the request's rows
};

/// How the model reads drafts: all of them, or the blocks that are not finished.
class PassReader {
 public:
  PassReader(const model::Model& model, const MaskedWriterOptions& options,
             std::span<const Draft> drafts)
      : model_(model), options_(options), block_size_(options.cached_block_size) {
    MASQUE_CHECK(block_size_ == 0 || !options.mask_of);
    if (block_size_ > 0) cache_ = model.make_cache(std::ssize(drafts), true);
    for (std::size_t d = 0; cache_ != nullptr && d < drafts.size(); ++d)
      cache_->set_longest(static_cast<Index>(d), std::ssize(drafts[d].text->sentence.ids));
  }

  /// Draft i is what from[i] was; those that nobody names are finished.
  void select(std::span<const Index> from) {
    if (cache_ != nullptr) cache_->select(from);
  }

  /// Chooses the tokens of a pass over each.
  void read(std::span<OpenDraft> open) {
    if (cache_ != nullptr) return read_blocks(open);
    JobRunner runner(model_, options_.batch_tokens);
    for (OpenDraft& one : open) runner.add(job_of_pass(options_, one));
    runner.run();
  }

 private:
  /// The first token of the block that is written.
  Index first_of_block(const OpenDraft& open) const {
    return place_of(*open.draft, open.pass.masks.front()) / block_size_ * block_size_;
  }

  /// Each draft reads its block, and those before it that were finished since.
  void read_blocks(std::span<OpenDraft> open) {
    model::Batch batch;
    model::Request request;
    request.logits = true;
    request.cache = cache_.get();
    std::vector<Index> firsts;
    for (std::size_t s = 0; s < open.size(); ++s) {
      MASQUE_CHECK(open[s].pass.shown == 0);
      const Index before = add_block(open[s], cache_->length(static_cast<Index>(s)), batch);
      firsts.push_back(std::ssize(request.rows));
      for (const Index mask : open[s].pass.masks)
        request.rows.push_back(before + place_of(*open[s].draft, mask));
    }
    PassLogits observer(options_, open, std::move(firsts));
    model_.run(batch, request, &observer);
    // What is written has another token soon.
    for (std::size_t s = 0; s < open.size(); ++s)
      cache_->cut(static_cast<Index>(s), first_of_block(open[s]));
  }

  /// Adds the tokens from number `cached` to the end of the block; where in the batch the draft's
  /// first token would stand.
  Index add_block(const OpenDraft& open, Index cached, model::Batch& batch) const {
    const std::vector<TokenId> ids = ids_of_pass(open);
    // The last block may end with tokens that were given.
    const Index end = std::min(std::ssize(ids), first_of_block(open) + block_size_);
    const auto part = [&](const auto& values) {
      return values.empty() ? std::span(values)
                            : std::span(values).subspan(static_cast<std::size_t>(cached),
                                                        static_cast<std::size_t>(end - cached));
    };
    return batch.add(part(ids),
                     {.positions = {},
                      .segments = part(open.draft->text->sentence.segments),
                      .mask = mask::chunk_band({end, end}, block_size_, 0, mask::kUnbounded),
                      .query_mask = {}}) -
           cached;
  }

  const model::Model& model_;
  const MaskedWriterOptions& options_;
  Index block_size_;
  std::unique_ptr<model::KeyValueCache> cache_;  ///< nullptr: whole texts are read
};

/// The next pass over each draft, of which those that are finished are left out; `from`: where
/// each of the others was.
void start_passes(const NextPass& next, Index number, std::vector<OpenDraft>& open,
                  std::vector<Index>& from) {
  std::vector<OpenDraft> left;
  from.clear();
  for (std::size_t i = 0; i < open.size(); ++i) {
    MaskedPass pass = next(*open[i].draft, number);
    if (pass.masks.empty()) continue;
    MASQUE_CHECK(pass.kept <= std::ssize(pass.masks));
    std::vector<ChosenToken> chosen(pass.masks.size());
    left.push_back({open[i].draft, std::move(pass), std::move(chosen)});
    from.push_back(static_cast<Index>(i));
  }
  open = std::move(left);
}

}  // namespace

Draft::Draft(const MaskedText& masked, Index number, std::optional<RandomStream> draws)
    : text(&masked), sample(number), stream(draws), log_probabilities(masked.places.size()) {
  for (const Index place : masked.places)
    tokens.push_back(masked.sentence.ids[static_cast<std::size_t>(place)]);
}

std::function<double(Index mask)> draws_of(const Draft& draft, Index draw) {
  MASQUE_CHECK(draft.stream.has_value());
  return [&draft, draw](Index mask) { return uniform_at(*draft.stream, draw, mask); };
}

void write_masks(const model::Model& model, const NextPass& next,
                 const MaskedWriterOptions& options, std::span<Draft> drafts) {
  std::vector<OpenDraft> open(drafts.size());
  for (std::size_t d = 0; d < drafts.size(); ++d) open[d].draft = &drafts[d];
  PassReader reader(model, options, drafts);
  std::vector<Index> from;
  for (Index pass = 0;; ++pass) {
    throw_if_interrupted();
    const std::size_t before = open.size();
    start_passes(next, pass, open, from);
    if (open.empty()) return;
    if (open.size() < before) reader.select(from);
    reader.read(open);
    for (OpenDraft& one : open) put_tokens(one);
  }
}

Generated written(const Draft& draft, double log_probability) {
  return {.id = draft.text->id,
          .sample = draft.sample,
          .ids = draft.tokens,
          .log_probability = log_probability,
          .score = log_probability};
}

}  // namespace masque::evaluate
