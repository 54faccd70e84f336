#include "surgery/vocabulary/vocabulary_plan.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"
#include "surgery/vocabulary/config_ids.hpp"
#include "surgery/vocabulary/trim_rules.hpp"
#include "surgery/vocabulary/vocabulary_files.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {

namespace {

/// Far above every vocabulary; its maps take 128 MiB.
constexpr std::uint64_t kMostRows = 1 << 24;

/// Of what a note lists.
constexpr std::size_t kNamed = 8;

[[noreturn]] void refuse(const VocabularyState& state, const std::string& message) {
  throw InputError(state.checkpoint.path(), message);
}

/// A row as messages call it: "4 [MASK]".
std::string shown(const VocabularyState& state, std::uint64_t row) {
  const std::string& token = state.names.token(row);
  return token.empty() ? fmt::format("{}", row) : fmt::format("{} {}", row, escape(token));
}

void append_row(VocabularyChange& change, const VocabularyState& state, std::uint64_t row) {
  change.from.push_back(row);
  change.tokens.push_back(state.names.token(row));
}

/// Grows to `rows`, rounded up.
void pad(VocabularyChange& change, const VocabularyState& state, std::uint64_t rows,
         std::uint64_t multiple) {
  if (multiple == 0)
    throw UsageError(fmt::format("{}: found 0, expected a number from 1", field("multiple")));
  if (rows > kMostRows || multiple > kMostRows) {
    refuse(state, fmt::format("{} rows in multiples of {}, expected at most {}", rows, multiple,
                              kMostRows));
  }
  const std::uint64_t size = round_up(rows, multiple);
  change.from.resize(size, VocabularyChange::kNew);
  change.tokens.resize(size);
}

std::vector<bool> special_rows(const VocabularyState& state) {
  std::vector<bool> special(state.rows);
  for (const std::string_view role : kTokenRoles) {
    const auto row = state.names.role(role);
    if (row && *row < state.rows) special[*row] = true;
  }
  for (std::uint64_t row = 0; row < state.rows; ++row)
    if (state.names.special(row)) special[row] = true;
  if (state.names.empty()) return special;
  // A class has special tokens that no file names. What no tokenizer can be made of has none.
  static_cast<void>(caught([&] {
    const auto tokenizer = text::Tokenizer::open(state.checkpoint.folder());
    for (std::uint64_t row = 0; row < std::min<std::uint64_t>(state.rows, tokenizer.size()); ++row)
      if (tokenizer.is_special(static_cast<TokenId>(row))) special[row] = true;
  }));
  return special;
}

VocabularyChange chosen_rows(const VocabularyState& state, const std::vector<bool>& chosen) {
  VocabularyChange change;
  for (std::uint64_t row = 0; row < state.rows; ++row) {
    if (chosen[row]) append_row(change, state, row);
  }
  if (change.from.empty()) refuse(state, "no row would be left");
  return change;
}

std::uint64_t row_of(const VocabularyState& state, const std::string& entry, bool as_id) {
  const auto row = as_id ? parse_unsigned(entry) : state.names.id(entry);
  if (!row && as_id)
    throw UsageError(fmt::format("found '{}', expected an id: a whole number", escape(entry)));
  if (!row) {
    check_editable(state.checkpoint, state.names);
    refuse(state,
           state.names.empty()
               ? fmt::format("'{}': no tokenizer file, expected an id", escape(entry))
               : fmt::format("'{}': no such token in {}", escape(entry), state.names.source()));
  }
  if (*row >= state.rows)
    refuse(state, fmt::format("'{}': found row {}, expected a row below {}", escape(entry), *row,
                              state.rows));
  return *row;
}

/// "8 [MASK], 9 a and 5 more".
std::string shown_rows(const VocabularyState& state, const std::vector<std::uint64_t>& rows) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(rows.size(), kNamed); ++i)
    names.push_back(shown(state, rows[i]));
  return fmt::format(
      "{}{}", fmt::join(names, ", "),
      rows.size() > kNamed ? fmt::format(" and {} more", rows.size() - kNamed) : std::string());
}

/// Adds those rows that merges pass through on the way to a chosen one; returns them.
std::vector<std::uint64_t> add_passed(const TrimRules& rules, std::vector<bool>& chosen) {
  std::vector<bool> passed(chosen.size());
  for (std::uint64_t row = 0; row < chosen.size(); ++row)
    if (chosen[row])
      for (const std::uint64_t other : rules.path_of(row)) passed[other] = true;
  std::vector<std::uint64_t> added;
  for (std::uint64_t row = 0; row < chosen.size(); ++row) {
    if (!passed[row] || chosen[row]) continue;
    chosen[row] = true;
    added.push_back(row);
  }
  return added;
}

