// GGUF files: the rules are in store/gguf.
#include <cstring>

#include "store/gguf/gguf.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kMagic = "GGUF";

bool recognise(const InputFile& /*file*/, Bytes first) {
  return first.size() >= kMagic.size() &&
         std::memcmp(first.data(), kMagic.data(), kMagic.size()) == 0;
}

Checked<FileContent> read(const InputFile& file) {
  const auto read_bytes = [&](std::uint64_t offset, MutableBytes out) { file.read(offset, out); };
  return parse_gguf(read_bytes, file.size());
}

/// No checksums.
std::vector<Patch> in_place(const PatchedFile& /*file*/) { return {}; }

const FileFormat kFormat{
    .name = "gguf", .writer = "gguf", .recognise = recognise, .read = read, .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
