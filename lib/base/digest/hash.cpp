#include "base/digest/hash.hpp"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque {

namespace {

std::string hex(const unsigned char* data, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += fmt::format("{:02x}", data[i]);
  return out;
}

/// What the libraries can lack for a new sum is memory.
void need_memory(bool has) {
  if (!has) throw std::bad_alloc();
}

class Xxh3 final : public Hasher {
 public:
  Xxh3() : state_(XXH3_createState(), XXH3_freeState) {
    need_memory(state_ != nullptr);
    XXH3_128bits_reset(state_.get());
  }
  void add(Bytes bytes) override { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  std::string digest() const override {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return hex(canonical.digest, sizeof canonical.digest);
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

class Sha256 final : public Hasher {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    need_memory(context_ != nullptr &&
                EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(Bytes bytes) override {
    MASQUE_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string digest() const override {
    // Finishing ends a context, so that a copy is finished.
    const Context copy(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    need_memory(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1);
    std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
    unsigned size = 0;
    MASQUE_CHECK(EVP_DigestFinal_ex(copy.get(), out.data(), &size) == 1);
    return hex(out.data(), size);
  }

 private:
  using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
  Context context_;
};

}  // namespace

std::unique_ptr<Hasher> make_xxh3() { return std::make_unique<Xxh3>(); }

std::string xxh3_of(Bytes bytes) {
  const auto hasher = make_xxh3();
  hasher->add(bytes);
  return hasher->digest();
}

std::unique_ptr<Hasher> make_sha256() { return std::make_unique<Sha256>(); }

}  // namespace masque
