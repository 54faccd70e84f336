// Base64 as RFC 4648 has it.
#include "text/step/base64.hpp"

#include <doctest/doctest.h>

namespace masque::text {
namespace {

TEST_CASE("the examples of RFC 4648 in both directions") {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    CHECK(encode_base64(bytes) == text);
    CHECK(decode_base64(text) == bytes);
  }
}

TEST_CASE("every byte comes back, in every place of a group") {
  for (int first = 0; first < 256; ++first) {
    for (const std::size_t before : {0U, 1U, 2U}) {
      const std::string bytes = std::string(before, 'x') + static_cast<char>(first);
      CHECK(decode_base64(encode_base64(bytes)) == bytes);
    }
  }
}

TEST_CASE("what is not made of padded groups is none") {
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zm9v=", "Zg==Zg==", "====", "Zm9*", "Zm 9", "=Zg="})
    CHECK(decode_base64(wrong) == std::nullopt);
}

}  // namespace
}  // namespace masque::text
