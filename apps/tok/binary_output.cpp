#include "binary_output.hpp"

#include <cstring>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace masque::tok {

namespace {

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

BinaryOutput::BinaryOutput(const std::string& path, Width width, records::BinaryLayout layout,
                           std::size_t ids)
    : width_(width), layout_(layout), file_(path) {
  if (width == Width::k16 && ids > std::size_t{1} << 16)
    throw UsageError(
        fmt::format("--binary u16: the tokenizer has {} ids, expected 65536 at most", ids));
  if (layout == records::BinaryLayout::kLlmc)
    write_all(file_.descriptor(), as_bytes(std::string(sizeof(records::LlmcHeader), '\0')), path);
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
  if (layout_ == records::BinaryLayout::kLlmc) {
    const int bytes = width_ == Width::k16 ? 2 : 4;
    const std::uint64_t count = written_ / static_cast<std::uint64_t>(bytes);
    if (count > records::kMostLlmcIds) {
      throw InputError(file_.path(),
                       fmt::format("{} ids, expected fewer than 2^31 (llm.c's header)", count));
    }
    const records::LlmcHeader header = records::llmc_header(bytes, count);
    write_at(file_.descriptor(), 0, std::as_bytes(std::span(header)), file_.path());
  }
  file_.commit();
}

}  // namespace masque::tok
