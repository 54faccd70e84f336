// Hashes of byte streams: XXH3-128 for proofs inside a run, SHA-256 for people.
#pragma once

#include <memory>
#include <string>

#include "base/types.hpp"

namespace masque {

/// A running hash: feed it bytes, ask for the digest. Not thread-safe.
class Hasher {
 public:
  virtual ~Hasher() = default;
  /// Hashes `bytes` as what follows the bytes before. How a stream is cut changes nothing.
  virtual void add(Bytes bytes) = 0;
  /// Returns the hash of all bytes so far in lower-case hexadecimal; more may be added. Throws
  /// std::bad_alloc.
  virtual std::string digest() const = 0;
};

/// Makes an XXH3-128, canonical form (32 digits): memory speed, for equality, not against an
/// adversary. Throws std::bad_alloc.
std::unique_ptr<Hasher> make_xxh3();
/// Returns the XXH3-128 digest of `bytes`, as that of make_xxh3().
std::string xxh3_of(Bytes bytes);

/// Makes a SHA-256 (64 digits, as sha256sum prints it). Throws std::bad_alloc.
std::unique_ptr<Hasher> make_sha256();

}  // namespace masque
