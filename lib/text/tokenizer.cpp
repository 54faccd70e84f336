#include "text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "text/step/bert.hpp"
#include "text/step/post_processor.hpp"
#include "text/step/rewriter.hpp"

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

/// Adds to `warnings` the tokens of the template whose ids are not those of the vocabulary.
void note_template_ids(const Tokenizer& tokenizer, std::vector<std::string>& warnings) {
  const PostProcessor* processor = tokenizer.parts().post_processor.get();
  if (processor == nullptr) return;
  std::vector<std::string> looked_at;
  for (const std::size_t texts : {1U, 2U}) {
    std::vector<Encoding> parts(texts);
    processor->process(parts, true);
    for (const Encoding& part : parts) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::string& token = part.tokens[i];
        const auto own = tokenizer.find(token);
        if (own == part.ids[i] || std::ranges::find(looked_at, token) != looked_at.end()) continue;
        looked_at.push_back(token);
        const std::string_view is = tokenizer.token(part.ids[i]);
        warnings.push_back(fmt::format(
            "the template puts the id {} ({}) for '{}', which {}: as in transformers, {} counts",
            part.ids[i], is.empty() ? "of no token" : fmt::format("'{}'", escape(is)),
            escape(token),
            own ? fmt::format("has the id {} in the vocabulary", *own) : "the vocabulary lacks",
            part.ids[i]));
      }
    }
  }
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  added_ = AddedTokens(std::move(parts_.added), *parts_.steps.model, parts_.steps.normalizer.get(),
                       parts_.warnings);
  parts_.added.clear();
  roles_ = find_roles([this](std::string_view token) { return find(token); }, parts_.role_names);
  const bool names_mask =
      std::ranges::any_of(parts_.role_names, [](const auto& role) { return role.first == "mask"; });
  if (!names_mask && parts_.mask_of_model &&
      static_cast<std::size_t>(*parts_.mask_of_model) < size())
    roles_.mask = parts_.mask_of_model;
  note_template_ids(*this, parts_.warnings);
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
    throw_if_interrupted();
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
    throw_if_interrupted();
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
    throw_if_interrupted();
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
  const PostProcessor* const processor = options.target && parts_.target_processor
                                             ? parts_.target_processor.get()
                                             : parts_.post_processor.get();
  if (options.truncation) {
    Truncation truncation = *options.truncation;
    if (options.special && processor != nullptr) {
      const std::size_t added = processor->added(texts.size() == 2);
      if (added > truncation.max_length) {
        throw UsageError(fmt::format("truncation to {} tokens, expected at least the template's {}",
                                     truncation.max_length, added));
      }
      truncation.max_length -= added;
    }
    truncate(texts[0], texts.size() == 2 ? &texts[1] : nullptr, truncation);
  }
  if (processor != nullptr) processor->process(texts, options.special);
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
  SparseLooks looks;
  for (const TokenId id : ids) {
    looks.step();
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

namespace {

class Lowercased final : public Normalizer {
 public:
  explicit Lowercased(std::shared_ptr<const Normalizer> next) : next_(std::move(next)) {}

  void apply(AlignedText& text) const override {
    lower(text);
    check_growth(text);
    if (next_ != nullptr) next_->apply(text);
  }

 private:
  std::shared_ptr<const Normalizer> next_;
};

}  // namespace

Tokenizer lowercased(const Tokenizer& tokenizer) {
  TokenizerParts parts = tokenizer.parts();
  parts.added = tokenizer.added().tokens();
  parts.steps.normalizer = std::make_shared<Lowercased>(parts.steps.normalizer);
  // A fast encoder does not know of the new step.
  parts.make_fast = nullptr;
  parts.warnings.clear();
  return Tokenizer(std::move(parts));
}

namespace {

/// Letters with and without accents, digits, spaces, signs and scripts that steps treat
/// differently.
constexpr std::array<std::string_view, 5> kLines{
    "The quick brown fox doesn't jump over 1,234.50 lazy dogs!  (It naps...)",
    " Café naïve coöperate İstanbul Straße ﬁne e\u0301 \u00a0 \u200b x\t y",
    "我爱北京 東京 한국어 Привет мир שלום مرحبا हिन्दी ไทย",
    "https://example.org/a_b?c=d&e=%20 C++20 #tag @name 🙂 👩‍🔬 ½ ™",
    "[CLS] <s> </s> <mask> [MASK] <|endoftext|> ##ing ▁word Ġword"};

}  // namespace

std::string tokenizer_digest(const Tokenizer& tokenizer) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  // Lengths in front: "a", "bc" is not "ab", "c".
  const auto add_size = [&](std::size_t size) {
    const std::uint64_t number = size;
    hasher->add(std::as_bytes(std::span(&number, 1)));
  };
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const std::string_view token = tokenizer.token(static_cast<TokenId>(i));
    add_size(token.size());
    hasher->add(as_bytes(token));
  }
  IdEncoder encoder = tokenizer.id_encoder({});
  for (const std::string_view line : kLines) {
    std::vector<TokenId> ids;
    // Without an unknown token the ids so far are no result.
    if (input_error_message([&] { encoder.encode(line, ids); })) ids = {-1};
    add_size(ids.size());
    hasher->add(std::as_bytes(std::span(ids)));
  }
  return hasher->digest();
}

