// Lines that the tools read one by one: minimal pairs (first byte p), pairs of sentences with a
// score (s), results of lm-score (m) and attn-probe (a) that merge adds up.
#include "attn-probe/stats_parts.hpp"
#include "base/split.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "lm-score/aggregates.hpp"
#include "probe/score/minimal_pairs.hpp"
#include "probe/states/similarity_pair.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void minimal_pairs(std::string_view text) {
  probe::PairTally tally;
  for_each_line(text, [&](std::string_view line) {
    test::accepts([&] { tally.add(probe::parse_minimal_pair(line), 1, 0); });
  });
  for (const auto& row : tally.rows()) test::require(row.right == row.n, "another count");
}

void similarities(std::string_view text) {
  for_each_line(text, [&](std::string_view line) {
    test::accepts([&] {
      const probe::SimilarityPair pair = probe::parse_similarity_pair(line);
      test::require(pair.first.size() + pair.second.size() + 2 <= line.size(), "longer sentences");
    });
  });
}

void check(std::string_view input) {
  const std::string_view text = input.substr(std::min<std::size_t>(1, input.size()));
  if (input.starts_with('p')) minimal_pairs(text);
  if (input.starts_with('s')) similarities(text);
  if (input.starts_with('m')) test::accepts([&] { lm_score::Merger().add(text, "fuzz"); });
  if (input.starts_with('a')) {
    test::accepts([&] {
      attn_probe::StatsMerger merger;
      merger.add(text, "fuzz");
      merger.totals();
      merger.missing_shard();
    });
  }
}

std::string mutate(std::string_view input, test::Choices& choices) {
  if (input.empty()) return {};
  return input[0] + test::mutate_lines(input.substr(1), choices);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(mutate)
