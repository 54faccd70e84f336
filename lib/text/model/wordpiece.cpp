// WordPiece: the longest token that fits, from left to right.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "text/model/trie.hpp"
#include "text/model/vocabulary_model.hpp"

namespace masque::text {

namespace {

class WordPiece final : public VocabularyModel {
 public:
  WordPiece(std::vector<VocabEntry> vocab, WordPieceOptions options)
      : VocabularyModel(std::move(vocab)),
        trie_(vocabulary().keys()),
        options_(std::move(options)),
        continued_(trie_.walk(Trie::kRoot, options_.continuing_subword_prefix)),
        unk_(vocabulary().find(options_.unk_token)) {}

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    const std::size_t limit = options_.max_input_chars_per_word;
    if (word.size() > limit && count_code_points(word) > limit) return overlong(word, out);
    const std::size_t before = out.size();
    Trie::Node start = Trie::kRoot;
    for (std::size_t begin = 0; begin < word.size(); start = continued_) {
      TokenId id = -1;
      std::size_t end = begin;
      Trie::Node node = start;
      for (std::size_t i = begin; i < word.size() && node != Trie::kNone;) {
        node = trie_.child(node, word[i++]);
        if (node != Trie::kNone && trie_.value(node) >= 0) {
          id = trie_.value(node);
          end = i;
        }
      }
      if (id < 0) {
        out.resize(before);
        return unknown(word, out);
      }
      out.push_back({id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
      begin = end;
    }
  }

 private:
  void overlong(std::string_view word, std::vector<Piece>& out) const {
    if (options_.overlong_may_be_token) {
      if (const auto id = find(word)) return out.push_back(whole_word(*id, word));
    }
    unknown(word, out);
  }

  void unknown(std::string_view word, std::vector<Piece>& out) const {
    if (!unk_) {
      throw InputError(fmt::format("the vocabulary lacks the unknown token {}, needed for a word",
                                   escape(options_.unk_token)));
    }
    out.push_back(whole_word(*unk_, word));
  }

  // Holds all tokens as they are: those that continue a word lie below the node of their prefix.
  Trie trie_;
  WordPieceOptions options_;
  Trie::Node continued_;
  std::optional<TokenId> unk_;
};

}  // namespace

std::shared_ptr<const TokenModel> make_wordpiece(std::vector<VocabEntry> vocab,
                                                 const WordPieceOptions& options) {
  return std::make_shared<WordPiece>(std::move(vocab), options);
}

std::shared_ptr<const TokenModel> make_wordpiece(std::vector<std::string> tokens,
                                                 const WordPieceOptions& options) {
  return make_wordpiece(numbered(std::move(tokens)), options);
}

}  // namespace masque::text
