#include "record.hpp"

#include <algorithm>
#include <array>

#include "base/decimal.hpp"
#include "base/json_writer.hpp"
#include "base/name_table.hpp"
#include "base/split.hpp"

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

/// Of a long line: room that is not written to takes no memory, a text that grows is there twice.
void reserve_ids(std::string& out, std::size_t count) {
  if (count > (1 << 16)) out.reserve(out.size() + count * (kDecimalChars + 1));
}

/// Begins an object.
void add_line(JsonWriter& json, const std::vector<TokenId>& ids, std::string_view line,
              const RecordFields& fields) {
  json.begin_object().key("ids").array(ids);
  if (fields.text) json.member("text", line);
}

}  // namespace

void append_ids(std::string& out, const std::vector<TokenId>& ids, char between) {
  constexpr std::size_t kAtOnce = 512;
  std::array<char, kAtOnce*(kDecimalChars + 1)> buffer;
  reserve_ids(out, ids.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, ids.size());
    char* at = buffer.data();
    for (std::size_t i = begin; i < end; ++i) {
      if (i > 0) *at++ = between;
      at = write_decimal(ids[i], at);
    }
    out.append(buffer.data(), static_cast<std::size_t>(at - buffer.data()));
  }
}

void append_record(std::string& out, const std::vector<TokenId>& ids, std::string_view line,
                   const RecordFields& fields) {
  reserve_ids(out, ids.size());
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
