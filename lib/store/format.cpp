#include "store/format.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/file/file_kind.hpp"
#include "base/registry/registry.hpp"
#include "store/tensorflow/leveldb_table.hpp"

namespace masque::store {

namespace {

using Formats = Registry<FileFormat>;

bool is_tar(const InputFile& file) {
  constexpr std::string_view kMagic = "ustar";
  constexpr std::uint64_t kPlace = 257;
  std::string found(kMagic.size(), '\0');
  if (file.size() < kPlace + kMagic.size()) return false;
  file.read(kPlace, std::as_writable_bytes(std::span(found)));
  return found == kMagic;
}

Bytes first_bytes(const InputFile& file, MutableBytes buffer) {
  const MutableBytes first = buffer.first(std::min<std::uint64_t>(buffer.size(), file.size()));
  file.read(0, first);
  return first;
}

const FileFormat* format_of(const InputFile& file, Bytes first) {
  const auto all = file_formats();
  const auto found = std::ranges::find_if(
      all, [&](const FileFormat* format) { return format->recognise(file, first); });
  return found == all.end() ? nullptr : *found;
}

}  // namespace

FormatRegistration::FormatRegistration(const FileFormat& format) {
  Formats::of_process().add(format);
}

std::span<const FileFormat* const> file_formats() { return Formats::of_process().all(); }

Checked<FileContent> read_weights(const InputFile& file) {
  std::array<std::byte, kKindBytes> buffer{};
  const Bytes first = first_bytes(file, buffer);
  const auto read_with = [&](const FileFormat& format) {
    auto content = format.read(file);
    if (auto* violation = std::get_if<Violation>(&content)) violation->file = file.path();
    if (auto* read = std::get_if<FileContent>(&content)) {
      read->writer = format.writer;
      read->in_place = format.in_place;
      if (format.check_sums != nullptr) read->check_sums = format.check_sums;
    }
    return content;
  };
  if (const FileFormat* format = format_of(file, first)) return read_with(*format);
  if (is_tar(file)) {
    return Violation{"unsupported-format",
                     "a PyTorch file of 2017 (tar): save it again with a newer torch", "", 0,
                     file.path()};
  }
  if (is_table(file)) {
    return Violation{"unsupported-format",
                     "a TensorFlow V1 checkpoint, or an index whose name lacks '.index': V1 was "
                     "written before TensorFlow 1.0; a newer one saves it again as V2",
                     "", 0, file.path()};
  }
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  const std::string_view kind = known_kind(text);
  if (!kind.empty()) {
    return Violation{"unsupported-format", fmt::format("{}, expected safetensors", kind), "", 0,
                     file.path()};
  }
  if (first.size() > 8 && first[0] == std::byte{'{'} && first[1] != std::byte{0} &&
      first[7] != std::byte{0}) {
    return Violation{"unsupported-format",
                     "a JSON text without weight_map, expected safetensors or an index", "", 0,
                     file.path()};
  }
  if (text.size() > 8 && may_be_text(text))
    return Violation{"unsupported-format", "a text, expected safetensors", "", 0, file.path()};
  const auto safetensors = std::find_if(file_formats().begin(), file_formats().end(),
                                        [](const auto* f) { return f->name == "safetensors"; });
  return read_with(**safetensors);
}

std::optional<Violation> check_sums(const InputFile& file, const FileContent& content) {
  if (!content.check_sums) return std::nullopt;
  auto broken = content.check_sums(file);
  if (broken) broken->file = file.path();
  return broken;
}

}  // namespace masque::store
