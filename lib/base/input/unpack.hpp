// Packed text, unpacked a block at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace masque {

/// How a text may be packed.
enum class Packing {
  kNone,  ///< not at all
  kGzip,  ///< members of gzip (RFC 1952), one after the other
  kZstd,  ///< frames of zstd (RFC 8878), one after the other
};

/// Returns how an input that begins with the bytes `first` is packed.
Packing packing_of(std::string_view first);
/// Whether more bytes after `first` may change what packing_of() returns.
bool packing_is_open(std::string_view first);
/// The name of `packing`, "gzip" or "zstd"; empty for kNone. The text is static.
std::string_view packing_name(Packing packing);

/// Unpacks a stream. Memory: that of one window, at most 128 MiB for zstd, 32 KiB for gzip; never
/// what the stream says of its size.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// Unpacks bytes of `in`, which loses those that were used, into `out`, which has room for `size`
  /// > 0 bytes, and returns how many it wrote. 0 if `in` was used up without any. Throws InputError
  /// for a stream that is damaged or needs a larger window, std::bad_alloc.
  virtual std::size_t unpack(std::string_view& in, char* out, std::size_t size) = 0;
  /// Whether all that was read so far are whole members or frames: the stream may end here.
  virtual bool may_end() const = 0;
};

/// Makes the unpacker for `packing`, which is not kNone; `name` is what messages call the stream.
std::unique_ptr<Unpacker> make_unpacker(Packing packing, const std::string& name);

}  // namespace masque
