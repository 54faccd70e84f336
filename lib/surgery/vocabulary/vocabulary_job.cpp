#include "surgery/vocabulary/vocabulary_job.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kGone = VocabularyChange::kNew;
constexpr std::array<std::string_view, 7> kMovedRoles{
    "mask_token", "cls_token", "sep_token", "pad_token", "unk_token", "bos_token", "eos_token"};

}  // namespace

TokenMoves::TokenMoves(const TokenNames& before, const VocabularyChange& change,
                       const std::string& path)
    : before_(&before), change_(&change) {
  MASQUE_CHECK(change.from.size() == change.tokens.size());
  to_.assign(before.size(), kGone);
  for (std::uint64_t id = 0; id < change.from.size(); ++id) {
    const std::uint64_t old = change.from[id];
    const std::string& text = change.tokens[id];
    bool copied = false;
    if (old != VocabularyChange::kNew) {
      if (old >= to_.size()) to_.resize(old + 1, kGone);
      copied = to_[old] != kGone;
      if (!copied) to_[old] = id;
    }
    if (text.empty()) continue;
    if (old == VocabularyChange::kNew || copied || !before.assigned(old)) {
      added_.push_back({id, text});
    } else if (before.token(old) != text) {
      renamed_.push_back({id, text});
    }
  }
  check_tokens(path);
  for (std::uint64_t old = 0; old < before.size(); ++old) {
    const std::string& token = before.token(old);
    if (token.empty() || before.id(token) != old) continue;
    const std::string_view now = to_[old] == kGone ? std::string_view() : change.tokens[to_[old]];
    if (now != token) leaving_.emplace(token, now);
  }
  for (const std::string_view role : kMovedRoles) {
    const auto id = before.role(role);
    if (id) roles_.push_back({role, *id});
    if (!id || !text_after(before.token(*id)).empty()) continue;
    throw InputError(path, fmt::format("token '{}' is the {} and cannot be removed",
                                       escape(before.token(*id)), role));
  }
}

void TokenMoves::check_tokens(const std::string& path) const {
  // Equal lines of a vocab.txt may stay as they are: the last one counts, before and after.
  std::unordered_map<std::string_view, std::uint64_t> ids;
  ids.reserve(change_->tokens.size());
  for (std::uint64_t id = 0; id < change_->tokens.size(); ++id) {
    const std::string& token = change_->tokens[id];
    if (token.empty()) continue;
    const auto [place, is_new] = ids.emplace(token, id);
    if (is_new) continue;
    const auto was_there = [&](std::uint64_t other) {
      const std::uint64_t old = change_->from[other];
      return old != VocabularyChange::kNew && before_->token(old) == token;
    };
    if (!was_there(id) || !was_there(place->second) ||
        change_->from[id] < change_->from[place->second]) {
      throw InputError(path, fmt::format("token '{}' would have two ids, {} and {}", escape(token),
                                         place->second, id));
    }
    place->second = id;
  }
}

std::optional<TokenMoves::Token> TokenMoves::follow(std::uint64_t old, std::string_view own,
                                                    const std::string& file) {
  const auto to = id_after(old);
  if (!before_->assigned(old)) return to ? std::optional(Token{*to, own}) : std::nullopt;
  const std::string& known = before_->token(old);
  const std::string_view now = to ? std::string_view(change_->tokens[*to]) : std::string_view();
  if (own == known) {
    if (!to || (now.empty() && !known.empty())) return std::nullopt;
    return Token{*to, now};
  }
  const std::string differ = fmt::format("id {} is '{}', but {} says '{}'", old, escape(own),
                                         before_->source(), escape(known));
  if (to != old || now != known)
    throw InputError(file, differ + ": expected files that agree on the changed tokens");
  if (reported_.insert(file).second) notes_.push_back(fmt::format("{}: {}", file, differ));
  return Token{*to, own};
}

std::optional<std::uint64_t> TokenMoves::id_after(std::uint64_t old) const {
  if (old >= to_.size() || to_[old] == kGone) return std::nullopt;
  return to_[old];
}

bool TokenMoves::is_new(std::uint64_t id) const {
  return std::ranges::binary_search(added_, id, {}, &Token::id);
}

std::string_view TokenMoves::text_after(std::string_view token) const {
  const auto found = leaving_.find(token);
  return found == leaving_.end() ? token : found->second;
}

std::string VocabularyJob::path(const std::string& name) const {
  return join(edit.checkpoint().folder(), name);
}

std::optional<JsonText> read_json_text(const VocabularyJob& job, const std::string& name) {
  auto text = job.edit.file_text(name);
  if (!text) return std::nullopt;
  JsonText out{name, job.path(name), std::move(*text), {}};
  out.root = parse_json_file(out.text, out.path);
  if (!out.root.is(JsonKind::kObject)) throw InputError(out.path, "expected a JSON object");
  return out;
}

void write_splice(VocabularyJob& job, const JsonText& file, const TextSplice& splice) {
  if (!splice.empty()) job.edit.set_file(file.name, splice.apply(file.text));
}

std::uint64_t json_id(const JsonValue& value, const std::string& path) {
  const auto id = value.integer();
  if (!id) throw InputError(path, fmt::format("byte {}: expected an id", value.begin));
  return *id;
}

}  // namespace masque::surgery
