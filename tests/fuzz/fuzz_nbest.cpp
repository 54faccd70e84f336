// Any bytes as lists of hypotheses (TSV, ESPnet's JSON, mlm-scoring's): every list has one, and
// choosing and counting errors works.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "probe/score/nbest.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  std::vector<probe::Utterance> lists;
  if (!test::accepts([&] { lists = probe::read_nbest(input, "fuzz"); })) return;
  for (const probe::Utterance& list : lists) {
    test::require(!list.hypotheses.empty(), "a list of nothing");
    test::require(probe::choose(list, 0.5, {}) < list.hypotheses.size(),
                  "a choice beyond the list");
  }
  if (!probe::has_references(lists)) return;
  probe::errors_at(lists, 0.5, {});
  probe::oracle_errors(lists);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json_or_lines)
