#include "records/record_reader.hpp"

#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json/json_text.hpp"

namespace masque::records {

namespace od = simdjson::ondemand;

struct JsonRecordReader::State {
  od::parser parser;
  std::optional<std::string> text;
  std::string repaired;  ///< the line, if it had lone surrogates
  std::uint64_t lone_surrogates = 0;
  std::vector<std::string_view> keys;  ///< of the last line, unescaped
};

namespace {

// simdjson looks for the best of its implementations on first use, in functions that end the
// program where there is no memory: so they are used before main.
[[maybe_unused]] const bool kSimdjsonChosen =
    !simdjson::get_active_implementation()->name().empty();

using Problem = std::optional<std::string>;

Problem wrong(std::string_view key, std::string_view expected) {
  return fmt::format("{}: expected {}", escape(key), expected);
}

/// A list of 32-bit whole numbers.
Problem read_list(od::value value, std::string_view key, std::vector<std::int32_t>& out) {
  od::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return wrong(key, "a list of numbers");
  out.clear();
  for (auto item : array) {
    std::int64_t number = 0;
    if (item.get_int64().get(number) != simdjson::SUCCESS ||
        number < std::numeric_limits<std::int32_t>::min() ||
        number > std::numeric_limits<std::int32_t>::max()) {
      return wrong(key, "a list of whole numbers of 32 bits");
    }
    out.push_back(static_cast<std::int32_t>(number));
  }
  return std::nullopt;
}

Problem read_numbers(od::value value, std::string_view key, Numbers& out) {
  out.present = true;
  return read_list(value, key, out.values);
}

Problem read_weights(od::value value, Record& record) {
  od::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return wrong("weights", "a list");
  record.has_weights = true;
  for (auto item : array) {
    double number = 0;
    if (item.get_double().get(number) != simdjson::SUCCESS) {
      return wrong("weights", "a list of numbers");
    }
    record.weights.push_back(number);
  }
  return std::nullopt;
}

Problem read_tokens(od::value value, std::string_view key, std::vector<DroppedToken>& tokens) {
  od::array array;
  constexpr std::string_view kExpected = "a list of [position, id]";
  if (value.get_array().get(array) != simdjson::SUCCESS) return wrong(key, kExpected);
  std::vector<std::int32_t> pair;
  for (auto item : array) {
    od::value element;
    if (item.get(element) != simdjson::SUCCESS) return wrong(key, kExpected);
    if (read_list(element, key, pair) || pair.size() != 2) return wrong(key, kExpected);
    tokens.push_back({pair[0], pair[1]});
  }
  return std::nullopt;
}

/// The bytes of a value that is passed on.
Problem read_raw(od::value value, std::string_view key, std::string_view& raw) {
  od::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return wrong(key, "a JSON value");
  auto error = simdjson::SUCCESS;
  if (type == od::json_type::array) {
    od::array array;
    error = value.get_array().get(array);
    if (error == simdjson::SUCCESS) error = array.raw_json().get(raw);
  } else if (type == od::json_type::object) {
    od::object object;
    error = value.get_object().get(object);
    if (error == simdjson::SUCCESS) error = object.raw_json().get(raw);
  } else {
    raw = value.raw_json_token();
    while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\t')) raw.remove_suffix(1);
  }
  return error == simdjson::SUCCESS ? Problem() : wrong(key, "a JSON value");
}

/// Reads the members of one object.
class MemberReader {
 public:
  /// `keys` receives the keys that are read.
  MemberReader(Record& record, std::optional<std::string>& text,
               std::vector<std::string_view>& keys)
      : record_(record), text_(text), keys_(keys) {}

  /// The spelling of the ids; empty: there are none.
  std::string_view ids_name;

