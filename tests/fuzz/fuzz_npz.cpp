// Any bytes as an npz file: no crash, members that lie apart, the naive reading agrees, and so does
// the reading as a checkpoint.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/npz_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_npz)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_zip)