bool read_alike(const Tokenizer& a, const Tokenizer& b) {
  const auto around = [](const Tokenizer& tokenizer) {
    return tokenizer.encode("", {.special = true}).ids;
  };
  return around(a) == around(b) && tokenizer_digest(a) == tokenizer_digest(b);
}

TemplateTokens template_tokens(const Tokenizer& tokenizer, std::size_t texts, bool target) {
  TemplateTokens out;
  const TokenizerParts& own = tokenizer.parts();
  const bool other = target && own.target_processor != nullptr;
  const PostProcessor* processor = (other ? own.target_processor : own.post_processor).get();
  if (processor == nullptr) return out;
  // Stand-ins for the texts.
  std::vector<Encoding> parts(texts);
  for (std::size_t i = 0; i < texts; ++i) {
    parts[i].push_back(-1 - static_cast<TokenId>(i), "", {}, static_cast<std::uint32_t>(i), false);
  }
  processor->process(parts, true);
  std::size_t found = 0;
  for (const Encoding& part : parts) {
    for (const TokenId id : part.ids) {
      if (id >= 0) {
        (found == 0 ? out.before : found < texts ? out.between : out.after).push_back(id);
      } else if (++found > texts || id != -static_cast<TokenId>(found)) {
        throw InputError(
            tokenizer.parts().path,
            "a template that repeats texts or reverses their order, expected each once");
      }
    }
  }
  return out;
}

TemplateTokens pair_tokens(const Tokenizer& tokenizer) {
  TemplateTokens out = template_tokens(tokenizer, 2);
  if (!out.between.empty()) return out;
  const Roles& roles = tokenizer.roles();
  const std::optional<TokenId> separator = roles.sep ? roles.sep : roles.eos;
  if (!separator) {
    throw UsageError(
        "pairs: the tokenizer puts nothing between two texts, and has no sep or "
        "eos token");
  }
  out.between.push_back(*separator);
  if (out.after.empty()) out.after.push_back(*separator);
  return out;
}

namespace {

constexpr TokenId kHere = -1;  ///< stands for the text in a template

/// The template's tokens before and after a text; false if it is not there exactly once.
bool surrounding(const PostProcessor* processor, std::vector<TokenId>& before,
                 std::vector<TokenId>& after) {
  if (processor == nullptr) return true;
  std::vector<Encoding> parts(1);
  parts[0].push_back(kHere, "", {}, 0, false);
  processor->process(parts, true);
  int found = 0;
  for (const Encoding& part : parts) {
    for (const TokenId id : part.ids) {
      if (id == kHere) {
        ++found;
      } else {
        (found == 0 ? before : after).push_back(id);
      }
    }
  }
  return found == 1;
}

}  // namespace

IdEncoder::IdEncoder(const Tokenizer& tokenizer, const EncodeOptions& options)
    : tokenizer_(tokenizer), options_(options) {
  const TokenizerParts& parts = tokenizer.parts();
  // Tokens that are found in normalised text need that text.
  fast_ = !(tokenizer.added().any(true) && parts.steps.normalizer) && parts.make_fast != nullptr;
  if (fast_ && options.special) fast_ = surrounding(parts.post_processor.get(), before_, after_);
  if (!fast_) return;
  first_ = parts.make_fast(parts.steps, true);
  other_ = parts.make_fast(parts.steps, false);
}

void IdEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  if (!fast_) {
    EncodeOptions options = options_;
    options.unit = OffsetUnit::kByte;
    options.truncation.reset();
    const Encoding encoding = tokenizer_.encode(text, options);
    ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
    return;
  }
  ids.insert(ids.end(), before_.begin(), before_.end());
  const AddedTokens& added = tokenizer_.added_;
  added.split(text, false, options_.special_in_text, split_);
  std::vector<AddedTokens::Part> inner;
  for (const AddedTokens::Part& part : split_) {
    throw_if_interrupted();
    const std::string_view piece = text.substr(part.begin, part.end - part.begin);
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
    } else if (!added.any(true)) {
      (part.begin == 0 ? first_ : other_)->encode(piece, ids);
    } else {
      added.split(piece, true, options_.special_in_text, inner);
      for (const AddedTokens::Part& p : inner) {
        throw_if_interrupted();
        if (p.token != nullptr) {
          ids.push_back(p.token->id);
        } else {
          FastEncoder& encoder = part.begin + p.begin == 0 ? *first_ : *other_;
          encoder.encode(piece.substr(p.begin, p.end - p.begin), ids);
        }
      }
    }
  }
  ids.insert(ids.end(), after_.begin(), after_.end());
}

}  // namespace masque::text