  Problem read(od::field field) {
    written_ = written_key(field);
    std::string_view key = written_;
    if (key.find('\\') != std::string_view::npos &&
        field.unescaped_key().get(key) != simdjson::SUCCESS)
      return fmt::format("{}: expected a JSON string as key", escape(written_));
    keys_.push_back(key);
    const od::value value = field.value();
    if (key == "ids" || key == "input_ids") {
      if (!ids_name.empty()) return twice(ids_name, key);
      ids_name = key;
      return read_list(value, key, record_.ids);
    }
    const std::pair<std::string_view, Numbers*> lists[] = {{"pos", &record_.pos},
                                                           {"position_ids", &record_.pos},
                                                           {"seg", &record_.seg},
                                                           {"token_type_ids", &record_.seg},
                                                           {"doc", &record_.doc},
                                                           {"words", &record_.words},
                                                           {"labels", &record_.labels},
                                                           {"source_ids", &record_.source},
                                                           {"cu_seqlens", &record_.cu_seqlens},
                                                           {"original", &record_.original},
                                                           {"attention_mask", &attention_}};
    for (const auto& [name, list] : lists) {
      if (key != name) continue;
      if (list->present)
        return twice(list == &record_.pos   ? pos_name_
                     : list == &record_.seg ? seg_name_
                                            : key,
                     key);
      if (list == &record_.pos) pos_name_ = name;
      if (list == &record_.seg) seg_name_ = name;
      return read_numbers(value, key, *list);
    }
    if (key == "weights") return read_weights(value, record_);
    if (key == "dropped") {
      record_.has_dropped = true;
      return read_tokens(value, key, record_.dropped);
    }
    if (key == "hidden_tokens") return read_tokens(value, key, record_.hidden);
    if (key == "schema") return read_schema(value);
    if (key == "mask") return read_mask(value);
    return read_other(key, value);
  }

  /// After all members: whether a key was given twice.
  Problem check_keys() const {
    std::ranges::sort(keys_);
    const auto second = std::ranges::adjacent_find(keys_);
    return second == keys_.end() ? Problem() : twice(*second, *second);
  }

  /// After all members of a record with ids: what is wrong with their lengths, then without the
  /// tokens that attention_mask hides.
  Problem finish() {
    if (auto problem = length_problem(record_)) return problem;
    record_.position_ids = pos_name_ == "position_ids";
    if (!attention_.present) return std::nullopt;
    if (record_.mask) return "has both mask and attention_mask, expected one of them";
    const std::vector<std::int32_t>& seen = attention_.values;
    const std::size_t n = record_.size();
    if (seen.size() != n)
      return fmt::format("attention_mask: {} values, expected {} as in {}", seen.size(), n,
                         ids_name);
    std::vector<std::uint8_t> keep(n, 1);
    for (std::size_t i = 0; i < n; ++i) {
      if (seen[i] != 0 && seen[i] != 1) return wrong("attention_mask", "a list of 0 and 1");
      keep[i] = static_cast<std::uint8_t>(seen[i]);
      if (keep[i] == 0 && record_.labels.present && record_.labels.values[i] != kNoLabel)
        return fmt::format("labels: token {} has a label, but attention_mask hides it", i);
    }
    if (std::ranges::find(keep, 0) == keep.end()) return std::nullopt;
    if (record_.cu_seqlens.present)
      return "has both cu_seqlens and an attention_mask that hides tokens, expected one of them";
    if (!record_.hidden.empty())
      return "has both hidden_tokens and an attention_mask that hides tokens, expected one of them";
    // Tokens that are followed by padding alone have their usual positions.
    const bool usual = !record_.pos.present && std::ranges::is_sorted(keep, std::greater<>());
    if (!usual && (!record_.pos.present || record_.position_ids)) {
      // With position_ids only those between others count: in distances that go by the index.
      const auto first = static_cast<std::size_t>(std::ranges::find(keep, 1) - keep.begin());
      const auto last = std::find(keep.rbegin(), keep.rend(), 1);
      const auto end = static_cast<std::size_t>(keep.rend() - last);
      for (std::size_t i = record_.position_ids ? first : 0; i < end; ++i) {
        if (keep[i] == 0) record_.hidden.push_back({record_.position(i), record_.ids[i]});
      }
    }
    record_.keep_tokens(keep);
    if (usual) record_.pos.clear();
    return std::nullopt;
  }

 private:
  static std::string twice(std::string_view first, std::string_view second) {
    if (first == second) return fmt::format("{}: given twice", escape(first));
    return fmt::format("{} and {}: two names of the same field, expected one", first, second);
  }

  Problem read_schema(od::value value) {
    std::int64_t version = 0;
    if (value.get_int64().get(version) != simdjson::SUCCESS || version != kRecordSchema) {
      return fmt::format("schema: expected {}", kRecordSchema);
    }
    return std::nullopt;
  }

