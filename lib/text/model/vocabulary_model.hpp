// What all models of a plain vocabulary share.
#pragma once

#include <utility>
#include <vector>

#include "text/model/vocabulary.hpp"

namespace masque::text {

/// A model whose tokens are those of a Vocabulary.
class VocabularyModel : public TokenModel {
 public:
  /// `vocab` as of Vocabulary.
  explicit VocabularyModel(std::vector<VocabEntry> vocab) : vocabulary_(std::move(vocab)) {}

  std::size_t size() const override { return vocabulary_.size(); }
  std::size_t count() const override { return vocabulary_.count(); }
  std::optional<TokenId> find(std::string_view token) const override {
    return vocabulary_.find(token);
  }
  std::string_view token(TokenId id) const override { return vocabulary_.token(id); }

 protected:
  /// Its tokens and ids.
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};

/// The piece `id` that covers the whole of `word`.
inline Piece whole_word(TokenId id, std::string_view word) {
  return {id, 0, static_cast<std::uint32_t>(word.size())};
}

}  // namespace masque::text
