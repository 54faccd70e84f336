#include "record.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json_writer.hpp"
#include "base/split.hpp"

namespace masque::tok {

RecordFields parse_fields(std::string_view list) {
  static constexpr std::array<std::pair<std::string_view, bool RecordFields::*>, 5> kFields{
      {{"text", &RecordFields::text},
       {"offsets", &RecordFields::offsets},
       {"tokens", &RecordFields::tokens},
       {"seg", &RecordFields::seg},
       {"special", &RecordFields::special}}};
  RecordFields fields;
  for (const std::string_view name : split_terminated(list, ',')) {
    const auto known = std::find_if(kFields.begin(), kFields.end(),
                                    [name](const auto& field) { return field.first == name; });
    if (known == kFields.end()) {
      throw UsageError(fmt::format(
          "--with: found '{}', expected text, offsets, tokens, seg or special", escape(name)));
    }
    fields.*known->second = true;
  }
  return fields;
}

void append_ids(std::string& out, const std::vector<TokenId>& ids, char between) {
  constexpr std::size_t kAtOnce = 512;
  std::array<char, kAtOnce*(kDecimalChars + 1)> buffer;
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

void append_record(std::string& out, const text::Encoding& encoding, std::string_view line,
                   const RecordFields& fields) {
  JsonWriter json(out);
  json.begin_object().key("ids").array(encoding.ids);
  if (fields.text) json.member("text", line);
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
