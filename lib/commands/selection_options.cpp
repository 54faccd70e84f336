#include "commands/selection_options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::commands {

using records::Choice;
using records::Unit;

void add_selection(cli::Command& command, SelectionChoice& options) {
  command.option(
      "--rate", "P", options.rate,
      "share of ordinary (not special) tokens to select; LOW:HIGH draws a share for each "
      "record");
  command.choice("--unit", options.selection.unit,
                 {{"token", Unit::kToken}, {"word", Unit::kWord}, {"words", Unit::kWords}},
                 "what is selected at once; word: whole words, by the tokenizer's marks; words: "
                 "whole words, by the record's field 'words'");
  command.choice(
      "--choice", options.selection.choice,
      {{"bernoulli", Choice::kBernoulli},
       {"exact", Choice::kExact},
       {"span", Choice::kSpan},
       {"ngram", Choice::kNgram}},
      "units independently; exactly the share; spans of geometric length; runs of 1 to 4 "
      "units");
  command.option("--span-p", "P", options.selection.span_p, cli::AllowedRange{0, 1},
                 "parameter of the geometric distribution of span lengths");
  command.option("--span-longest", "N", options.selection.span_longest,
                 "maximum span length, in units");
  command.read_only_if(
      {"span-p", "span-longest"}, [&] { return options.selection.choice == Choice::kSpan; },
      fmt::format("without {} span", field("choice")));
}

std::vector<double> parse_shares(std::string_view name, const std::string& text, std::size_t least,
                                 std::size_t most) {
  std::vector<double> shares;
  // A colon at the end is let through.
  const auto parts = text.empty() ? split(text, ':') : split_terminated(text, ':');
  for (const std::string_view part : parts) {
    const auto value = parse_number<double>(part);
    if (!value || !(*value >= 0)) {
      throw UsageError(fmt::format("{}: found '{}', expected numbers from 0, separated by colons",
                                   field(name), escape(text)));
    }
    shares.push_back(*value);
  }
  if (shares.size() < least || shares.size() > most) {
    throw UsageError(fmt::format(
        "{}: found {} numbers, expected {}", field(name), shares.size(),
        least == most ? fmt::format("{}", least) : fmt::format("from {} to {}", least, most)));
  }
  return shares;
}

records::SelectionOptions selection_of(const SelectionChoice& options, std::uint64_t seed) {
  records::SelectionOptions selection = options.selection;
  selection.seed = seed;
  const std::vector<double> rates = parse_shares("rate", options.rate, 1, 2);
  selection.rate = rates.front();
  if (rates.size() == 2) selection.rate_high = rates.back();
  return selection;
}

}  // namespace masque::commands
