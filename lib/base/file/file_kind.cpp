#include "base/file/file_kind.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/utf8.hpp"

namespace masque {

namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view is;
};

/// The first match counts.
constexpr std::array kKinds{
    Signature{"version https://git-lfs.github.com/spec/v1"sv,
              "a Git LFS pointer: the real file was not downloaded"sv},
    Signature{"<!DOCTYPE"sv, "a web page"sv},
    Signature{"<!doctype"sv, "a web page"sv},
    Signature{"<html"sv, "a web page"sv},
    Signature{"<?xml"sv, "an XML document"sv},
    Signature{"{\"error\""sv, "the error message of a server"sv},
    Signature{"\x1F\x8B"sv, "compressed by gzip: unpack it first"sv},
    Signature{"\x28\xB5\x2F\xFD"sv, "compressed by zstd: unpack it first"sv},
    Signature{"\xFD\x37\x7A\x58\x5A\x00"sv, "compressed by xz: unpack it first"sv},
    Signature{"\x78\x01"sv, "compressed by zlib: unpack it first"sv},
    Signature{"\x78\x5E"sv, "compressed by zlib: unpack it first"sv},
    Signature{"\x78\x9C"sv, "compressed by zlib: unpack it first"sv},
    Signature{"\x78\xDA"sv, "compressed by zlib: unpack it first"sv},
    Signature{"BZh"sv, "compressed by bzip2: unpack it first"sv},
    Signature{"model_checkpoint_path:"sv,
              "a list of TensorFlow checkpoints: give the folder or one of them"sv},
    Signature{"\x89PNG\r\n\x1A\n"sv, "a PNG picture"sv},
    Signature{"\xFF\xD8\xFF"sv, "a JPEG picture"sv},
    Signature{"GIF8"sv, "a GIF picture"sv},
    Signature{"%PDF-"sv, "a PDF document"sv},
    Signature{"\x7F\x45LF"sv, "a program"sv},
    Signature{"\x89HDF\r\n\x1A\n"sv, "HDF5 (Keras), which this version does not read"sv},
    Signature{"\x80\x02"sv, "a pickle, which is never executed"sv},
    Signature{"\x80\x03"sv, "a pickle, which is never executed"sv},
    Signature{"\x80\x04"sv, "a pickle, which is never executed"sv},
    Signature{"\x80\x05"sv, "a pickle, which is never executed"sv},
};

}  // namespace

bool may_be_text(std::string_view first) {
  const bool control = std::ranges::any_of(
      first, [](char c) { return (c >= 0 && c < ' ' && (c < '\t' || c > '\r')) || c == '\x7F'; });
  while (!first.empty() && (first.back() & 0x80) != 0) first.remove_suffix(1);
  return !control && !first.empty() && valid_utf8(first);
}

std::string_view known_kind(std::string_view first) {
  const auto found = std::ranges::find_if(
      kKinds, [&](const Signature& kind) { return first.starts_with(kind.bytes); });
  return found == kKinds.end() ? std::string_view() : found->is;
}

void refuse_other_kind(std::string_view first, const std::string& name) {
  first = first.substr(0, kKindBytes);
  const std::string_view kind = known_kind(first);
  if (kind.empty() || may_be_text(first)) return;
  throw InputError(name, fmt::format("{}, expected a text", kind));
}

}  // namespace masque
