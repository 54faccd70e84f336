// Known answers, so that no digest ever changes between versions.
#include "base/digest/hash.hpp"

#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"

namespace masque {
namespace {

std::string sha256(std::string_view text) {
  const auto hasher = make_sha256();
  hasher->add(as_bytes(text));
  return hasher->digest();
}

std::string xxh3(std::string_view text) {
  const auto hasher = make_xxh3();
  hasher->add(as_bytes(text));
  return hasher->digest();
}

std::string counting_bytes(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
  return text;
}

TEST_CASE("SHA-256 gives the published digests") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("XXH3-128 gives the digests of the reference library") {
  CHECK(xxh3("") == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3("a") == "a96faf705af16834e6c632b61e964e1f");
  CHECK(xxh3("bert.embeddings.word_embeddings.weight") == "8433fd0eb77baf17db0f5a64ff5634a7");
  CHECK(xxh3(counting_bytes(1000)) == "18bf41bc8229e27733ef703fb2b20ed1");
}

TEST_CASE("a digest does not depend on how the bytes were cut") {
  const std::string text = counting_bytes(5000);
  for (const std::size_t step : {1U, 7U, 64U, 1023U, 4999U}) {
    const auto fast = make_xxh3();
    const auto strong = make_sha256();
    for (std::size_t at = 0; at < text.size(); at += step) {
      const Bytes part = as_bytes(std::string_view(text).substr(at, step));
      fast->add(part);
      strong->add(part);
    }
    CAPTURE(step);
    CHECK(fast->digest() == xxh3(text));
    CHECK(strong->digest() == sha256(text));
  }
}

}  // namespace
}  // namespace masque