/// Removes the chosen rows whose merges pass through one that is not chosen; returns them.
std::vector<std::uint64_t> remove_made(const VocabularyState& state, const TrimRules& rules,
                                       std::vector<bool>& chosen) {
  const std::vector<bool> special = special_rows(state);
  std::vector<std::uint64_t> removed;
  for (std::uint64_t row = 0; row < chosen.size(); ++row) {
    if (!chosen[row] || special[row]) continue;
    const std::vector<std::uint64_t> path = rules.path_of(row);
    if (std::ranges::any_of(path, [&](std::uint64_t other) { return !chosen[other]; }))
      removed.push_back(row);
  }
  for (const std::uint64_t row : removed) chosen[row] = false;
  return removed;
}

/// What merges ask for besides the chosen rows.
std::vector<std::uint64_t> apply_merges(const VocabularyState& state, const TrimRules& rules,
                                        TokenList::Passed policy, std::vector<bool>& chosen) {
  if (!rules.has_merges()) return {};
  const bool keep = policy == TokenList::Passed::kKeep;
  std::vector<std::uint64_t> rows =
      keep ? add_passed(rules, chosen) : remove_made(state, rules, chosen);
  if (!rows.empty()) {
    const bool one = rows.size() == 1;
    state.notes.push_back(fmt::format(
        "{} {}: {}", counted(rows.size(), "token"),
        keep ? fmt::format("{} also kept, because merges pass through {} to remaining tokens",
                           one ? "is" : "are", one ? "it" : "them")
             : fmt::format("{} also removed, because merges make {} from removed tokens",
                           one ? "is" : "are", one ? "it" : "them"),
        shown_rows(state, rows)));
  }
  return rows;
}

void note_lost_bytes(const VocabularyState& state, const TrimRules& rules,
                     const std::vector<bool>& chosen) {
  if (std::string note = lost_bytes_note(rules, chosen); !note.empty())
    state.notes.push_back(std::move(note));
}

}  // namespace

VocabularyChange all_rows(const VocabularyState& state) {
  VocabularyChange change;
  change.from.reserve(state.rows);
  change.tokens.reserve(state.rows);
  for (std::uint64_t row = 0; row < state.rows; ++row) append_row(change, state, row);
  return change;
}

std::vector<std::uint64_t> rows_of(const VocabularyState& state, const TokenList& list) {
  const bool numbers = std::ranges::all_of(
      list.entries, [](const std::string& entry) { return parse_unsigned(entry).has_value(); });
  const bool as_ids =
      list.as == TokenList::As::kIds || (list.as == TokenList::As::kAuto && numbers);
  std::vector<std::uint64_t> rows;
  rows.reserve(list.entries.size());
  std::vector<bool> listed(state.rows);
  for (const std::string& entry : list.entries) {
    rows.push_back(row_of(state, entry, as_ids));
    if (listed[rows.back()]) refuse(state, fmt::format("'{}' is listed twice", escape(entry)));
    listed[rows.back()] = true;
  }
  const auto is_token = [&](const std::string& entry) { return state.names.id(entry).has_value(); };
  if (list.as == TokenList::As::kAuto && as_ids && std::ranges::any_of(list.entries, is_token)) {
    state.notes.emplace_back(
        fmt::format("the list is read as ids, but some entries are tokens too: use {} tokens to "
                    "read it as tokens",
                    field("as")));
  }
  return rows;
}

void check_token(const VocabularyState& state, const std::string& token) {
  if (token.empty()) refuse(state, "found an empty token, expected a name");
  if (!valid_utf8(token))
    refuse(state, fmt::format("token '{}': not valid UTF-8, which tokenizer files require",
                              escape(token)));
  // Lines of vocab.txt would fall apart, or lose their end.
  if (token.find_first_of("\n\r") != std::string::npos)
    refuse(state, fmt::format("token '{}': contains a line end, which tokenizer files do not allow",
                              escape(token)));
}

VocabularyChange plan_add(const VocabularyState& state, const std::vector<std::string>& tokens,
                          bool skip_existing, std::uint64_t multiple) {
  if (state.names.empty())
    refuse(state, fmt::format("no tokenizer file to add tokens to: {} N adds rows without tokens",
                              field("count")));
  VocabularyChange change = all_rows(state);
  std::uint64_t next = std::min<std::uint64_t>(state.names.size(), state.rows);
  std::unordered_set<std::string> seen;
  std::vector<std::string> there;
  for (const std::string& token : tokens) {
    check_token(state, token);
    if (!seen.insert(token).second)
      refuse(state, fmt::format("'{}' is listed twice", escape(token)));
    if (const auto id = state.names.id(token)) {
      if (!skip_existing) {
        refuse(state,
               fmt::format(
                   "'{}' is already a token, with id {}: use {} skip to ignore existing tokens",
                   escape(token), *id, field("existing")));
      }
      there.push_back(escape(token));
      continue;
    }
    if (next == change.from.size()) {
      change.from.emplace_back();
      change.tokens.emplace_back();
    }
    change.from[next] = VocabularyChange::kNew;
    change.tokens[next] = token;
    ++next;
  }
  if (!there.empty()) {
    state.notes.push_back(fmt::format("existing token{} skipped: {}", there.size() == 1 ? "" : "s",
                                      fmt::join(there, " ")));
  }
  pad(change, state, change.from.size(), multiple);
  return change;
}

