// Any bytes as a PyTorch zip file: no crash, and tensors that lie inside of it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/make_torch.hpp"
#include "support/torch_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string file(bytes);
  const std::string wrong = masque::test::wrong_torch(file);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_torch_zip: %s\n", wrong.c_str());
  std::abort();
}
