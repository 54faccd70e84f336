// Any bytes as a record: what is accepted prints to a record that reads to the same again.
#include <string>

#include "base/input/line_filter.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "records/record.hpp"
#include "records/record_reader.hpp"

namespace masque::records {
namespace {

/// A line with readable bytes after it, as streams give them.
std::string padded(std::string_view line) {
  std::string text;
  text.reserve(line.size() + kLinePadding);
  text = line;
  return text;
}

const char* wrong(std::string_view data) {
  const std::string line = padded(data.substr(0, data.find('\n')));
  Record ids;
  if (!read_ids(line, ids) && length_problem(ids)) return "plain ids with other lists";
  JsonRecordReader reader;
  Record record;
  if (reader.read(line, record)) return nullptr;
  if (record.mask)
    test::accepts([&] { bind_record_mask(*record.mask, static_cast<Index>(record.size())); });
  std::string first;
  append_record(record, first);
  const std::string again_line = padded(std::string_view(first).substr(0, first.size() - 1));
  Record again;
  if (reader.text().has_value()) return nullptr;  // has no ids yet
  if (reader.read(again_line, again)) return "what was printed is refused";
  std::string second;
  append_record(again, second);
  return first == second ? nullptr : "another record";
}

}  // namespace
}  // namespace masque::records

MASQUE_FUZZ_TARGET(masque::records::wrong)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json)
