// Any bytes as an npy file: no crash, and the naive reading and a second writing agree.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "support/npy_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_npy)
