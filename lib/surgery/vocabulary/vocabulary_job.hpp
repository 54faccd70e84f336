// A change of a vocabulary on its way through the files of a tokenizer: where each token goes, and
// a function for each file.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json/json.hpp"
#include "base/string/text_splice.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Where every token goes. The names and the change must outlive it. For one thread.
class TokenMoves {
 public:
  /// A token after the change.
  struct Token {
    std::uint64_t id = 0;   ///< after the change
    std::string_view text;  ///< into the change, or see follow()
  };

  /// Looks up `change` with the names `before` it. Throws InputError with `path` (the folder) if
  /// the change gives a token twice, or has none for a token with a role.
  TokenMoves(const TokenNames& before, const VocabularyChange& change, const std::string& path);

  /// The new id and text of the token `own` that a file lists with the id `old`; std::nullopt if it
  /// is removed. Views are into the change or `own`. Throws InputError with `file` if that id
  /// changes and the files do not agree about its token; if nothing changes, a note tells it once a
  /// file.
  std::optional<Token> follow(std::uint64_t old, std::string_view own, const std::string& file);

  /// The new id of the id `old`, the first one if its row was copied; nothing if the row is gone.
  std::optional<std::uint64_t> id_after(std::uint64_t old) const;
  /// The old token `token` as it is called now: for places that name tokens without ids. Empty if
  /// it is removed; `token` itself if it is not in the vocabulary.
  std::string_view text_after(std::string_view token) const;
  /// Whether the old token `token` is renamed or removed.
  bool leaves(std::string_view token) const { return leaving_.contains(token); }
  /// Tokens that no row had before, by id.
  const std::vector<Token>& added() const { return added_; }
  /// Tokens whose row had another one, by id.
  const std::vector<Token>& renamed() const { return renamed_; }

  /// Whether the token of the new id `id` is one of added().
  bool is_new(std::uint64_t id) const;
  /// A role that the tokenizer had before the change.
  struct Role {
    std::string_view name;  ///< "mask_token"
    std::uint64_t id = 0;   ///< of its token before the change
  };
  /// The roles that have a token, of pad, unk, cls, sep, mask, bos and eos.
  const std::vector<Role>& roles() const { return roles_; }

  /// The names before the change.
  const TokenNames& before() const { return *before_; }
  /// The change itself.
  const VocabularyChange& change() const { return *change_; }
  /// What follow() has to tell people so far.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void check_tokens(const std::string& path) const;

  const TokenNames* before_;
  const VocabularyChange* change_;
  std::vector<std::uint64_t> to_;  ///< id before → id, or kNew: gone
  /// Tokens that are gone (empty) or renamed, with what they are called now.
  std::unordered_map<std::string_view, std::string_view> leaving_;
  std::vector<Token> added_;
  std::vector<Role> roles_;
  std::vector<Token> renamed_;
  std::set<std::string> reported_;
  std::vector<std::string> notes_;
};

// The files: the parts of change_vocabulary_files().

/// What cuts words into tokens; it decides how a new token can be reached.
enum class ModelKind { kWordPiece, kWordLevel, kBpe, kUnigram, kUnknown };

/// One change on its way through the files. For one thread.
struct VocabularyJob {
  CheckpointEdit& edit;                  ///< gets the new texts; must outlive the job
  TokenMoves& moves;                     ///< where each token goes; must outlive the job
  ModelKind kind = ModelKind::kUnknown;  ///< as model_kind() says
  /// Tokens that are found in the text before it is cut into words, by id: they go to the lists of
  /// added tokens.
  std::vector<TokenMoves::Token> listed = {};
  /// Tokens that vocab.txt or vocab.json lack, by id.
  std::vector<TokenMoves::Token> beyond = {};
  std::vector<std::string> notes = {};  ///< for people

  /// Whether new tokens are entries of the model's vocabulary.
  bool new_in_model() const {
    return kind == ModelKind::kWordPiece || kind == ModelKind::kWordLevel;
  }
  /// The path of the file `name` in the checkpoint's folder.
  std::string path(const std::string& name) const;
};

/// A file of JSON, read.
struct JsonText {
  std::string name;  ///< in the checkpoint's folder
  std::string path;  ///< of the file, for messages
  std::string text;  ///< as the edit has it
  JsonValue root;    ///< an object; its places are those of `text`
};
/// The file `name` as the edit of `job` has it; nothing if there is no such file. Throws InputError
/// if it is no JSON object.
std::optional<JsonText> read_json_text(const VocabularyJob& job, const std::string& name);
/// Gives `file` the text with the edits of `splice`, if there are any, in the edit of `job`.
void write_splice(VocabularyJob& job, const JsonText& file, const TextSplice& splice);
/// The id that `value` is. Throws InputError naming `path` and the byte if it is none.
std::uint64_t json_id(const JsonValue& value, const std::string& path);

/// The kind of the model in the folder of `job`; `json` is its tokenizer.json.
ModelKind model_kind(const VocabularyJob& job, const std::optional<JsonText>& json);
/// Fills job.listed by job.moves and job.kind; `json` is the folder's tokenizer.json. Notes tokens
/// that no text can reach.
void list_added_tokens(VocabularyJob& job, const std::optional<JsonText>& json);

// Each of the next does nothing without its file but where it says so, and throws InputError with
// the path for a file that is not what it must be.

