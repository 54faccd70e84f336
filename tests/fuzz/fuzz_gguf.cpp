// Any bytes as a GGUF file: no crash, and a naive reading and a second writing agree.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/gguf_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = masque::test::wrong_gguf({reinterpret_cast<const char*>(data), size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_gguf: %s\n", wrong.c_str());
  std::abort();
}