  Problem read_mask(od::value value) {
    std::string_view expression;
    if (value.get_string().get(expression) != simdjson::SUCCESS) {
      return wrong("mask", "an expression of the mask language");
    }
    record_.mask = std::string(expression);
    return std::nullopt;
  }

  Problem read_other(std::string_view key, od::value value) {
    std::string_view raw;
    std::string_view quoted_key(written_.data() - 1, written_.size() + 2);
    if (key == "text") {
      quoted_key = "\"text\"";  // what else it may be written as, who passes it on looks for this
      raw = value.raw_json_token();
      raw = raw.substr(0, raw.rfind('"') + 1);
      std::string_view text;
      if (value.get_string().get(text) != simdjson::SUCCESS) return wrong("text", "a string");
      text_ = std::string(text);
    } else if (auto problem = read_raw(value, key, raw)) {
      return problem;
    }
    record_.other.push_back({quoted_key, raw});
    return std::nullopt;
  }

  /// The key between its quotes, escapes and all.
  static std::string_view written_key(od::field& field) {
    const char* begin = field.key().raw();
    const char* end = begin;
    while (*end != '"') end += *end == '\\' ? 2 : 1;
    return {begin, static_cast<std::size_t>(end - begin)};
  }

  Record& record_;
  std::optional<std::string>& text_;
  std::vector<std::string_view>& keys_;
  Numbers attention_;
  std::string_view written_;              ///< the key, escapes and all
  std::string_view pos_name_, seg_name_;  ///< as they were spelled
};

}  // namespace

JsonRecordReader::JsonRecordReader(bool text_alone)
    : state_(std::make_unique<State>()), text_alone_(text_alone) {}
JsonRecordReader::~JsonRecordReader() = default;

const std::optional<std::string>& JsonRecordReader::text() const { return state_->text; }

std::uint64_t JsonRecordReader::lone_surrogates() const { return state_->lone_surrogates; }

Problem JsonRecordReader::read(std::string_view line, Record& record) {
  record.clear();
  state_->text.reset();
  state_->lone_surrogates = 0;
  if (has_lone_surrogates(line)) {
    state_->repaired = line;
    state_->lone_surrogates = replace_lone_surrogates(state_->repaired);
    state_->repaired.reserve(line.size() + simdjson::SIMDJSON_PADDING);
    line = state_->repaired;
  }
  od::document document;
  od::object object;
  const simdjson::padded_string_view padded(line, line.size() + simdjson::SIMDJSON_PADDING);
  if (auto error = state_->parser.iterate(padded).get(document); error != simdjson::SUCCESS) {
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();  // no fault of the record
    return fmt::format("not a JSON object: {}", simdjson::error_message(error));
  }
  if (auto error = document.get_object().get(object); error != simdjson::SUCCESS) {
    return fmt::format("not a JSON object: {}", simdjson::error_message(error));
  }
  state_->keys.clear();
  MemberReader members(record, state_->text, state_->keys);
  for (auto result : object) {
    od::field field;
    if (auto error = std::move(result).get(field); error != simdjson::SUCCESS) {
      return fmt::format("not a JSON object: {}", simdjson::error_message(error));
    }
    if (auto problem = members.read(field)) return problem;
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return "characters after the JSON object, expected one object per line";
  if (auto problem = members.check_keys()) return problem;
  if (!members.ids_name.empty()) {
    state_->text.reset();
    return members.finish();
  }
  if (!state_->text) return text_alone_ ? "no field 'text'" : "no ids, expected ids or text";
  return std::nullopt;
}

Problem read_ids(std::string_view line, Record& record) {
  record.clear();
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
    if (at == line.size()) return std::nullopt;
    std::uint64_t value = 0;
    const std::size_t begin = at;
    for (; at < line.size() && line[at] >= '0' && line[at] <= '9'; ++at) {
      value = value * 10 + static_cast<std::uint64_t>(line[at] - '0');
      if (at - begin > 10) break;
    }
    const bool ended = at == line.size() || line[at] == ' ' || line[at] == '\t' || line[at] == '\r';
    if (at == begin || !ended || value > std::numeric_limits<std::int32_t>::max()) {
      return fmt::format(
          "found '{}', expected an id",
          escape(line.substr(begin, std::min<std::size_t>(20, line.find(' ', begin) - begin))));
    }
    record.ids.push_back(static_cast<TokenId>(value));
  }
}

}  // namespace masque::records
