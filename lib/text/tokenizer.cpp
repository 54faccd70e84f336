#include "text/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace masque::text {

namespace {

/// Lengths of a pair after cutting the longer one first.
std::pair<std::size_t, std::size_t> longest_first(std::size_t a, std::size_t b, std::size_t most) {
  std::size_t n1 = std::min(a, b);
  std::size_t n2 = n1 > most ? n1 : std::max(n1, most - n1);
  if (n1 + n2 > most) {
    n1 = most / 2;
    n2 = n1 + most % 2;
  }
  return a > b ? std::pair{n2, n1} : std::pair{n1, n2};
}

/// Offsets in bytes to offsets in code points, as Hugging Face converts them: an empty span at the
/// very end keeps its bytes.
void to_code_points(std::string_view text, Encoding& encoding) {
  if (count_code_points(text) == text.size()) return;
  std::vector<std::uint32_t> character(text.size());
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++count;
    character[i] = count;
  }
  for (Span& span : encoding.offsets) {
    if (span.begin >= text.size()) continue;
    if (span.end < text.size()) {
      span = {character[span.begin], character[span.end]};
    } else {
      span = {character[span.begin], character[span.end - 1] + 1};
    }
  }
}

/// The number of the word that follows.
std::uint32_t next_word(const Encoding& text) {
  return text.words.empty() ? 0 : text.words.back() + 1;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  added_ = AddedTokens(std::move(parts_.added), *parts_.steps.model, parts_.steps.normalizer.get(),
                       parts_.warnings);
  parts_.added.clear();
  roles_ = find_roles([this](std::string_view token) { return find(token); }, parts_.role_names);
}

void Tokenizer::encode_words(AlignedText part, Encoding& out, std::uint32_t type_id) const {
  if (part.text.empty()) return;
  const bool first = part.origin.front().begin == 0;
  std::vector<AlignedText> words;
  words.push_back(std::move(part));
  if (parts_.steps.pre_tokenizer) parts_.steps.pre_tokenizer->split(words, first);
  const TokenModel& model = *parts_.steps.model;
  std::vector<Piece> pieces;
  for (const AlignedText& word : words) {
    const std::uint32_t number = next_word(out);
    pieces.clear();
    model.tokenize(word.text, pieces);
    for (const Piece& piece : pieces) {
      std::string token(
          parts_.unknown_as_text && piece.id == *parts_.unknown_as_text
              ? std::string_view(word.text).substr(piece.begin, piece.end - piece.begin)
              : model.token(piece.id));
      out.push_back(piece.id, std::move(token), word.span(piece.begin, piece.end), type_id, false,
                    number);
    }
  }
}

void Tokenizer::encode_part(AlignedText part, bool special_in_text, Encoding& out,
                            std::uint32_t type_id) const {
  if (parts_.steps.normalizer) parts_.steps.normalizer->apply(part);
  if (!added_.any(true)) return encode_words(std::move(part), out, type_id);
  std::vector<AddedTokens::Part> split;
  added_.split(part.text, true, special_in_text, split);
  for (const AddedTokens::Part& piece : split) {
    if (piece.token == nullptr) {
      encode_words(part.part(piece.begin, piece.end), out, type_id);
    } else {
      out.push_back(piece.token->id, part.text.substr(piece.begin, piece.end - piece.begin),
                    part.span(piece.begin, piece.end), type_id, false, next_word(out));
    }
  }
}

Encoding Tokenizer::encode_text(std::string_view text, const EncodeOptions& options,
                                std::uint32_t type_id) const {
  Encoding out;
  std::vector<AddedTokens::Part> split;
  added_.split(text, false, options.special_in_text, split);
  for (const AddedTokens::Part& part : split) {
    const std::string_view piece = text.substr(part.begin, part.end - part.begin);
    const auto offset = static_cast<std::uint32_t>(part.begin);
    if (part.token == nullptr) {
      encode_part(AlignedText::from(piece, offset), options.special_in_text, out, type_id);
    } else {
      out.push_back(part.token->id, std::string(piece),
                    {offset, static_cast<std::uint32_t>(part.end)}, type_id, false, next_word(out));
    }
  }
  if (options.unit == OffsetUnit::kCodePoint) to_code_points(text, out);
  return out;
}

