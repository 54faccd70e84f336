// The bytes of a zip file's member, unpacked piece by piece.
#pragma once

#include <memory>
#include <optional>

#include "store/zip/zip.hpp"

namespace masque::store {

/// Reads a member from its first byte to its last. Never gives more bytes than the directory says;
/// memory: 128 KiB. Rules: "zip-data" (cannot be unpacked to exactly that size), "zip-crc". `file`
/// and `member` must outlive it. Throws InputError if the file cannot be read, and Interrupted.
class ZipStream {
 public:
  /// Begins at the first byte of `member` of `file`.
  ZipStream(const InputFile& file, const ZipMember& member);
  ~ZipStream();

  /// Fills `out` with the next out.size() bytes, at most as many as are left (a MASQUE_CHECK);
  /// returns a broken rule.
  std::optional<Violation> read(MutableBytes out);

  /// Reads what is left, then compares size and CRC; returns a broken rule. Only after that are the
  /// bytes known to be good.
  std::optional<Violation> finish();

  /// Unpacked bytes that are not read yet.
  std::uint64_t left() const { return left_; }

 private:
  struct Inflater;

  std::optional<Violation> inflate_into(MutableBytes out);
  Violation broken(std::string_view message) const;

  const InputFile& file_;
  const ZipMember& member_;
  std::uint64_t left_;
  std::uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;  ///< of a deflated member
};

/// Reads every member of the zip file `file`: returns the rule that the first one breaks whose
/// bytes are not what the directory says. Throws InputError if the file cannot be read, and
/// Interrupted.
std::optional<Violation> check_zip_sums(const InputFile& file);

}  // namespace masque::store
