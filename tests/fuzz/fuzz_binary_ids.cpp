// Any bytes as a file of ids, of 2 or 4 bytes each, with llm.c's header or without: what passes the
// filter has as many ids as the file.
#include "fuzz/fuzz.hpp"
#include "records/binary_filter.hpp"
#include "records/drop.hpp"
#include "support/memory_file.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  if (input.empty()) return;
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const auto choice = static_cast<unsigned char>(input[0]);
  const test::MemoryFile file(input.substr(1));
  records::BinaryFilter filter;
  filter.input = file.path();
  filter.output = folder / "out";
  filter.bytes = (choice & 1U) != 0 ? 2 : 4;
  filter.layout =
      (choice & 2U) != 0 ? records::BinaryLayout::kLlmc : records::BinaryLayout::kNanogpt;
  filter.length = 1 + (choice >> 2U);
  filter.threads = 1;
  filter.tokens.size = 256;
  filter.tokens.special.assign(5, 1);
  const auto drop = records::make_drop({.rate = 0}, filter.tokens);
  if (!test::accepts([&] { records::filter_binary(filter, *drop); })) return;
  const std::string written = test::read_file(filter.output);
  const std::size_t header =
      filter.layout == records::BinaryLayout::kLlmc ? records::kLlmcHeaderBytes : 0;
  test::require(std::string_view(written).substr(header) == input.substr(1 + header), "other ids");
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
