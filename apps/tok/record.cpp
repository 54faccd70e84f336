#include "record.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/name_table.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "records/token_folder.hpp"

namespace masque::tok {

RecordFields parse_fields(std::string_view list) {
  using Field = bool RecordFields::*;
  static constexpr std::array<std::pair<std::string_view, Field>, 5> kFields{
      {{"text", &RecordFields::text},
       {"offsets", &RecordFields::offsets},
       {"tokens", &RecordFields::tokens},
       {"seg", &RecordFields::seg},
       {"special", &RecordFields::special}}};
  RecordFields fields;
  const std::vector<std::string_view> names = split_terminated(list, ',');
  for (const Field member : named_values("with", std::span(names), NameTable<Field>(kFields)))
    fields.*member = true;
  return fields;
}

namespace {

/// Begins an object.
void add_line(JsonWriter& json, const std::vector<TokenId>& ids, std::string_view line,
              const RecordFields& fields) {
  json.begin_object().key("ids").array(ids);
  if (fields.text) json.member("text", line);
}

}  // namespace

void append_record(std::string& out, const std::vector<TokenId>& ids, std::string_view line,
                   const RecordFields& fields) {
  records::reserve_ids(out, ids.size());
  JsonWriter json(out);
  add_line(json, ids, line, fields);
  json.end_object();
  out += '\n';
}

void append_record(std::string& out, const text::Encoding& encoding, std::string_view line,
                   const RecordFields& fields) {
  JsonWriter json(out);
  add_line(json, encoding.ids, line, fields);
  if (fields.offsets) {
    json.key("offsets").begin_array();
    SparseLooks looks;
    for (const text::Span& span : encoding.offsets) {
      looks.step();
      json.array(std::array{span.begin, span.end});
    }
    json.end_array();
  }
  if (fields.tokens) json.key("tokens").array(encoding.tokens);
  if (fields.seg) json.key("seg").array(encoding.type_ids);
  if (fields.special) json.key("special").array(encoding.special);
  json.end_object();
  out += '\n';
}

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
