#include "records/record.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"

namespace masque::records {

namespace {

void add_if(std::string_view key, const Numbers& numbers, JsonWriter& json) {
  if (numbers.present) json.key(key).array(numbers.values);
}

constexpr std::array<std::pair<std::string_view, WordErrorKind>, kWordErrorKinds> kErrorNames{
    {{"typing", WordErrorKind::kTyping},
     {"insertion", WordErrorKind::kInsertion},
     {"deletion", WordErrorKind::kDeletion},
     {"swap", WordErrorKind::kSwap},
     {"confusion", WordErrorKind::kConfusion}}};

void add_text(const NoisyText& noisy, JsonWriter& json) {
  json.member("text", noisy.text).member("original_text", noisy.original);
  json.key("errors").begin_array();
  for (const WordError& error : noisy.errors) {
    json.begin_object().member("kind", name_in(word_error_names(), error.kind));
    json.key("span").array(std::array{error.span.begin, error.span.end});
    json.key("original_span")
        .array(std::array{error.original_span.begin, error.original_span.end})
        .end_object();
  }
  json.end_array();
}

void add_tokens(std::string_view key, const std::vector<DroppedToken>& tokens, JsonWriter& json) {
  json.key(key).begin_array();
  for (const DroppedToken& token : tokens) json.array(std::array{token.pos, token.id});
  json.end_array();
}

void add_ids(const Record& record, JsonWriter& json) {
  json.key("ids").array(record.ids);
  add_if("source_ids", record.source, json);
  add_if(record.position_ids ? "position_ids" : "pos", record.pos, json);
  add_if("seg", record.seg, json);
  add_if("doc", record.doc, json);
  add_if("words", record.words, json);
  add_if("labels", record.labels, json);
  if (record.has_weights) json.key("weights").array(record.weights);
  if (record.mask) json.member("mask", *record.mask);
  add_if("cu_seqlens", record.cu_seqlens, json);
  if (record.has_dropped) add_tokens("dropped", record.dropped, json);
  if (record.pos.present && !record.hidden.empty())
    add_tokens("hidden_tokens", record.hidden, json);
  add_if("original", record.original, json);
}

}  // namespace

NameTable<WordErrorKind> word_error_names() { return kErrorNames; }

std::string OtherField::name() const {
  if (key.find('\\') == std::string_view::npos) return std::string(key.substr(1, key.size() - 2));
  const auto read = read_json(key);
  const auto* const string = std::get_if<JsonValue>(&read);
  return string == nullptr ? std::string(key) : string->text;
}

void Record::clear() {
  place.reset();
  ids.clear();
  for (Numbers* list : {&pos, &seg, &doc, &words, &labels, &source, &cu_seqlens, &original})
    list->clear();
  has_weights = false;
  weights.clear();
  has_dropped = false;
  dropped.clear();
  hidden.clear();
  position_ids = false;
  mask.reset();
  noisy.reset();
  other.clear();
}

void number_positions(Record& record, const PositionRule& rule) {
  const bool counted = record.pos.present && !record.hidden.empty() &&
                       (rule.skips_hidden || (rule.offset > 0 && rule.pad));
  const auto is_padding = [&](TokenId id, bool hidden) {
    return rule.skips_hidden ? hidden : id == *rule.pad;
  };
  if (record.pos.present && record.position_ids) {
    for (std::int32_t& position : record.pos.values) position -= rule.offset;
    for (DroppedToken& token : record.dropped) token.pos -= rule.offset;
  } else if (counted) {
    // Padding does not count, whether it is hidden or not.
    std::vector<std::int32_t> padding;
    for (const DroppedToken& token : record.hidden)
      if (is_padding(token.id, true)) padding.push_back(token.pos);
    for (std::size_t i = 0; i < record.size(); ++i)
      if (is_padding(record.ids[i], false)) padding.push_back(record.pos.values[i]);
    std::ranges::sort(padding);
    const auto moved = [&](std::int32_t position) {
      return static_cast<std::int32_t>(
          position - (std::ranges::lower_bound(padding, position) - padding.begin()));
    };
    bool usual = true;
    std::int32_t next = 0;
    for (std::size_t i = 0; i < record.size(); ++i) {
      std::int32_t& position = record.pos.values[i];
      const bool pad = is_padding(record.ids[i], false);
      position = pad ? -1 : moved(position);
      usual = usual && (pad || position == next++);
    }
    for (DroppedToken& token : record.dropped) token.pos = moved(token.pos);
    if (usual && !record.has_dropped) record.pos.clear();
  }
  record.position_ids = false;
  record.hidden.clear();
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

std::string document_mask(std::span<const std::int32_t> ends) {
  std::string mask = "document(";
  for (std::size_t i = 1; i < ends.size(); ++i)
    mask += fmt::format("{}{}", i == 1 ? "" : ",", std::int64_t{ends[i]} - ends[i - 1]);
  return mask + ")";
}

bool labels_are_own(const Record& record) {
  return !record.mask || (*record.mask != "causal" && *record.mask != "reverse" &&
                          !record.mask->starts_with("unilm("));
}

bool has_clean_half(const Record& record) {
  return record.mask && record.mask->starts_with("block_diffusion(");
}

void Record::keep_first(std::size_t count) {
  MASQUE_CHECK(count <= size());
  if (original.present && original.values.size() == size()) original.values.resize(count);
  ids.resize(count);
  for (Numbers* list : {&pos, &seg, &doc, &words, &labels}) {
    if (list->present) list->values.resize(count);
  }
  if (has_weights) weights.resize(count);
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
  JsonWriter json(out);
  json.begin_object().member("schema", kRecordSchema);
  if (record.noisy) {
    add_text(*record.noisy, json);
  } else {
    add_ids(record, json);
  }
  for (const OtherField& field : record.other) json.raw_key(field.key).raw(field.value);
  json.end_object();
  out += '\n';
}

namespace {

/// Calls work(); what it refuses is the record's fault.
template <class Work>
void about_mask(const Work& work) {
  if (const auto problem = usage_error_message(work)) throw InputError("mask: " + *problem);
}

}  // namespace

mask::MaskExpression parse_record_mask(std::string_view text, Index length) {
  std::optional<mask::MaskExpression> mask;
  about_mask([&] {
    mask = mask::parse_mask(text);
    mask->check_sequence(length);
  });
  return *std::move(mask);
}

mask::Mask bind_record_mask(std::string_view text, Index length) {
  const mask::MaskExpression mask = parse_record_mask(text, length);
  std::optional<mask::Mask> bound;
  about_mask([&] { bound = mask.bind_sequence(length); });
  return *std::move(bound);
}

}  // namespace masque::records
