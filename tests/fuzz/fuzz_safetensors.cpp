// Any bytes as a safetensors file: no crash, and the naive validator and a second writing agree.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/safetensors_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_verdict)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_safetensors)
