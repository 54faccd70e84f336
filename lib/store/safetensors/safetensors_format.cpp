// safetensors files: the header rules are in store/safetensors.
#include <array>
#include <string>

#include <fmt/format.h>

#include "store/format.hpp"
#include "store/safetensors/safetensors.hpp"

namespace masque::store {

namespace {

bool recognise(const InputFile& file, Bytes first) {
  const auto length = safetensors_header_length(first, file.size());
  if (!std::holds_alternative<std::uint64_t>(length) || first.size() < 9) return false;
  const auto at_8 = static_cast<char>(first[8]);
  return at_8 == '{' || at_8 == ' ' || at_8 == '\n' || at_8 == '\t' || at_8 == '\r';
}

Checked<FileContent> read(const InputFile& file) {
  std::array<std::byte, 8> first{};
  const std::uint64_t head = std::min<std::uint64_t>(8, file.size());
  file.read(0, MutableBytes(first).first(head));
  auto length = safetensors_header_length(Bytes(first).first(head), file.size());
  if (auto* violation = std::get_if<Violation>(&length)) return std::move(*violation);
  std::string json(std::get<std::uint64_t>(length), '\0');
  file.read(8, std::as_writable_bytes(std::span(json)));
  auto parsed = parse_safetensors_header(json, file.size());
  if (auto* violation = std::get_if<Violation>(&parsed)) return std::move(*violation);
  auto& header = std::get<SafetensorsHeader>(parsed);
  FileContent content;
  content.tensors = std::move(header.tensors);
  content.metadata = std::move(header.metadata);
  content.data_begin = header.data_begin;
  content.unknown_fields = header.unknown_fields;
  content.unknown_field = std::move(header.unknown_field);
  if (header.leading_space) {
    content.tolerated =
        Violation{"header-start", "white space before the header's '{'", "", 8, file.path()};
    content.notes.push_back(content.tolerated->message);
  }
  return content;
}

/// The header says nothing about the tensors' bytes.
std::vector<Patch> in_place(const PatchedFile& /*file*/) { return {}; }

const FileFormat kFormat{.name = "safetensors",
                         .writer = "safetensors",
                         .recognise = recognise,
                         .read = read,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
