#include "binary_output.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace masque::tok {

using records::BinaryLayout;

BinaryOutput::BinaryOutput(const std::string& path, int bytes, BinaryLayout layout, std::size_t ids)
    : bytes_(bytes), layout_(layout), file_(path) {
  if (bytes == 2 && ids > std::size_t{1} << 16)
    throw UsageError(fmt::format(
        "--binary u16: the tokenizer has {} ids, expected at most 65536; use u32", ids));
  if (layout == BinaryLayout::kLlmc)
    write_all(file_.descriptor(), as_bytes(std::string(records::kLlmcHeaderBytes, '\0')), path);
}

void BinaryOutput::append(std::string& out, const std::vector<TokenId>& ids) const {
  records::append_binary(ids, bytes_, out);
}

void BinaryOutput::write(const std::string& ids) {
  write_all(file_.descriptor(), as_bytes(ids), file_.path());
  written_ += ids.size();
}

void BinaryOutput::commit() {
  if (layout_ == BinaryLayout::kLlmc) {
    const std::uint64_t count = written_ / static_cast<std::uint64_t>(bytes_);
    const std::string header = records::llmc_header(bytes_, count, file_.path());
    write_at(file_.descriptor(), 0, as_bytes(header), file_.path());
  }
  file_.commit();
}

}  // namespace masque::tok
