// Any bytes as the index of a TensorFlow checkpoint whose sums are always right, so that
// changed bytes get through: no crash, and tensors inside of their files.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/bundle_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string wrong = masque::test::wrong_bundle(bytes, masque::store::TableSums::kIgnored);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_bundle_unsummed: %s\n", wrong.c_str());
  std::abort();
}
