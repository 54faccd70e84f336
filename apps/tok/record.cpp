#include "record.hpp"

#include <array>

#include "base/json_writer.hpp"
#include "base/name_table.hpp"
#include "base/split.hpp"
#include "records/token_lines.hpp"

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
    for (const text::Span& span : encoding.offsets) json.array(std::array{span.begin, span.end});
    json.end_array();
  }
  if (fields.tokens) json.key("tokens").array(encoding.tokens);
  if (fields.seg) json.key("seg").array(encoding.type_ids);
  if (fields.special) json.key("special").array(encoding.special);
  json.end_object();
  out += '\n';
}

}  // namespace masque::tok
