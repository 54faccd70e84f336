#include "probe/write/masked_writer.hpp"

#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "probe/score/batching.hpp"

namespace masque::probe {

namespace {

/// Takes masks from `shown` on out of what has one element a token.
template <class T>
void hide_end(const MaskedText& text, Index shown, std::vector<T>& values) {
  if (values.empty()) return;
  for (auto i = text.places.size(); i > static_cast<std::size_t>(shown); --i)
    values.erase(values.begin() + text.places[i - 1]);
}

void put_token(std::span<const double> logits, const MaskedPass& pass, Index mask,
               const MaskedWriterOptions& options, Draft& draft) {
  constexpr double kOut = -std::numeric_limits<double>::infinity();
  const double uniform = uniform_at(draft.stream, pass.draw, mask);
  TokenId token = 0;
  if (options.targets.empty() && options.never.empty()) {
    token = choose_token(logits, pass.sampling, uniform);
  } else {
    std::vector<double> allowed(logits.begin(), logits.end());
    if (!options.targets.empty()) {
      allowed.assign(logits.size(), kOut);
      for (const TokenId id : options.targets)
        allowed[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
    }
    for (const TokenId id : options.never) allowed[static_cast<std::size_t>(id)] = kOut;
    token = choose_token(allowed, pass.sampling, uniform);
  }
  const auto at = static_cast<std::size_t>(mask);
  draft.tokens[at] = token;
  draft.log_probabilities[at] = logits[static_cast<std::size_t>(token)] - log_sum(logits);
}

/// The draft as this pass reads it. `pass` must stay until the job has run.
Job job_of_pass(const MaskedPass& pass, const MaskedWriterOptions& options, Draft& draft) {
  const MaskedText& text = *draft.text;
  Job job;
  job.ids = text.sentence.ids;
  for (std::size_t i = 0; i < draft.tokens.size(); ++i)
    job.ids[static_cast<std::size_t>(text.places[i])] = draft.tokens[i];
  for (const Index mask : pass.masks) {
    const auto place = static_cast<std::size_t>(text.places[static_cast<std::size_t>(mask)]);
    job.ids[place] = text.sentence.ids[place];
    job.rows.push_back(text.places[static_cast<std::size_t>(mask)]);
  }
  job.segments = text.sentence.segments;
  if (pass.shown > 0) {
    MASQUE_CHECK(pass.masks.back() < pass.shown);
    hide_end(text, pass.shown, job.ids);
    hide_end(text, pass.shown, job.segments);
  }
  if (options.mask_of) job.mask = options.mask_of(job.ids);
  job.take = [&pass, &options, &draft](std::size_t row, std::span<const double> logits) {
    put_token(logits, pass, pass.masks[row], options, draft);
  };
  return job;
}

}  // namespace

Draft::Draft(const MaskedText& masked, Index number, const RandomStream& draws)
    : text(&masked), sample(number), stream(draws), log_probabilities(masked.places.size()) {
  for (const Index place : masked.places)
    tokens.push_back(masked.sentence.ids[static_cast<std::size_t>(place)]);
}

void write_masks(const model::Model& model, const NextPass& next,
                 const MaskedWriterOptions& options, std::span<Draft> drafts) {
  std::vector<std::uint8_t> finished(drafts.size());
  JobRunner runner(model, options.batch_tokens);
  for (Index number = 0, left = std::ssize(drafts); left > 0; ++number) {
    throw_if_interrupted();
    std::vector<MaskedPass> passes(drafts.size());
    for (std::size_t d = 0; d < drafts.size(); ++d) {
      if (finished[d] != 0) continue;
      passes[d] = next(drafts[d], number);
      if (passes[d].masks.empty()) {
        finished[d] = 1;
        --left;
        continue;
      }
      // A pass that the runner starts in add() may still change drafts in front of this one.
      runner.add(job_of_pass(passes[d], options, drafts[d]));
    }
    runner.run();
  }
}

}  // namespace masque::probe
