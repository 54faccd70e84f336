// Any bytes as lists of hypotheses (TSV, ESPnet's JSON, mlm-scoring's): every list has one, and
// choosing and counting errors works.
#include "evaluate/score/nbest.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  std::vector<evaluate::Utterance> lists;
  if (!test::accepts([&] { lists = evaluate::read_nbest(input, "fuzz"); })) return;
  for (const evaluate::Utterance& list : lists) {
    test::require(!list.hypotheses.empty(), "a list of nothing");
    test::require(evaluate::choose(list, 0.5, {}) < list.hypotheses.size(),
                  "a choice beyond the list");
  }
  if (!evaluate::has_references(lists)) return;
  evaluate::errors_at(lists, 0.5, {});
  evaluate::oracle_errors(lists);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json_or_lines)
