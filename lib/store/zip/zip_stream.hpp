// The bytes of a zip file's member, unpacked piece by piece.
#pragma once

#include <memory>
#include <optional>

#include "store/zip/zip.hpp"

namespace masque::store {

/// CRC-32 (of zip and PNG) of bytes after others whose CRC is `before`.
std::uint32_t crc32_of(Bytes bytes, std::uint32_t before = 0);

/// The CRC-32 of bytes with `first` and, after them, `size` bytes with `second`.
std::uint32_t crc32_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t size);

/// Reads a member from its first byte to its last. Never gives more bytes than the directory says;
/// memory: 128 KiB. Rules: "zip-data" (cannot be unpacked to exactly that size), "zip-crc". `file`
/// and `member` must outlive it. Throws InputError if the file cannot be read.
class ZipStream {
 public:
  ZipStream(const InputFile& file, const ZipMember& member);
  ~ZipStream();

  /// The next out.size() bytes, at most as many as are left.
  std::optional<Violation> read(MutableBytes out);

  /// Reads what is left, then compares size and CRC. Only after that are the bytes known to be
  /// good.
  std::optional<Violation> finish();

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

/// Reads every member of a zip file: the first whose bytes are not what the directory says. Throws
/// InputError if the file cannot be read.
std::optional<Violation> check_zip_sums(const InputFile& file);

}  // namespace masque::store
