#include "records/record.hpp"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

namespace masque::records {

namespace {

void append_number(std::int32_t value, std::string& out) {
  std::array<char, kDecimalChars> text{};
  out.append(text.data(), write_decimal(value, text.data()));
}

void append_list(std::string_view key, const std::vector<std::int32_t>& values, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + key.size() + 8 + values.size() * 12);
  char* at = out.data() + begin;
  const auto put = [&](std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  put(",\"");
  put(key);
  put("\":[");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *at++ = ',';
    at = write_decimal(values[i], at);
  }
  *at++ = ']';
  out.resize(static_cast<std::size_t>(at - out.data()));
}

void append_if(std::string_view key, const Numbers& numbers, std::string& out) {
  if (numbers.present) append_list(key, numbers.values, out);
}

}  // namespace

void Record::clear() {
  ids.clear();
  for (Numbers* list : {&pos, &seg, &doc, &words, &labels, &cu_seqlens, &original}) list->clear();
  has_weights = false;
  weights.clear();
  has_dropped = false;
  dropped.clear();
  mask.reset();
  other.clear();
}

std::optional<std::string> length_problem(const Record& record) {
  const std::size_t n = record.size();
  const std::pair<const char*, const Numbers*> lists[] = {{"pos", &record.pos},
                                                          {"seg", &record.seg},
                                                          {"doc", &record.doc},
                                                          {"words", &record.words},
                                                          {"labels", &record.labels}};
  for (const auto& [name, list] : lists) {
    if (!list->present || list->values.size() == n) continue;
    return fmt::format("{}: {} values, expected {} as in ids", name, list->values.size(), n);
  }
  if (record.has_weights && record.weights.size() != n) {
    return fmt::format("weights: {} values, expected {} as in ids", record.weights.size(), n);
  }
  return std::nullopt;
}

bool labels_are_own(const Record& record) {
  return !record.mask || (*record.mask != "causal" && *record.mask != "reverse" &&
                          !record.mask->starts_with("unilm("));
}

void Record::keep_tokens(const std::vector<std::uint8_t>& keep) {
  MASQUE_CHECK(keep.size() >= size());
  const std::size_t n = size();
  if (!pos.present) {
    std::vector<std::int32_t>& values = pos.make(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int32_t>(i);
  }
  // Without branches: every value is moved, the place advances if it stays.
  const auto compact = [&](auto& values) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      values[at] = values[i];
      at += keep[i] != 0 ? 1U : 0U;
    }
    values.resize(at);
  };
  compact(ids);
  if (original.present && original.values.size() == n) compact(original.values);
  for (Numbers* list : {&pos, &seg, &doc, &words, &labels}) {
    if (list->present) compact(list->values);
  }
  if (has_weights) compact(weights);
}

void append_record(const Record& record, std::string& out) {
  out += "{\"schema\":1";
  append_list("ids", record.ids, out);
  append_if("pos", record.pos, out);
  append_if("seg", record.seg, out);
  append_if("doc", record.doc, out);
  append_if("words", record.words, out);
  append_if("labels", record.labels, out);
  if (record.has_weights) {
    out += ",\"weights\":[";
    for (std::size_t i = 0; i < record.weights.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", record.weights[i]);
    }
    out += ']';
  }
  if (record.mask) out += ",\"mask\":" + quote_json(*record.mask);
  append_if("cu_seqlens", record.cu_seqlens, out);
  if (record.has_dropped) {
    out += ",\"dropped\":[";
    for (std::size_t i = 0; i < record.dropped.size(); ++i) {
      out += i == 0 ? "[" : ",[";
      append_number(record.dropped[i].pos, out);
      out += ',';
      append_number(record.dropped[i].id, out);
      out += ']';
    }
    out += ']';
  }
  append_if("original", record.original, out);
  for (const OtherField& field : record.other) {
    out += ',';
    out += field.key;
    out += ':';
    out += field.value;
  }
  out += "}\n";
}

}  // namespace masque::records
