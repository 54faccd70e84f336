// Any bytes as the pickle of a PyTorch file: no crash, and tensors that lie inside their storages.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/torch_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string wrong = masque::test::wrong_pickle(bytes);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_pickle: %s\n", wrong.c_str());
  std::abort();
}
