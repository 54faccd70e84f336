#include "length/stream.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "train/data/line_encoder.hpp"

namespace masque::length {

namespace {

using Kind = evaluate::LengthPolicy::Kind;
using evaluate::Window;

// Of what is hidden: no epoch of training is this one.
constexpr std::uint64_t kScoredEpoch = std::uint64_t{1} << 40;

/// Blocks of `room` tokens that reach `count` of them; the last one may go on beyond.
std::vector<Window> chunks(Index count, Index room) {
  std::vector<Window> windows;
  for (Index begin = 0; begin < count; begin += room)
    windows.push_back({begin, begin + room, begin, std::min(begin + room, count)});
  return windows;
}

/// As the policy of texts that are too long, but for the last window, which is as long as all.
std::vector<Window> slides(Index tokens, Index room, const evaluate::LengthPolicy& policy,
                           bool causal) {
  std::vector<Window> windows = evaluate::cut_windows(tokens, room, policy, causal);
  Window& last = windows.back();
  last.begin = tokens - room;
  if (causal || windows.size() == 1) return windows;
  // Begun further left, it is the one that reads more around some tokens of the window before.
  Window& before = windows[windows.size() - 2];
  before.score_end = last.score_begin =
      std::max(before.score_begin, last.begin + (before.end - last.begin + 1) / 2);
  return windows;
}

/// The end of every piece of `piece` tokens.
std::vector<Window> ends(Index tokens, Index piece, Index room, Index scored) {
  std::vector<Window> windows;
  for (Index end = piece; end <= tokens; end += piece)
    windows.push_back({end - room, end, end - scored, end});
  return windows;
}

std::vector<const train::ObjectiveKind*> scored_objectives() {
  std::vector<const train::ObjectiveKind*> scored;
  for (const train::ObjectiveKind* kind : train::objectives()) {
    if (kind->traits.score) scored.push_back(kind);
  }
  std::ranges::sort(scored, {},
                    [](const train::ObjectiveKind* kind) { return *kind->traits.score; });
  return scored;
}

}  // namespace

evaluate::ScoreKind scored_kind(std::string_view objective) {
  std::vector<std::string_view> names;
  for (const train::ObjectiveKind* kind : scored_objectives()) {
    if (kind->name == objective) return *kind->traits.score;
    names.push_back(kind->name);
  }
  throw UsageError(
      fmt::format("{} {}: expected {}", field("objective"), objective, or_list(names)));
}

std::string scored_objective(evaluate::ScoreKind kind) {
  const auto all = train::objectives();
  const auto found = std::ranges::find_if(
      all, [&](const train::ObjectiveKind* one) { return one->traits.score == kind; });
  MASQUE_CHECK(found != all.end());
  return std::string((*found)->name);
}

void check_masked_option(std::string_view option, std::string_view objective,
                         std::string_view which) {
  const std::string masked = scored_objective(evaluate::ScoreKind::kPll);
  if (objective == masked) return;
  throw UsageError(
      fmt::format("{}: only with {} {}{}", field(option), field("objective"), masked, which));
}

LengthStream::LengthStream(const StreamRequest& request, const text::Tokenizer& tokenizer) {
  const bool causal = scored_kind(request.objective) == evaluate::ScoreKind::kCausal;
  if (request.text == "-" || is_stream(request.text))
    throw UsageError("texts are read several times: expected files, not streams");
  read(request, tokenizer);
  place_windows(request, causal);
  // Of a causal model the row in front of a token predicts it.
  make_examples(request, tokenizer, causal ? 1 : 0);
}

Index LengthStream::longest_room() const {
  Index longest = 0;
  for (const auto& [length, cut] : cuts_) longest = std::max(longest, cut.shape.room);
  return longest;
}

void LengthStream::read(const StreamRequest& request, const text::Tokenizer& tokenizer) {
  train::CorpusOptions reading;
  reading.format = train::CorpusFormat::kBlocks;
  reading.threads = request.threads;
  for (const Index length : request.lengths) {
    reading.length = length;
    cuts_[length].shape = train::LineEncoder(tokenizer, reading).shape();
  }
  reading.length = cuts_.begin()->first;
  const train::SequenceShape& block = cuts_.begin()->second.shape;
  const train::Corpus blocks = read_corpus(request.text, tokenizer, reading);
  const auto most = static_cast<std::size_t>(request.tokens);
  for (Index i = 0; i < blocks.size() && (most == 0 || ids_.size() < most); ++i) {
    const train::CorpusItem item = blocks.item(i);
    const auto text = item.ids.subspan(block.before.size(), static_cast<std::size_t>(block.room));
    ids_.insert(ids_.end(), text.begin(), text.end());
  }
  if (most > 0 && ids_.size() > most) ids_.resize(most);
  const Index all = blocks.size() * block.room;
  if (static_cast<Index>(ids_.size()) < all) {
    note_ = limit_note(request.text, ids_.size(), all, "tokens are read", "eval_tokens");
  }
}

void LengthStream::place_windows(const StreamRequest& request, bool causal) {
  const auto tokens = static_cast<Index>(ids_.size());
  const evaluate::LengthPolicy& policy = request.policy;
  Index count = tokens;
  for (const Index length : request.lengths) {
    const Index room = cuts_.at(length).shape.room;
    if (tokens < room) {
      throw InputError(request.text,
                       fmt::format("{} tokens to score, expected at least {} for one sequence "
                                   "of {}",
                                   tokens, room, length));
    }
    count = std::min(count, tokens / room * room);
    evaluate::check_stride(policy, room);
  }
  const Index longest = longest_room();
  const Index shortest = cuts_.begin()->second.shape.room;
  for (auto& [length, cut] : cuts_) {
    const Index room = cut.shape.room;
    switch (policy.kind) {
      case Kind::kChunk: cut.windows = chunks(count, room); break;
      case Kind::kSlide: cut.windows = slides(tokens, room, policy, causal); break;
      case Kind::kLast: cut.windows = ends(tokens, longest, room, shortest); break;
      default:
        throw UsageError(fmt::format("{} {}: expected chunk, slide:STRIDE or last", field("policy"),
                                     evaluate::policy_text(policy)));
    }
  }
}

void LengthStream::make_examples(const StreamRequest& request, const text::Tokenizer& tokenizer,
                                 Index shift) {
  train::ObjectiveOptions requested = request.requested;
  requested.tokens = train::token_table(tokenizer);
  requested.seed = request.seed;
  train::CorpusItem item;
  item.ids = ids_;
  const train::Example whole =
      train::find_objective(request.objective).make(requested)->example(item, kScoredEpoch);
  // At how many lengths a token has a row that predicts it.
  std::vector<std::size_t> rows(ids_.size(), 0);
  for (const auto& [length, cut] : cuts_) {
    const auto before = std::ssize(cut.shape.before);
    for (const Window& window : cut.windows) {
      for (Index t = window.score_begin; t < window.score_end; ++t)
        rows[static_cast<std::size_t>(t)] += t - window.begin + before >= shift ? 1 : 0;
    }
  }
  std::vector<TokenId> targets(ids_.size(), -1);
  for (std::size_t r = 0; r < whole.rows.size(); ++r) {
    const auto token = static_cast<std::size_t>(whole.rows[r] + shift);
    if (rows[token] == cuts_.size()) targets[token] = whole.targets[r];
  }
  if (std::ranges::all_of(targets, [](TokenId target) { return target < 0; })) {
    throw InputError(request.text,
                     "no token is a target at all lengths, expected longer ones or more text");
  }
  for (auto& [length, cut] : cuts_) {
    const auto before = std::ssize(cut.shape.before);
    for (const Window& window : cut.windows) {
      train::Example& one = cut.examples.emplace_back();
      one.ids = cut.shape.before;
      one.ids.insert(one.ids.end(), whole.ids.begin() + window.begin,
                     whole.ids.begin() + window.end);
      one.ids.insert(one.ids.end(), cut.shape.after.begin(), cut.shape.after.end());
      for (Index t = window.score_begin; t < window.score_end; ++t) {
        const TokenId target = targets[static_cast<std::size_t>(t)];
        if (target < 0) continue;
        one.rows.push_back(before + t - window.begin - shift);
        one.targets.push_back(target);
        cut.positions.push_back(t);
      }
    }
  }
}

}  // namespace masque::length
