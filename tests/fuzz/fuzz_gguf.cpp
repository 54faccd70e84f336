// Any bytes as a GGUF file: no crash, and a naive reading and a second writing agree.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/gguf_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_gguf)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_gguf)
