// Outputs that would replace what the same command reads or writes.
#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"

namespace masque::cli {

namespace {

/// Whether both are one file that is there.
bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;  // of what is not there: not the same
  return std::filesystem::equivalent(a, b, ignored);
}

/// Whether both will be one file, by their names.
bool will_be_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

/// Whether a model's or a tokenizer's folder has files of such names.
bool is_model_file(const std::string& path) {
  constexpr std::array<std::string_view, 16> kBeginnings{
      "config",        "tokenizer",      "vocab",        "merges",
      "model",         "pytorch_model",  "tf_model",     "flax_model",
      "spiece",        "special_tokens", "added_tokens", "generation_config",
      "sentencepiece", "training.",      "bert_",        "generator"};
  const std::string name = base_name(path);
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Whether the value may name a file: not that of "--seed N".
bool may_be_path(const Entry& entry, const std::string& value) {
  return !value.empty() && value != "-" && (entry.positional || entry.value.size() > 2);
}

/// The files that a value may name: itself, and what follows a colon or is in parentheses, as in
/// join:FILE and explicit(FILE).
std::vector<std::string> paths_in(const std::string& value) {
  std::vector<std::string> paths{value};
  if (const auto colon = value.find(':'); colon != std::string::npos)
    paths.push_back(value.substr(colon + 1));
  for (std::size_t open = value.find('('); open != std::string::npos;
       open = value.find('(', open + 1)) {
    const std::size_t end = value.find_first_of(",)", open);
    if (end != std::string::npos) paths.push_back(value.substr(open + 1, end - open - 1));
  }
  return paths;
}

}  // namespace

Command& Command::writes(std::vector<std::string> options, std::vector<std::string> suffixes) {
  suffixes.emplace_back();  // the file itself
  for (std::string& option : options) writes_.push_back({std::move(option), suffixes});
  return *this;
}

void Command::refuse_overwriting(const Typed& typed, const std::vector<std::string>& more) const {
  if (writes_.empty()) return;
  std::vector<GivenValue> given;
  for (const Entry& entry : entries_) {
    if (entry.is_flag()) continue;
    for (const std::string& value : given_values(entry, typed)) given.emplace_back(&entry, value);
    if (!entry.positional || !entry.repeated) continue;
    for (const std::string& value : more) given.emplace_back(&entry, value);
  }
  for (const auto& [entry, value] : given) {
    const auto output = std::ranges::find(writes_, key_of(*entry), &Written::option);
    if (output == writes_.end()) continue;
    for (const std::string& suffix : output->suffixes)
      refuse_overwriting(*entry, value + suffix, given);
  }
}

void Command::refuse_overwriting(const Entry& entry, const std::string& path,
                                 const std::vector<GivenValue>& given) const {
  std::error_code ignored;
  const bool is_there = std::filesystem::is_regular_file(path, ignored);
  const std::string name = entry.spellings().front();
  if (is_there && is_same(path, "/dev/stdin"))
    throw UsageError(
        fmt::format("{} names the file that standard input reads, expected another one", name));
  for (const auto& [other, value] : given) {
    if (other == &entry || !may_be_path(*other, value)) continue;
    const std::string read = other->spellings().front();
    const auto refuse_same = [&] {
      throw UsageError(fmt::format("{} and {} name the same file, expected two", name, read));
    };
    const bool writes_too =
        std::ranges::find(writes_, key_of(*other), &Written::option) != writes_.end();
    if (writes_too && will_be_same(path, value)) refuse_same();
    if (!is_there) continue;
    for (const std::string& one : paths_in(value)) {
      if (is_same(path, one)) refuse_same();
    }
    if (is_model_file(path) && is_same(path, join(value, base_name(path))))
      throw UsageError(fmt::format("{} names a file of {}, expected another one", name, read));
  }
}

}  // namespace masque::cli
