#include "records/selection.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

namespace {

/// Whether a token goes on with the word of the one before it.
bool goes_on(TokenId id, const TokenTable& tokens) {
  const auto at = static_cast<std::size_t>(id);
  return at < tokens.begins_word.size() && tokens.begins_word[at] == 0;
}

}  // namespace

std::vector<Index> word_lengths(std::span<const TokenId> ids, const TokenTable& tokens) {
  if (tokens.begins_word.empty()) {
    throw UsageError(
        "a mask of words, but the tokenizer does not mark where words begin; expected another "
        "tokenizer");
  }
  std::vector<Index> lengths;
  bool joinable = false;  // whether the token before may go on
  for (const TokenId id : ids) {
    const bool special = tokens.is_special(id);
    if (joinable && !special && goes_on(id, tokens)) {
      ++lengths.back();
    } else {
      lengths.push_back(1);
    }
    joinable = !special;
  }
  return lengths;
}

Selection::Selection(const SelectionOptions& options, const TokenTable& tokens)
    : options_(options),
      threshold_(share_threshold(options.rate)),
      random_(options.seed, "droptoken select"),
      rates_(options.seed, "droptoken rate") {
  const double high = options.rate_high < 0 ? options.rate : options.rate_high;
  if (!(options.rate >= 0 && high <= 1 && options.rate <= high)) {
    throw UsageError(fmt::format(
        "{}: found {}{}, expected a share from 0 to 1, or two increasing ones", field("rate"),
        options.rate, options.rate_high < 0 ? "" : fmt::format(":{}", options.rate_high)));
  }
  if (options.unit == Unit::kWord && tokens.begins_word.empty()) {
    throw UsageError(fmt::format(
        "{}: found word, but the tokenizer does not mark where words begin", field("unit")));
  }
  if (!(options.span_p > 0 && options.span_p <= 1) || options.span_longest < 1) {
    throw UsageError(
        fmt::format("{} and {}: found {} and {}, expected p above 0 and at most 1, and a longest "
                    "length of at least 1",
                    field("span_p"), field("span_longest"), options.span_p, options.span_longest));
  }
}

double Selection::rate_of(const Record& record, std::uint64_t epoch) const {
  if (options_.rate_high < 0) return options_.rate;
  Draw draw(rates_.stream(epoch, record.number));
  return options_.rate + (options_.rate_high - options_.rate) * draw.uniform();
}

std::vector<Selection::Run> Selection::units_of(const Record& record,
                                                const TokenTable& tokens) const {
  if (options_.unit == Unit::kWords && !record.words.present) {
    throw InputError("no words, expected one number per token, equal within a word");
  }
  std::vector<Run> units;
  bool joinable = false;  // whether the token before may go on
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (tokens.is_special(record.ids[i])) {
      joinable = false;
      continue;
    }
    bool begins = true;
    if (options_.unit == Unit::kWord) {
      begins = !goes_on(record.ids[i], tokens);
    } else if (options_.unit == Unit::kWords) {
      begins = i == 0 || record.words.values[i] != record.words.values[i - 1];
    }
    if (begins || !joinable) {
      units.push_back({i, i + 1});
    } else {
      units.back().end = i + 1;
    }
    joinable = true;
  }
  return units;
}

std::size_t Selection::run_length(Draw& draw) const {
  if (options_.choice == Choice::kNgram) {
    const double u = draw.uniform();
    return u < 0.4 ? 1 : u < 0.7 ? 2 : u < 0.9 ? 3 : 4;
  }
  if (options_.choice != Choice::kSpan) return 1;
  // Geometric within 1 … longest, as SpanBERT: the tail is shared out, not piled on the longest.
  const double q = 1 - options_.span_p;
  const double total = 1 - std::pow(q, static_cast<double>(options_.span_longest));
  double below = draw.uniform() * total;
  std::size_t length = 1;
  for (double p = options_.span_p; length < options_.span_longest && below >= p; p *= q) {
    below -= p;
    ++length;
  }
  return length;
}

void Selection::select_runs(const std::vector<Run>& units, double rate, std::size_t ordinary,
                            Draw& draw, std::vector<std::uint8_t>& flags) const {
  if (rate <= 0 || units.empty()) return;
  const double share = rate * static_cast<double>(ordinary);
  const auto goal = static_cast<std::size_t>(
      std::max(1.0, options_.rounds_up ? std::ceil(share) : std::round(share)));
  std::size_t selected = 0;
  // Starts in random order; what would go beyond the goal is cut short or left out.
  for (const Index start : random_order(static_cast<Index>(units.size()), draw)) {
    if (selected >= goal) return;
    const auto first = static_cast<std::size_t>(start);
    const std::size_t last = std::min(units.size(), first + run_length(draw));
    for (std::size_t u = first; u < last; ++u) {
      const std::size_t size = units[u].end - units[u].begin;
      // A run ends at a special token, at a selected unit and at the goal.
      if (u > first && units[u].begin != units[u - 1].end) break;
      if (flags[units[u].begin] != 0 || selected + size > goal) break;
      std::fill(flags.begin() + static_cast<std::ptrdiff_t>(units[u].begin),
                flags.begin() + static_cast<std::ptrdiff_t>(units[u].end), 1);
      selected += size;
    }
  }
}

void Selection::select(const Record& record, std::uint64_t epoch, const TokenTable& tokens,
                       Scratch& scratch, Tally& tally) const {
  const std::size_t n = record.size();
  const RandomStream stream = random_.stream(epoch, record.number);
  std::vector<std::uint8_t>& flags = scratch.flags;
  std::uint64_t ordinary = 0;
  if (options_.unit == Unit::kToken && options_.choice == Choice::kBernoulli) {
    const std::uint64_t threshold =
        options_.rate_high < 0 ? threshold_ : share_threshold(rate_of(record, epoch));
    scratch.words.resize(n);
    stream.words(n, scratch.words.data());
    flags.resize(n);
    const TokenId* ids = record.ids.data();
    const std::uint8_t* special = tokens.special.data();
    const auto known = static_cast<std::uint32_t>(tokens.special.size());
    const std::uint32_t* words = scratch.words.data();
    for (std::size_t i = 0; i < n; ++i) {
      const auto id = static_cast<std::uint32_t>(ids[i]);
      const unsigned free = id < known ? 1U - special[id] : 1U;
      ordinary += free;
      flags[i] = static_cast<std::uint8_t>(free & static_cast<unsigned>(words[i] < threshold));
    }
  } else {
    const std::vector<Run> units = units_of(record, tokens);
    for (const Run& unit : units) ordinary += unit.end - unit.begin;
    flags.assign(n, 0);
    Draw draw(stream);
    const double rate = rate_of(record, epoch);
    if (options_.choice == Choice::kBernoulli) {
      const std::uint64_t threshold = share_threshold(rate);
      for (const Run& unit : units) {
        if (draw.word() >= threshold) continue;
        std::fill(flags.begin() + static_cast<std::ptrdiff_t>(unit.begin),
                  flags.begin() + static_cast<std::ptrdiff_t>(unit.end), 1);
      }
    } else {
      select_runs(units, rate, ordinary, draw, flags);
    }
  }
  tally.ordinary += ordinary;
  for (std::size_t i = 0; i < n; ++i) tally.selected += flags[i];
}

}  // namespace masque::records
