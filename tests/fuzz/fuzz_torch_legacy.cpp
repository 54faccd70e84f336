// Any bytes as a legacy PyTorch file: no crash, and tensors that lie inside of it.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "support/make_torch.hpp"
#include "support/torch_oracle.hpp"

namespace {

std::string wrong(std::string_view bytes) {
  // Without the number that every such file starts with, which a fuzzer would only break.
  return masque::test::wrong_torch(
      masque::test::pickled("\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19") +
      std::string(bytes));
}

}  // namespace

MASQUE_FUZZ_TARGET(wrong)
