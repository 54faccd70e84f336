#include "record.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"

namespace masque::tok {

namespace {

template <class T>
void append_numbers(std::string& out, std::string_view name, const std::vector<T>& values) {
  out += name;
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", values[i]);
  out += ']';
}

void append_offsets(std::string& out, const std::vector<text::Span>& offsets) {
  out += ",\"offsets\":[";
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}[{},{}]", i == 0 ? "" : ",", offsets[i].begin,
                   offsets[i].end);
  }
  out += ']';
}

void append_tokens(std::string& out, const std::vector<std::string>& tokens) {
  out += ",\"tokens\":[";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    out += quote_json(tokens[i]);
  }
  out += ']';
}

}  // namespace

RecordFields parse_fields(std::string_view list) {
  static constexpr std::array<std::pair<std::string_view, bool RecordFields::*>, 5> kFields{
      {{"text", &RecordFields::text},
       {"offsets", &RecordFields::offsets},
       {"tokens", &RecordFields::tokens},
       {"seg", &RecordFields::seg},
       {"special", &RecordFields::special}}};
  RecordFields fields;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
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
  out += "{\"ids\":[";
  append_ids(out, encoding.ids, ',');
  out += ']';
  if (fields.text) {
    out += ",\"text\":";
    out += quote_json(line);
  }
  if (fields.offsets) append_offsets(out, encoding.offsets);
  if (fields.tokens) append_tokens(out, encoding.tokens);
  if (fields.seg) append_numbers(out, ",\"seg\":", encoding.type_ids);
  if (fields.special) append_numbers(out, ",\"special\":", encoding.special);
  out += "}\n";
}

}  // namespace masque::tok
