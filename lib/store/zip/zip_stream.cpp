#include "store/zip/zip_stream.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kZipBufferBytes = 1 << 16;
constexpr std::size_t kPieceBytes = 1 << 20;  // between two looks for a signal

}  // namespace

/// zlib's state, and the packed bytes on the way to it.
struct ZipStream::Inflater {
  explicit Inflater(const ZipMember& member) : at(member.data_begin), left(member.packed_bytes) {
    const int result = ::inflateInit2(&stream, -MAX_WBITS);  // negative: no zlib header
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    MASQUE_CHECK(result == Z_OK);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream); }

  /// Reads more packed bytes if zlib has none.
  void refill(const InputFile& file) {
    if (stream.avail_in > 0 || left == 0) return;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, input.size()));
    file.read(at, MutableBytes(input).first(size));
    at += size;
    left -= size;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(size);
  }

  /// Unpacks until zlib has no room or no input. Returns what is wrong, or nothing.
  std::string_view step(const InputFile& file) {
    if (ended) return "unpacks to fewer bytes than the directory says";
    refill(file);
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_BUF_ERROR) return "the packed data end too early";
    if (result != Z_OK && result != Z_STREAM_END) return "the packed data are damaged";
    ended = result == Z_STREAM_END;
    return {};
  }

  z_stream stream{};
  std::vector<std::byte> input = std::vector<std::byte>(kZipBufferBytes);
  std::uint64_t at;
  std::uint64_t left;  ///< packed bytes not yet read
  bool ended = false;
};

ZipStream::ZipStream(const InputFile& file, const ZipMember& member)
    : file_(file), member_(member), left_(member.bytes) {
  if (member.method == ZipMethod::kDeflated) inflater_ = std::make_unique<Inflater>(member);
}

ZipStream::~ZipStream() = default;

Violation ZipStream::broken(std::string_view message) const {
  return Violation{"zip-data", std::string(message), member_.name, member_.data_begin};
}

std::optional<Violation> ZipStream::read(MutableBytes out) {
  MASQUE_CHECK(out.size() <= left_);
  while (!out.empty()) {
    throw_if_interrupted();
    const MutableBytes piece = out.first(std::min(out.size(), kPieceBytes));
    if (inflater_) {
      if (auto violation = inflate_into(piece)) return violation;
    } else {
      file_.read(member_.data_begin + member_.bytes - left_, piece);
    }
    crc_ = crc32_of(piece, crc_);
    left_ -= piece.size();
    out = out.subspan(piece.size());
  }
  return std::nullopt;
}

std::optional<Violation> ZipStream::inflate_into(MutableBytes out) {
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  while (stream.avail_out > 0) {
    if (const auto wrong = inflater_->step(file_); !wrong.empty()) return broken(wrong);
  }
  return std::nullopt;
}

std::optional<Violation> ZipStream::finish() {
  std::array<std::byte, 1 << 13> unused{};
  while (left_ > 0) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, unused.size()));
    if (auto violation = read(MutableBytes(unused).first(size))) return violation;
  }
  if (inflater_) {
    // The end of the packed data may be still to come, but no byte more.
    z_stream& stream = inflater_->stream;
    while (!inflater_->ended) {
      stream.next_out = reinterpret_cast<Bytef*>(unused.data());
      stream.avail_out = 1;
      const auto wrong = inflater_->step(file_);
      if (stream.avail_out == 0) return broken("unpacks to more bytes than the directory says");
      if (!wrong.empty()) return broken(wrong);
    }
    if (stream.avail_in > 0 || inflater_->left > 0) {
      return broken("bytes after the end of the packed data");
    }
  }
  if (crc_ == member_.crc) return std::nullopt;
  return Violation{"zip-crc",
                   fmt::format("CRC-32 {:08x}, expected {:08x}: damaged", crc_, member_.crc),
                   member_.name, member_.data_begin};
}

std::optional<Violation> check_zip_sums(const InputFile& file) {
  auto directory = read_zip_directory(file, {.deflate = true, .ignore_case = false});
  if (auto* violation = std::get_if<Violation>(&directory)) return std::move(*violation);
  for (const ZipMember& member : std::get<std::vector<ZipMember>>(directory)) {
    if (auto violation = ZipStream(file, member).finish()) return violation;
  }
  return std::nullopt;
}

}  // namespace masque::store
