// Lines that the tools read one by one: minimal pairs (first byte p), pairs of sentences with a
// score (s), results of lm-score (m) and attn-probe (a) that merge adds up.
#include <array>

#include "attn-probe/stats_parts.hpp"
#include "base/string/split.hpp"
#include "evaluate/score/minimal_pairs.hpp"
#include "evaluate/states/similarity_pair.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "lm-score/merger.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void minimal_pairs(std::string_view text) {
  evaluate::PairTally tally;
  for_each_line(text, [&](std::string_view line) {
    test::accepts([&] { tally.add(evaluate::parse_minimal_pair(line), 1, 0); });
  });
  for (const auto& row : tally.rows()) test::require(row.right == row.n, "another count");
}

void similarities(std::string_view text) {
  for_each_line(text, [&](std::string_view line) {
    test::accepts([&] {
      const evaluate::SimilarityPair pair = evaluate::parse_similarity_pair(line);
      test::require(pair.first.size() + pair.second.size() + 2 <= line.size(), "longer sentences");
    });
  });
}

void scores(std::string_view text) { lm_score::Merger().add(text, "fuzz"); }

void statistics(std::string_view text) {
  attn_probe::StatsMerger merger;
  merger.add(text, "fuzz");
  merger.totals();
}

constexpr std::array<test::Kind, 4> kKinds = {
    {{'p', minimal_pairs}, {'s', similarities}, {'m', scores}, {'a', statistics}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_lines>)