VocabularyChange plan_append(const VocabularyState& state, std::uint64_t count,
                             std::uint64_t multiple) {
  if (!state.names.empty() && state.checkpoint.is_folder()) {
    refuse(state, fmt::format("{} has tokens for the rows: give the new tokens, or use resize to "
                              "add rows without tokens",
                              state.names.source()));
  }
  VocabularyChange change = all_rows(state);
  if (count > kMostRows)
    refuse(state, fmt::format("{} {}, expected at most {}", field("count"), count, kMostRows));
  pad(change, state, state.rows + count, multiple);
  return change;
}

VocabularyChange plan_remove(const VocabularyState& state, const TokenList& list) {
  const std::vector<bool> special = special_rows(state);
  std::vector<bool> chosen(state.rows, true);
  for (const std::uint64_t row : rows_of(state, list)) {
    if (special[row]) {
      refuse(state, fmt::format("{} is a special token of the tokenizer and cannot be removed",
                                shown(state, row)));
    }
    chosen[row] = false;
  }
  const auto listed = static_cast<std::size_t>(std::ranges::count(chosen, false));
  const TrimRules rules(state);
  const std::vector<std::uint64_t> passed = apply_merges(state, rules, list.passed, chosen);
  if (list.passed == TokenList::Passed::kKeep && listed > 0 && passed.size() == listed) {
    refuse(state, fmt::format("merges pass through {} to remaining tokens: {} remove removes these "
                              "as well",
                              shown_rows(state, passed), field("passed")));
  }
  note_lost_bytes(state, rules, chosen);
  return chosen_rows(state, chosen);
}

VocabularyChange plan_keep(const VocabularyState& state, const TokenList& list) {
  std::vector<bool> chosen(state.rows);
  for (const std::uint64_t row : rows_of(state, list)) chosen[row] = true;
  std::vector<bool> special = special_rows(state);
  for (const std::uint64_t row : ids_named_by_configs(state.checkpoint, state.rows))
    special[row] = true;
  std::vector<std::uint64_t> kept;
  for (std::uint64_t row = 0; row < state.rows; ++row) {
    if (!special[row] || chosen[row]) continue;
    chosen[row] = true;
    kept.push_back(row);
  }
  if (!kept.empty()) {
    state.notes.push_back(fmt::format("{} special token{} also kept: {}", kept.size(),
                                      kept.size() == 1 ? " is" : "s are", shown_rows(state, kept)));
  }
  const TrimRules rules(state);
  std::size_t bytes = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto row = rules.byte_row(static_cast<unsigned char>(byte));
    if (!row || chosen[*row]) continue;
    chosen[*row] = true;
    ++bytes;
  }
  if (bytes > 0) {
    state.notes.push_back(fmt::format("{} of single bytes {} also kept", counted(bytes, "token"),
                                      bytes == 1 ? "is" : "are"));
  }
  if (const auto lowest = rules.lowest_piece(); lowest && !chosen[*lowest]) {
    chosen[*lowest] = true;
    state.notes.push_back(fmt::format(
        "the piece with the lowest score, which sets the cost of unknown characters, is also "
        "kept: {}",
        shown(state, *lowest)));
  }
  apply_merges(state, rules, list.passed, chosen);
  return chosen_rows(state, chosen);
}

VocabularyChange plan_permute(const VocabularyState& state, const TokenList& list) {
  VocabularyChange change;
  std::vector<bool> listed(state.rows);
  for (const std::uint64_t row : rows_of(state, list)) {
    append_row(change, state, row);
    listed[row] = true;
  }
  for (std::uint64_t row = 0; row < state.rows; ++row) {
    if (listed[row]) continue;
    if (state.names.empty() || state.names.assigned(row)) {
      refuse(state, fmt::format("row {} is missing from the list, which has {} of {} rows",
                                shown(state, row), list.entries.size(), state.rows));
    }
    append_row(change, state, row);
  }
  return change;
}

VocabularyChange plan_resize(const VocabularyState& state, std::uint64_t rows,
                             std::uint64_t multiple) {
  VocabularyChange change = all_rows(state);
  if (rows == 0) refuse(state, "0 rows, expected at least 1");
  pad(change, state, rows, multiple);
  for (std::uint64_t row = change.from.size(); row < state.rows; ++row) {
    if (!state.names.assigned(row)) continue;
    refuse(state, fmt::format("{} rows would cut off token {}: use remove to delete tokens",
                              change.from.size(), shown(state, row)));
  }
  return change;
}

}  // namespace masque::surgery
