// Hashes of byte streams: XXH3-128 for proofs inside a run, SHA-256 for people.
#pragma once

#include <memory>
#include <string>

#include "base/types.hpp"

namespace masque {

/// A running hash; feed it bytes, then ask once for the digest. Not thread-safe.
class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void add(Bytes bytes) = 0;
  /// Lower-case hexadecimal.
  virtual std::string digest() = 0;
};

/// XXH3-128, canonical form (32 digits): memory speed, for equality, not against an adversary.
std::unique_ptr<Hasher> make_xxh3();
/// The digest of bytes that are all there.
std::string xxh3_of(Bytes bytes);

/// SHA-256 (64 digits), as sha256sum prints it.
std::unique_ptr<Hasher> make_sha256();

}  // namespace masque
