#include "binary_output.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace masque::tok {

namespace {

static_assert(std::endian::native == std::endian::little, "ids are written as they are in memory");

constexpr std::size_t kHeader = 1024;

template <class T>
void append_as(std::string& out, const std::vector<TokenId>& ids) {
  const std::size_t before = out.size();
  out.resize(before + ids.size() * sizeof(T));
  char* at = out.data() + before;
  for (const TokenId id : ids) {
    const auto value = static_cast<T>(id);
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
}

}  // namespace

BinaryOutput::BinaryOutput(const std::string& path, Width width, Layout layout, std::size_t ids)
    : width_(width), layout_(layout), file_(path) {
  if (width == Width::k16 && ids > std::size_t{1} << 16)
    throw UsageError(
        fmt::format("--binary u16: the tokenizer has {} ids, expected 65536 at most", ids));
  if (layout == Layout::kLlmc)
    write_all(file_.descriptor(), as_bytes(std::string(kHeader, '\0')), path);
}

void BinaryOutput::append(std::string& out, const std::vector<TokenId>& ids) const {
  if (width_ == Width::k16) {
    append_as<std::uint16_t>(out, ids);
  } else {
    append_as<std::uint32_t>(out, ids);
  }
}

void BinaryOutput::write(const std::string& bytes) {
  write_all(file_.descriptor(), as_bytes(bytes), file_.path());
  written_ += bytes.size();
}

void BinaryOutput::commit() {
  if (layout_ == Layout::kLlmc) {
    const std::uint64_t count = written_ / (width_ == Width::k16 ? 2 : 4);
    if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      throw InputError(file_.path(),
                       fmt::format("{} ids, expected fewer than 2^31 (llm.c's header)", count));
    }
    // GPT-2's magic and version for 16 bits, Llama 3's for 32.
    const std::array<std::uint32_t, 3> header{width_ == Width::k16 ? 20240520U : 20240801U,
                                              width_ == Width::k16 ? 1U : 7U,
                                              static_cast<std::uint32_t>(count)};
    std::string bytes(sizeof header, '\0');
    std::memcpy(bytes.data(), header.data(), sizeof header);
    write_at(file_.descriptor(), 0, as_bytes(bytes), file_.path());
  }
  file_.commit();
}

}  // namespace masque::tok
