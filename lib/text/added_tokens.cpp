#include "text/added_tokens.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(last_code_point(text));
}

bool starts_with_word(std::string_view text) {
  char32_t code_point = 0;
  return decode_utf8(text, code_point) > 0 && is_word(code_point);
}

/// Where the white space at the end of a text begins.
std::size_t trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t begin = last_begin(text.substr(0, end));
    char32_t code_point = 0;
    decode_utf8(text.substr(begin), code_point);
    if (!is_white_space(code_point)) break;
    end = begin;
  }
  return end;
}

/// Bytes of white space at the start of a text.
std::size_t leading_space(std::string_view text) {
  std::size_t size = 0;
  for (;;) {
    char32_t code_point = 0;
    const int bytes = decode_utf8(text.substr(size), code_point);
    if (bytes == 0 || !is_white_space(code_point)) return size;
    size += static_cast<std::size_t>(bytes);
  }
}

}  // namespace

void TextTrie::add(std::string_view text, std::size_t value) {
  if (text.empty()) return;
  std::uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    auto& children = nodes_[at].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [byte](const auto& entry) { return entry.first == byte; });
    if (child != children.end()) {
      at = child->second;
      continue;
    }
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    if (at == 0) {
      first_[byte] = added;
      only_first_ = byte;
      ++first_count_;
    }
    children.emplace_back(byte, added);
    nodes_.emplace_back();
    at = added;
  }
  if (nodes_[at].value < 0) nodes_[at].value = static_cast<std::int64_t>(value);
}

bool TextTrie::find(std::string_view text, std::size_t from, Match& match) const {
  if (first_count_ == 0) return false;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (first_count_ == 1) {
      const void* place = std::memchr(text.data() + i, only_first_, text.size() - i);
      if (place == nullptr) return false;
      i = static_cast<std::size_t>(static_cast<const char*>(place) - text.data());
    }
    std::uint32_t at = first_[static_cast<unsigned char>(text[i])];
    if (at == 0) continue;
    std::int64_t best = nodes_[at].value;
    std::size_t end = i + 1;
    for (std::size_t k = i + 1; k < text.size(); ++k) {
      const auto& children = nodes_[at].children;
      const auto byte = static_cast<unsigned char>(text[k]);
      const auto child = std::find_if(children.begin(), children.end(),
                                      [byte](const auto& entry) { return entry.first == byte; });
      if (child == children.end()) break;
      at = child->second;
      if (nodes_[at].value < 0) continue;
      best = nodes_[at].value;
      end = k + 1;
    }
    if (best < 0) continue;
    match = {i, end, static_cast<std::size_t>(best)};
    return true;
  }
  return false;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const TokenModel& model,
                         const Normalizer* normalizer, std::vector<std::string>& warnings) {
  TokenId highest = -1;
  TokenId vocabulary = -1;
  int renamed = 0;
  std::string first;  // of the renamed ones
  for (AddedToken& token : tokens) {
    if (token.content.empty() || by_content_.contains(token.content)) continue;
    const TokenId declared = token.id;
    if (const auto known = model.find(token.content)) {
      token.id = *known;
    } else {
      if (vocabulary < 0) vocabulary = static_cast<TokenId>(model.count());
      token.id = std::max(vocabulary, highest + 1);
    }
    highest = std::max(highest, token.id);
    if (declared >= 0 && declared != token.id && renamed++ == 0) {
      first = fmt::format("'{}' has {}, not {}", escape(token.content), token.id, declared);
    }
    token.shown = token.content;
    by_content_.emplace(token.content, tokens_.size());
    by_id_.insert_or_assign(token.id, tokens_.size());
    tokens_.push_back(std::move(token));
  }
  if (renamed > 0) {
    warnings.push_back(
        fmt::format("{} added tokens have other ids than in the file: {}", renamed, first));
  }
  for (const bool special : {true, false}) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      AddedToken& token = tokens_[i];
      if (token.special != special || !token.found) continue;
      if (!token.normalized) {
        raw_.add(token.content, i);
      } else {
        AlignedText content = AlignedText::from(token.content);
        if (normalizer != nullptr) normalizer->apply(content);
        cooked_.add(content.text, i);
        token.shown = content.text;
      }
    }
  }
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

bool AddedTokens::is_special(std::string_view content) const {
  const AddedToken* token = find(content);
  return token != nullptr && token->special;
}

std::size_t AddedTokens::end_of_ids() const {
  TokenId end = 0;
  for (const AddedToken& token : tokens_) end = std::max(end, token.id + 1);
  return static_cast<std::size_t>(end);
}

void AddedTokens::split(std::string_view text, bool normalized, bool special_in_text,
                        std::vector<Part>& out) const {
  out.clear();
  const TextTrie& trie = normalized ? cooked_ : raw_;
  std::size_t done = 0;
  TextTrie::Match match;
  for (std::size_t from = 0; trie.find(text, from, match); from = match.end) {
    const AddedToken& token = tokens_[match.value];
    if (token.special && !special_in_text) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, match.begin)) || starts_with_word(text.substr(match.end)))) {
      continue;
    }
    std::size_t begin = match.begin;
    std::size_t end = match.end;
    // White space that an earlier token took stays there.
    if (token.lstrip)
      begin =
          std::max(done, done + trailing_space(text.substr(done, begin > done ? begin - done : 0)));
    if (token.rstrip) end += leading_space(text.substr(end));
    if (done < begin) out.push_back({done, begin, nullptr});
    out.push_back({begin, end, &token});
    done = end;
  }
  if (done < text.size()) out.push_back({done, text.size(), nullptr});
}

}  // namespace masque::text
