// Any bytes as the pickle of a PyTorch file: no crash, and tensors that lie inside their storages.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "support/torch_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_pickle)