/// Changes the lines of vocab.txt by job.moves, one a row; those of rows without a token between
/// others are empty. Fills job.beyond.
void change_vocab_txt(VocabularyJob& job);
/// Changes vocabulary, merges, added tokens, post-processor and padding of `file`, which is
/// tokenizer.json, by job.moves. Throws InputError too as keeps_merge(), for an unknown or special
/// token that would be gone, and for an unknown piece whose id would change although the class of
/// the tokenizer knows it as a number.
void change_tokenizer_json(VocabularyJob& job, const JsonText& file);
/// Changes vocab.json by job.moves; fills job.beyond.
void change_vocab_json(VocabularyJob& job);
/// Removes the lines of merges.txt in the folder of `job` for which keeps_merge() is false.
void change_merges_txt(VocabularyJob& job);
/// Changes added_tokens.json by job.moves and adds job.listed, of which nothing is listed twice.
/// Makes the file where no other names added tokens to those that read vocab.txt or vocab.json
/// (`has_tokenizer_json`: readers may take tokenizer.json instead); drops it with its last token.
void change_added_tokens_json(VocabularyJob& job, bool has_tokenizer_json);
/// Changes tokenizer_config.json: names of roles, and added_tokens_decoder with job.listed. A token
/// that had its role by its usual name and is called otherwise gets the role here, in a new file if
/// need be. Throws InputError for a special token that would be gone.
void change_tokenizer_config(VocabularyJob& job);
/// Changes the names of roles in special_tokens_map.json by job.moves. Throws InputError for one
/// that would be gone.
void change_special_tokens_map(VocabularyJob& job);
/// Throws InputError for a SentencePiece model in the folder of `job` of which a token would
/// change.
void check_sentencepiece(const VocabularyJob& job);

/// Ids that a model's vocabulary has after the change.
class ModelIds {
 public:
  /// No ids yet, of a vocabulary as long as that of `moves` after the change.
  explicit ModelIds(const TokenMoves& moves) : has_(moves.change().tokens.size()) {}
  /// Adds `id`. More than once is once.
  void add(std::uint64_t id);
  /// How many different ids were added.
  std::uint64_t count() const { return count_; }
  /// Tokens of `moves` that the vocabulary has to take up besides, by id. transformers gives added
  /// tokens that it lacks the next free ids after it, whatever a file says: where that is not what
  /// they must have, all of them become entries, which changes nothing else about them.
  std::vector<TokenMoves::Token> missing(const TokenMoves& moves) const;
  /// All tokens of `moves` after the change that it does not have, by id.
  std::vector<TokenMoves::Token> others(const TokenMoves& moves) const;

 private:
  std::vector<bool> has_;
  std::uint64_t count_ = 0;
};

/// Changes `vocab`, the object {"token": id, …} in the `text` of the file at `path`, by job.moves
/// and adds its new entries, by edits in `splice`. Returns the ids that it then has. Throws
/// InputError naming `path` for a value that is no id.
ModelIds change_vocabulary_object(VocabularyJob& job, const std::string& path,
                                  const std::string& text, const JsonValue& vocab,
                                  TextSplice& splice);
/// Changes `vocab`, the list [["piece", score], …] of a Unigram model in `file`, by job.moves, by
/// edits in `splice`. Throws InputError if an id below the last one would have no piece.
void change_pieces(VocabularyJob& job, const JsonText& file, const JsonValue& vocab,
                   TextSplice& splice);
/// Whether the merge of `left` and `right` makes and uses tokens that by job.moves are still there.
/// `continuing` is the prefix that a right part loses. Throws InputError naming `path` if one is
/// called otherwise.
bool keeps_merge(const VocabularyJob& job, const std::string& path, std::string_view left,
                 std::string_view right, std::string_view continuing);
/// Adds to job.notes of `job` that of the merges of `file` only `left` of `before` are left, unless
/// all are.
void note_merges(VocabularyJob& job, const std::string& file, std::size_t left, std::size_t before);
/// Changes "added_tokens" of `file`, which is tokenizer.json, by job.moves and adds job.listed, by
/// edits in `splice`. Throws InputError if readers would give a token another id than the file
/// says, and for a special token that would be gone.
void change_added_tokens(VocabularyJob& job, const JsonText& file, TextSplice& splice);
/// Changes `processor`, the post-processor of `file` or a part of it, by job.moves, by edits in
/// `splice`. Throws InputError if a token that it uses would be gone.
void change_post_processor(VocabularyJob& job, const JsonText& file, const JsonValue& processor,
                           TextSplice& splice);
/// Lets `value`, a string that names a token, follow it by job.moves, by an edit in `splice`. Other
/// values stay, and names of tokens that are gone.
void change_name(const VocabularyJob& job, const JsonValue& value, TextSplice& splice);
/// Lets `value`, an id, follow its token by job.moves, by an edit in `splice`. Throws InputError
/// naming `path` if the token is gone, or the value is no id.
void change_id(const VocabularyJob& job, const JsonValue& value, const std::string& path,
               TextSplice& splice);
/// Whether `value` is the JSON true; false for nullptr.
bool is_true(const JsonValue* value);
/// Throws InputError naming `path`: the special token `token` would be gone.
[[noreturn]] void refuse_special(const std::string& path, std::string_view token);
/// The JSON text of `token` as an added token, spaced like the object `like` of `text`, or in the
/// usual form if that is nullptr or has other members. `with_id`: with the member "id".
std::string added_token_text(const std::string& text, const JsonValue* like,
                             const TokenMoves::Token& token, bool with_id);

}  // namespace masque::surgery
