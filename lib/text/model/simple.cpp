// Models without a choice: a word, a character or a byte is a token.
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "text/model/vocabulary_model.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

class WordLevel final : public VocabularyModel {
 public:
  WordLevel(std::vector<VocabEntry> vocab, std::string unk_token)
      : VocabularyModel(std::move(vocab)),
        unk_token_(std::move(unk_token)),
        unk_(vocabulary().find(unk_token_)) {}

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    if (word.empty()) return;
    auto id = find(word);
    if (!id) id = unk_;
    if (!id) {
      throw InputError(fmt::format("the vocabulary lacks the unknown token {}, needed for a word",
                                   escape(unk_token_)));
    }
    out.push_back(whole_word(*id, word));
  }

 private:
  std::string unk_token_;
  std::optional<TokenId> unk_;
};

class Characters final : public VocabularyModel {
 public:
  Characters(std::vector<VocabEntry> vocab, std::optional<std::string> unk_token)
      : VocabularyModel(std::move(vocab)), unk_token_(std::move(unk_token)) {
    if (unk_token_) unk_ = find(*unk_token_);
  }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    SparseLooks looks;
    for (std::size_t begin = 0; begin < word.size();) {
      looks.step();
      const std::size_t bytes = char_bytes(word, begin);
      auto id = find(word.substr(begin, bytes));
      if (!id) id = unk_;
      if (!id && unk_token_) {
        throw InputError(fmt::format("the vocabulary lacks the unknown token {}, needed for a word",
                                     escape(*unk_token_)));
      }
      if (id) {
        out.push_back(
            {*id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + bytes)});
      }
      begin += bytes;
    }
  }

 private:
  std::optional<std::string> unk_token_;
  std::optional<TokenId> unk_;
};

class ByteTokens final : public TokenModel {
 public:
  explicit ByteTokens(TokenId first) : first_(first) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
  }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    for (std::size_t i = 0; i < word.size(); ++i) {
      out.push_back({first_ + static_cast<unsigned char>(word[i]), static_cast<std::uint32_t>(i),
                     static_cast<std::uint32_t>(i + 1)});
    }
  }
  std::size_t size() const override { return static_cast<std::size_t>(first_) + bytes_.size(); }
  std::size_t count() const override { return bytes_.size(); }
  std::optional<TokenId> find(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return first_ + static_cast<unsigned char>(token[0]);
  }
  std::string_view token(TokenId id) const override {
    if (id < first_ || id - first_ >= static_cast<TokenId>(bytes_.size())) return {};
    return {&bytes_[static_cast<std::size_t>(id - first_)], 1};
  }

 private:
  TokenId first_;
  std::array<char, 256> bytes_{};
};

}  // namespace

std::shared_ptr<const TokenModel> make_word_level(std::vector<VocabEntry> vocab,
                                                  std::string unk_token) {
  return std::make_shared<WordLevel>(std::move(vocab), std::move(unk_token));
}

std::shared_ptr<const TokenModel> make_characters(std::vector<VocabEntry> vocab,
                                                  std::optional<std::string> unk_token) {
  return std::make_shared<Characters>(std::move(vocab), std::move(unk_token));
}

std::shared_ptr<const TokenModel> make_bytes(TokenId first) {
  MASQUE_CHECK(first >= 0 && first <= 0x7FFFFF00);
  return std::make_shared<ByteTokens>(first);
}

}  // namespace masque::text
