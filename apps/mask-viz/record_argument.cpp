#include "record_argument.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/line_filter.hpp"
#include "base/line_input.hpp"
#include "base/parallel.hpp"
#include "records/record_mask.hpp"
#include "records/record_reader.hpp"
#include "text/tokenizer.hpp"

namespace masque::mask_viz {

namespace {

/// Lengths of runs of equal values, as the arguments of document().
std::string runs_of(const std::vector<std::int32_t>& values) {
  std::string out;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && values[end] == values[begin]) ++end;
    out += fmt::format("{}{}", begin == 0 ? "" : ",", end - begin);
    begin = end;
  }
  return out;
}

std::string mask_of(const records::Record& record) {
  if (record.mask) {
    records::parse_record_mask(*record.mask, static_cast<Index>(record.size()));
    return *record.mask;
  }
  if (record.size() == 0) return "full";
  if (record.doc.present) return fmt::format("document({})", runs_of(record.doc.values));
  if (!record.seg.present) return "full";
  // As UniLM: the source (segment 0) is read by all, the target from left to right.
  std::size_t source = 0;
  while (source < record.size() && record.seg.values[source] == 0) ++source;
  return fmt::format("unilm({},{})", source, record.size() - source);
}

}  // namespace

std::optional<RecordMask> read_record_mask(const std::string& argument,
                                           const std::optional<std::string>& tokenizer) {
  if (argument != "-") return std::nullopt;
  if (::isatty(STDIN_FILENO) == 1) {
    throw UsageError("no input: pipe a record in, or use < file");
  }
  LineInput input(STDIN_FILENO, kStandardInput, 64 << 20);
  LineBatch batch;
  if (!input.read(batch)) throw InputError(kStandardInput, "is empty, expected a record");
  std::string line = batch.text.substr(0, batch.text.find('\n'));
  line.reserve(line.size() + kLinePadding);
  records::JsonRecordReader reader;
  records::Record record;
  if (const auto problem = reader.read(line, record)) {
    throw InputError(kStandardInput, fmt::format("line 1: {}", *problem));
  }
  RecordMask out;
  if (const auto problem = input_error_message([&] { out.expression = mask_of(record); }))
    throw InputError(kStandardInput, fmt::format("line 1: {}", *problem));
  out.length = static_cast<Index>(record.size());
  std::optional<text::Tokenizer> names;
  if (tokenizer) names = text::Tokenizer::open(*tokenizer);
  for (std::size_t i = 0; i < record.size(); ++i) {
    out.labels.push_back(names ? std::string(names->token(record.ids[i]))
                               : std::to_string(record.ids[i]));
    if (record.labels.present && record.labels.values[i] != records::kNoLabel) {
      out.labelled.push_back(static_cast<Index>(i));
    }
  }
  return out;
}

}  // namespace masque::mask_viz
