// A change of a vocabulary on its way through the files of a tokenizer, and a function for each of
// them: the parts of change_vocabulary_files().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text_splice.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/token_moves.hpp"

namespace masque::surgery {

/// What cuts words into tokens; it decides how a new token can be reached.
enum class ModelKind { kWordPiece, kWordLevel, kBpe, kUnigram, kUnknown };

/// One change on its way through the files. For one thread.
struct VocabularyJob {
  CheckpointEdit& edit;
  TokenMoves& moves;
  ModelKind kind = ModelKind::kUnknown;
  /// Tokens that are found in the text before it is cut into words, by id: they go to the lists of
  /// added tokens.
  std::vector<TokenMoves::Token> listed = {};
  /// Tokens that vocab.txt or vocab.json lack, by id.
  std::vector<TokenMoves::Token> beyond = {};
  std::vector<std::string> notes = {};

  /// Whether new tokens are entries of the model's vocabulary.
  bool new_in_model() const {
    return kind == ModelKind::kWordPiece || kind == ModelKind::kWordLevel;
  }
  /// Of a file in the checkpoint's folder.
  std::string path(const std::string& name) const;
};

/// A file of JSON, read.
struct JsonText {
  std::string name;
  std::string path;
  std::string text;
  JsonValue root;
};
/// Nothing if there is no such file. Throws InputError if it is no JSON.
std::optional<JsonText> read_json_text(const VocabularyJob& job, const std::string& name);
/// Sets the file if something changes.
void write_splice(VocabularyJob& job, const JsonText& file, const TextSplice& splice);
/// An id. Throws InputError naming the file and the byte.
std::uint64_t json_id(const JsonValue& value, const std::string& path);

/// The kind of a folder's model; `json` is its tokenizer.json.
ModelKind model_kind(const VocabularyJob& job, const std::optional<JsonText>& json);
/// Fills job.listed; notes tokens that no text can reach.
void list_added_tokens(VocabularyJob& job, const std::optional<JsonText>& json);

// Each of the next does nothing without its file but where it says so, and throws InputError with
// the path for a file that is not what it must be.

/// The lines of vocab.txt, one a row; those of rows without a token between others are empty.
/// Fills job.beyond.
void change_vocab_txt(VocabularyJob& job);
/// Vocabulary, added tokens, post-processor and padding of tokenizer.json. Throws InputError too
/// for merges that do not hold any more, and for an unknown or special token that would be gone.
void change_tokenizer_json(VocabularyJob& job, const JsonText& file);
/// Fills job.beyond.
void change_vocab_json(VocabularyJob& job);
/// check_merge of every line of merges.txt.
void check_merges_txt(const VocabularyJob& job);
/// Adds job.listed, of which nothing is listed twice. Makes the file where no other names added
/// tokens to those that read vocab.txt or vocab.json; drops it with its last token.
void change_added_tokens_json(VocabularyJob& job, bool has_tokenizer_json);
/// Names of roles, and added_tokens_decoder with job.listed. A token that had its role by its usual
/// name and is called otherwise gets the role here, in a new file if need be. Throws InputError for
/// a special token that would be gone.
void change_tokenizer_config(VocabularyJob& job);
/// Names of roles. Throws InputError for one that would be gone.
void change_special_tokens_map(VocabularyJob& job);
/// Throws InputError for a SentencePiece model of which a token would change.
void check_sentencepiece(const VocabularyJob& job);

/// Ids that a model's vocabulary has after the change.
class ModelIds {
 public:
  explicit ModelIds(const TokenMoves& moves) : has_(moves.change().tokens.size()) {}
  /// More than once is once.
  void add(std::uint64_t id);
  std::uint64_t count() const { return count_; }
  /// Tokens that the vocabulary has to take up besides. transformers gives added tokens that it
  /// lacks the next free ids after it, whatever a file says: where that is not what they must
  /// have, all of them become entries, which changes nothing else about them.
  std::vector<TokenMoves::Token> missing(const TokenMoves& moves) const;
  /// All tokens that it does not have.
  std::vector<TokenMoves::Token> others(const TokenMoves& moves) const;

 private:
  std::vector<bool> has_;
  std::uint64_t count_ = 0;
};

/// {"token": id, …}: a vocabulary after the change, with its new entries.
ModelIds change_vocabulary_object(VocabularyJob& job, const std::string& path,
                                  const std::string& text, const JsonValue& vocab,
                                  TextSplice& splice);
/// Unigram: [["piece", score], …].
void change_pieces(VocabularyJob& job, const JsonText& file, const JsonValue& vocab,
                   TextSplice& splice);
/// Throws InputError if a merge makes or uses a token that is gone or called otherwise.
/// `continuing` is the prefix that a right part loses.
void check_merge(const VocabularyJob& job, const std::string& path, std::string_view left,
                 std::string_view right, std::string_view continuing);
/// "added_tokens" of tokenizer.json.
void change_added_tokens(VocabularyJob& job, const JsonText& file, TextSplice& splice);
/// "post_processor".
void change_post_processor(VocabularyJob& job, const JsonText& file, const JsonValue& processor,
                           TextSplice& splice);
/// A string that names a token follows it.
void change_name(const VocabularyJob& job, const JsonValue& value, TextSplice& splice);
/// An id follows its token, which must stay.
void change_id(const VocabularyJob& job, const JsonValue& value, const std::string& path,
               TextSplice& splice);
/// Of nullptr: false.
bool is_true(const JsonValue* value);
/// Throws InputError: the token would be gone.
[[noreturn]] void refuse_special(const std::string& path, std::string_view token);
/// An added token like the object `like` (of which the text is `text`), or in the usual form.
std::string added_token_text(const std::string& text, const JsonValue* like,
                             const TokenMoves::Token& token, bool with_id);

}  // namespace masque::surgery
