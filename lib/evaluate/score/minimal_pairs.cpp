#include "evaluate/score/minimal_pairs.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_text.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

namespace {

/// The first of the names that is there and a string; nullptr if none is.
const std::string* text_of(const JsonValue& root, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const JsonValue* value = root.find(name);
    if (value != nullptr && value->is(JsonKind::kString)) return &value->text;
  }
  return nullptr;
}

std::string optional_text(const JsonValue& root, std::initializer_list<std::string_view> names) {
  const std::string* text = text_of(root, names);
  return text == nullptr ? std::string() : *text;
}

std::string needed_text(const JsonValue& root, std::string_view name, std::string_view short_name) {
  const std::string* text = text_of(root, {name, short_name});
  if (text == nullptr)
    throw InputError(fmt::format("no {} or {}, expected a sentence", name, short_name));
  return *text;
}

}  // namespace

MinimalPair parse_minimal_pair(std::string_view line) {
  std::string copy;
  std::uint64_t surrogates = 0;
  if (has_lone_surrogates(line)) {
    copy = line;
    surrogates = replace_lone_surrogates(copy);
    line = copy;
  }
  const std::variant<JsonValue, JsonError> parsed = read_json(line);
  if (const auto* error = std::get_if<JsonError>(&parsed))
    throw InputError(fmt::format("byte {}: {}", error->offset, error->message));
  const auto& root = std::get<JsonValue>(parsed);
  return {.good = needed_text(root, "sentence_good", "good"),
          .bad = needed_text(root, "sentence_bad", "bad"),
          .uid = optional_text(root, {"UID", "uid"}),
          .field = optional_text(root, {"field"}),
          .term = optional_text(root, {"linguistics_term"}),
          .lone_surrogates = surrogates};
}

void PairTally::add(const MinimalPair& pair, bool is_right) {
  const std::uint64_t right = is_right ? 1 : 0;
  const std::array<std::pair<Level, const std::string*>, 3> groups{
      {{Level::kParadigm, &pair.uid}, {Level::kTerm, &pair.term}, {Level::kField, &pair.field}}};
  for (const auto& [level, name] : groups) {
    if (!name->empty()) add({level, *name, 1, right});
  }
  add({Level::kAll, "all", 1, right});
}

void PairTally::add(const Row& row) {
  Count& count = groups_[{row.level, row.name}];
  count.n += row.n;
  count.right += row.right;
}

std::uint64_t PairTally::pairs() const {
  const auto all = groups_.find({Level::kAll, "all"});
  return all == groups_.end() ? 0 : all->second.n;
}

std::vector<PairTally::Row> PairTally::rows() const {
  std::vector<Row> rows;
  rows.reserve(groups_.size());
  for (const auto& [key, count] : groups_)
    rows.push_back({key.first, key.second, count.n, count.right});
  return rows;
}

double PairComparison::Row::p() const { return sign_test(only_first, only_second); }

void PairComparison::add(const MinimalPair& pair, bool first, bool second) {
  first_.add(pair, first);
  second_.add(pair, second);
  only_first_.add(pair, first && !second);
  only_second_.add(pair, second && !first);
}

std::vector<PairComparison::Row> PairComparison::rows() const {
  const std::vector<PairTally::Row> first = first_.rows();
  const std::vector<PairTally::Row> second = second_.rows();
  const std::vector<PairTally::Row> only_first = only_first_.rows();
  const std::vector<PairTally::Row> only_second = only_second_.rows();
  std::vector<Row> rows;
  rows.reserve(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    rows.push_back({first[i].level, first[i].name, first[i].n, first[i].right, second[i].right,
                    only_first[i].right, only_second[i].right});
  }
  return rows;
}

std::string_view level_name(PairTally::Level level) {
  switch (level) {
    case PairTally::Level::kParadigm: return "paradigm";
    case PairTally::Level::kTerm: return "term";
    case PairTally::Level::kField: return "field";
    case PairTally::Level::kAll: break;
  }
  return "all";
}

}  // namespace masque::evaluate
