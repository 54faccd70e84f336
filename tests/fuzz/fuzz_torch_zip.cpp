// Any bytes as a PyTorch zip file: no crash, and tensors that lie inside of it.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/make_torch.hpp"
#include "support/torch_oracle.hpp"

MASQUE_FUZZ_TARGET(masque::test::wrong_torch)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_zip)
