#include "base/input/unpack.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzipBegin = "\x1F\x8B"sv;
constexpr std::string_view kZstdBegin = "\x28\xB5\x2F\xFD"sv;
/// After a byte from 0x50 to 0x5F: a frame without content, which pzstd writes first.
constexpr std::string_view kSkippableEnd = "\x2A\x4D\x18"sv;

bool is_skippable(std::string_view first) {
  return !first.empty() && (first.front() & 0xF0) == 0x50 &&
         first.substr(1).starts_with(kSkippableEnd);
}

bool is_part_of(std::string_view first, std::string_view whole) {
  return first.size() < whole.size() && whole.starts_with(first);
}

/// zlib counts in 32 bits.
uInt zlib_size(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

class GzipUnpacker final : public Unpacker {
 public:
  explicit GzipUnpacker(std::string name) : name_(std::move(name)) {
    if (inflateInit2(&stream_, kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;
  ~GzipUnpacker() override { inflateEnd(&stream_); }

  std::size_t unpack(std::string_view& in, char* out, std::size_t size) override {
    if (between_ && !begin_member(in)) return 0;
    // zlib's fields are not const; it does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = zlib_size(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = zlib_size(size);
    const uInt given = stream_.avail_in, most = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(given - stream_.avail_in);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code == Z_STREAM_END) between_ = true;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      throw InputError(name_, "damaged gzip data, expected what gzip wrote");
    return most - stream_.avail_out;
  }
  bool may_end() const override { return between_; }

 private:
  static constexpr int kGzipAlone = 16 + MAX_WBITS;

  /// After a member: another one, or zeros, with which tapes and some tools fill blocks.
  bool begin_member(std::string_view& in) {
    if (in.empty()) return false;
    if (padded_ || (members_ > 0 && in.front() != kGzipBegin.front())) {
      padded_ = true;
      if (in.find_first_not_of('\0') != std::string_view::npos)
        throw InputError(name_, "other bytes after the gzip data, expected more of it or the end");
      in = {};
      return false;
    }
    if (members_ > 0 && inflateReset(&stream_) != Z_OK) throw std::bad_alloc();
    ++members_;
    between_ = false;
    return true;
  }

  std::string name_;
  z_stream stream_{};
  std::size_t members_ = 0;
  bool between_ = true;  ///< members, not in one
  bool padded_ = false;
};

class ZstdUnpacker final : public Unpacker {
 public:
  explicit ZstdUnpacker(std::string name)
      : name_(std::move(name)), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t unpack(std::string_view& in, char* out, std::size_t size) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, size, 0};
    const std::size_t code = ZSTD_decompressStream(stream_.get(), &to, &from);
    if (ZSTD_isError(code) != 0) {
      const ZSTD_ErrorCode error = ZSTD_getErrorCode(code);
      if (error == ZSTD_error_memory_allocation) throw std::bad_alloc();
      if (error == ZSTD_error_frameParameter_windowTooLarge)
        throw InputError(name_,
                         "zstd data with a window of more than 128 MiB, expected a smaller "
                         "one");
      throw InputError(name_, "damaged zstd data, expected what zstd wrote");
    }
    // Without input and output nothing was asked: the code then says what a new frame needs.
    if (from.pos > 0 || to.pos > 0) whole_ = code == 0;
    in.remove_prefix(from.pos);
    return to.pos;
  }
  bool may_end() const override { return whole_; }

 private:
  std::string name_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool whole_ = true;
};

}  // namespace

Packing packing_of(std::string_view first) {
  if (first.starts_with(kGzipBegin)) return Packing::kGzip;
  if (first.starts_with(kZstdBegin) || is_skippable(first)) return Packing::kZstd;
  return Packing::kNone;
}

bool packing_is_open(std::string_view first) {
  return is_part_of(first, kGzipBegin) || is_part_of(first, kZstdBegin) ||
         ((first.empty() || (first.front() & 0xF0) == 0x50) &&
          is_part_of(first.substr(std::min<std::size_t>(first.size(), 1)), kSkippableEnd));
}

std::string_view packing_name(Packing packing) {
  switch (packing) {
    case Packing::kGzip: return "gzip";
    case Packing::kZstd: return "zstd";
    case Packing::kNone: break;
  }
  return {};
}

std::unique_ptr<Unpacker> make_unpacker(Packing packing, const std::string& name) {
  MASQUE_CHECK(packing != Packing::kNone);
  if (packing == Packing::kGzip) return std::make_unique<GzipUnpacker>(name);
  return std::make_unique<ZstdUnpacker>(name);
}

}  // namespace masque
