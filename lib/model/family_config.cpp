#include "model/family_config.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/edit_distance.hpp"

namespace masque::model {

namespace {

// Products of two sizes fit an Index.
constexpr Index kLargest = (Index{1} << 31) - 1;
constexpr Index kMostLayers = 1000;
// Numbers that a float holds, and their quotients.
constexpr double kSmallest = 1e-30;
constexpr double kGreatest = 1e30;

}  // namespace

std::vector<std::pair<std::string, std::string>> FamilyConfig::misspelt() const {
  constexpr int kMostEdits = 2;
  constexpr std::size_t kShortest = 6;  // short names are near to one another
  std::vector<std::pair<std::string, std::string>> found;
  const JsonValue root = parse_json_file(config_.text(), config_.path());
  for (const JsonMember& member : root.members) {
    const std::string& name = member.name;
    // Private names are of transformers' own state.
    if (asked_->names.contains(name) || name.size() < kShortest || name.starts_with('_')) continue;
    for (const std::string& known : asked_->names) {
      if (config_.has(known) || edit_distance(name, known) > kMostEdits) continue;
      found.emplace_back(name, known);
      break;
    }
  }
  return found;
}

void FamilyConfig::add_unused(const JsonValue& object, const Asked& asked,
                              const std::string& before, std::vector<UnusedKey>& unused) {
  for (const JsonMember& member : object.members) {
    if (member.value.is(JsonKind::kNull)) continue;
    const auto inner = asked.objects.find(member.name);
    if (inner != asked.objects.end()) {
      add_unused(member.value, *inner->second, before + member.name + ".", unused);
    } else if (!asked.names.contains(member.name)) {
      unused.push_back({before + member.name, member.value});
    }
  }
}

std::vector<UnusedKey> FamilyConfig::unused_keys() const {
  std::vector<UnusedKey> unused;
  add_unused(parse_json_file(config_.text(), config_.path()), *asked_, "", unused);
  return unused;
}

FamilyConfig FamilyConfig::of_options(store::ModelConfig config,
                                      std::function<std::string(std::string_view name)> called) {
  FamilyConfig options(std::move(config));
  options.option_ = std::move(called);
  return options;
}

FamilyConfig FamilyConfig::with(store::ModelConfig config) const {
  FamilyConfig other(std::move(config));
  other.asked_ = asked_;
  return other;
}

void FamilyConfig::refuse(std::string_view name, std::string_view expected) const {
  std::string value = config_.has(name) ? config_.spelling(name) : "absent";
  if (value.size() > 60) value = value.substr(0, 60) + "…";
  if (option_) {
    if (value.size() > 1 && value.front() == '"') value.front() = value.back() = '\'';
    fail(name, fmt::format("found {}, expected {}", escape(value), expected));
  }
  throw InputError(config_.path(),
                   fmt::format("{} is {}, expected {}", name, escape(value), expected));
}

void FamilyConfig::fail(std::string_view name, std::string_view problem) const {
  const std::string message = fmt::format("{}: {}", called(name), problem);
  if (option_) throw UsageError(message);
  throw InputError(config_.path(), message);
}

std::string FamilyConfig::called(std::string_view name) const {
  return option_ ? option_(name) : std::string(name);
}

std::optional<Index> FamilyConfig::whole(std::string_view name, Index least, Index most) const {
  if (!has(name)) return std::nullopt;
  const auto value = config_.size(name);
  if (*value < static_cast<std::uint64_t>(least) || *value > static_cast<std::uint64_t>(most)) {
    refuse(name, fmt::format("{} to {}", least, most));
  }
  return static_cast<Index>(*value);
}

Index FamilyConfig::whole(Names names, Index least, Index most, Index fallback) const {
  std::optional<Index> first;
  std::string_view first_name;
  for (const std::string_view name : names) {
    const auto value = whole(name, least, most);
    if (!value) continue;
    if (first && *first != *value) refuse(name, fmt::format("{}, which is {}", first_name, *first));
    if (first) continue;
    first = value;
    first_name = name;
  }
  return first.value_or(fallback);
}

Index FamilyConfig::size(Names names, Index fallback) const {
  return whole(names, 1, kLargest, fallback);
}

Index FamilyConfig::count(Names names, Index fallback) const {
  return whole(names, 0, kLargest, fallback);
}

Index FamilyConfig::layers(Names names, Index fallback) const {
  return whole(names, 1, kMostLayers, fallback);
}

std::optional<Index> FamilyConfig::optional_count(std::string_view name) const {
  if (number(name, 0) == -1) return std::nullopt;  // early conversions of Llama say none so
  return whole(name, 0, kLargest);
}

double FamilyConfig::number(std::string_view name, double fallback) const {
  ask(name);
  const double value = config_.number(name).value_or(fallback);
  if (!std::isfinite(value)) refuse(name, "a finite number");
  return value;
}

double FamilyConfig::positive(std::string_view name, double fallback) const {
  const double value = number(name, fallback);
  if (!(value > 0)) refuse(name, "a number above 0");
  if (value < kSmallest || value > kGreatest) refuse(name, "1e-30 to 1e30");
  return value;
}

bool FamilyConfig::flag(std::string_view name, bool fallback) const {
  ask(name);
  return config_.flag(name).value_or(fallback);
}

std::string FamilyConfig::text(std::string_view name, std::string_view fallback) const {
  if (!has(name)) return std::string(fallback);
  const auto value = config_.string(name);
  if (!value) refuse(name, "text");
  return *value;
}

kernel::Activation FamilyConfig::activation(std::string_view name,
                                            std::string_view fallback) const {
  const auto found = kernel::find_activation(text(name, fallback));
  if (!found) refuse(name, kernel::activation_names());
  return *found;
}

bool FamilyConfig::is_null(std::string_view name) const {
  ask(name);
  return config_.is_null(name);
}

std::optional<std::vector<double>> FamilyConfig::numbers(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const std::string text = config_.spelling(name);
  const JsonValue list = parse_json_file(text, config_.path());
  std::vector<double> numbers;
  for (const JsonValue& item : list.items) {
    const auto number = item.is(JsonKind::kNumber) ? item.number() : std::nullopt;
    if (!number || !std::isfinite(*number)) refuse(name, "a list of numbers");
    numbers.push_back(*number);
  }
  if (!list.is(JsonKind::kArray)) refuse(name, "a list of numbers");
  return numbers;
}

std::optional<FamilyConfig> FamilyConfig::object(std::string_view name) const {
  ask(name);
  auto inner = config_.object(name);
  if (!inner) return std::nullopt;
  FamilyConfig found(*std::move(inner));
  // An object that is opened twice is asked by both.
  std::shared_ptr<Asked>& asked = asked_->objects[std::string(name)];
  if (asked) found.asked_ = asked;
  asked = found.asked_;
  return found;
}

void FamilyConfig::expect_flag(std::string_view name, bool value) const {
  if (flag(name, value) != value) {
    refuse(name, fmt::format("{}, the only supported value", value));
  }
}

void FamilyConfig::expect_text(std::string_view name, std::string_view value) const {
  if (text(name, value) != value) {
    refuse(name, fmt::format("\"{}\", the only supported value", value));
  }
}

void FamilyConfig::expect_number(std::string_view name, double value) const {
  if (!has(name)) return;
  if (number(name, value) != value) {
    refuse(name, fmt::format("{}, the only supported value", value));
  }
}

}  // namespace masque::model
