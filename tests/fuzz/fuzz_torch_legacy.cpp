// Any bytes as a legacy PyTorch file: no crash, and tensors that lie inside of it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/make_torch.hpp"
#include "support/torch_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Without the number that every such file starts with, which a fuzzer would only break.
  const std::string file =
      masque::test::pickled("\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19") +
      std::string(bytes);
  const std::string wrong = masque::test::wrong_torch(file);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_torch_legacy: %s\n", wrong.c_str());
  std::abort();
}