Encoding Tokenizer::finish(std::vector<Encoding> texts, const EncodeOptions& options) const {
  if (options.truncation) {
    Truncation truncation = *options.truncation;
    if (options.special && parts_.post_processor) {
      const std::size_t added = parts_.post_processor->added(texts.size() == 2);
      if (added > truncation.max_length) {
        throw UsageError(fmt::format("truncation to {} tokens, expected at least the template's {}",
                                     truncation.max_length, added));
      }
      truncation.max_length -= added;
    }
    truncate(texts[0], texts.size() == 2 ? &texts[1] : nullptr, truncation);
  }
  if (parts_.post_processor) parts_.post_processor->process(texts, options.special);
  Encoding out = std::move(texts[0]);
  for (std::size_t i = 1; i < texts.size(); ++i) out.append(texts[i]);
  return out;
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<Encoding> texts;
  texts.push_back(encode_text(text, options, 0));
  return finish(std::move(texts), options);
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  std::vector<Encoding> texts;
  texts.push_back(encode_text(first, options, 0));
  texts.push_back(encode_text(second, options, 1));
  return finish(std::move(texts), options);
}

IdEncoder Tokenizer::id_encoder(const EncodeOptions& options) const {
  return IdEncoder(*this, options);
}

std::string_view Tokenizer::token(TokenId id) const {
  const AddedToken* added = added_.find(id);
  return added != nullptr ? std::string_view(added->shown) : parts_.steps.model->token(id);
}

std::optional<TokenId> Tokenizer::find(std::string_view token) const {
  const AddedToken* added = added_.find(token);
  return added != nullptr ? std::optional(added->id) : parts_.steps.model->find(token);
}

std::size_t Tokenizer::size() const {
  return std::max(parts_.steps.model->size(), added_.end_of_ids());
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* added = added_.find(id);
  return added != nullptr && added->special;
}

bool Tokenizer::begins_word(TokenId id) const {
  if (added_.find(id) != nullptr || parts_.word_mark == WordMark::kEveryToken) return true;
  const bool marked = token(id).starts_with(parts_.word_prefix);
  return marked == (parts_.word_mark == WordMark::kSpace);
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    const std::string_view text = token(id);
    // By what is shown, as Hugging Face: a special token that normalizing changes is not left out.
    if (text.empty() || (skip_special && added_.is_special(text))) continue;
    tokens.emplace_back(text);
  }
  if (parts_.decoder) parts_.decoder->decode(tokens);
  std::string out;
  for (const std::string& token : tokens) {
    if (!parts_.decoder && &token != tokens.data()) out += ' ';
    out += token;
  }
  if (parts_.cleans_up) clean_up_spaces(out, CleanUp::kTransformers);
  return out;
}

void truncate(Encoding& first, Encoding* second, const Truncation& truncation) {
  const std::size_t most = truncation.max_length;
  const std::size_t total = first.size() + (second == nullptr ? 0 : second->size());
  if (total <= most) return;
  if (most == 0) {
    first.truncate(0, truncation.from_left);
    if (second != nullptr) second->truncate(0, truncation.from_left);
    return;
  }
  if (truncation.strategy == TruncationStrategy::kLongestFirst) {
    if (second == nullptr) {
      first.truncate(most, truncation.from_left);
      return;
    }
    const auto [n1, n2] = longest_first(first.size(), second->size(), most);
    first.truncate(n1, truncation.from_left);
    second->truncate(n2, truncation.from_left);
    return;
  }
  const bool cut_first = truncation.strategy == TruncationStrategy::kOnlyFirst;
  Encoding* target = cut_first ? &first : second;
  if (target == nullptr) throw UsageError("truncation: one text, expected a second one to cut");
  const std::size_t excess = total - most;
  if (target->size() <= excess) {
    throw InputError(
        fmt::format("truncation: the {} text has {} tokens, expected more than {} to cut",
                    cut_first ? "first" : "second", target->size(), excess));
  }
  target->truncate(target->size() - excess, truncation.from_left);
}

}  // namespace masque::text
