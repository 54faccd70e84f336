// Which new tokens have to be found in the text, because the model cannot make them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::surgery {

namespace {

enum class Reach { kYes, kSplit, kRewritten };

/// Whether a word of this spelling comes to the model as it stands.
Reach reach_of(const text::Steps& steps, std::string_view token) {
  // What continues a word comes without its prefix.
  for (const std::string_view mark : {std::string_view("##"), text::kSpaceMark})
    if (token.starts_with(mark) && token.size() > mark.size()) token.remove_prefix(mark.size());
  std::vector<text::AlignedText> words{text::AlignedText::from(token)};
  if (steps.normalizer != nullptr) steps.normalizer->apply(words[0]);
  if (steps.pre_tokenizer != nullptr) steps.pre_tokenizer->split(words, true);
  if (words.size() != 1) return Reach::kSplit;
  std::string_view word = words[0].text;
  if (word.starts_with(text::kSpaceMark) && word.size() > text::kSpaceMark.size())
    word.remove_prefix(text::kSpaceMark.size());
  return word == token ? Reach::kYes : Reach::kRewritten;
}

bool has_step(const JsonValue* step, std::string_view name) {
  if (step == nullptr) return false;
  const JsonValue* type = step->find("type");
  if (type != nullptr && type->text == name) return true;
  return std::ranges::any_of(std::array{"pretokenizers", "normalizers"}, [&](const char* steps) {
    const JsonValue* inner = step->find(steps);
    return inner != nullptr && std::ranges::any_of(inner->items, [&](const JsonValue& item) {
             return has_step(&item, name);
           });
  });
}

/// Whether the normalizer puts a mark in front of a text, and so in front of listed tokens, which
/// are then found where a word begins.
bool prepends_mark(const VocabularyJob& job, const std::optional<JsonText>& json) {
  return (job.kind == ModelKind::kBpe || job.kind == ModelKind::kUnigram) && json &&
         has_step(json->root.find("normalizer"), "Prepend");
}

/// What tokens of the model begin with for a space, where listed ones have the space itself; empty
/// for other models.
std::string_view space_mark(const VocabularyJob& job, const std::optional<JsonText>& json) {
  if (job.kind != ModelKind::kBpe && job.kind != ModelKind::kUnigram) return {};
  if (!json) return job.kind == ModelKind::kBpe ? text::kByteSpaceMark : std::string_view();
  const JsonValue* words = json->root.find("pre_tokenizer");
  if (has_step(words, "ByteLevel")) return text::kByteSpaceMark;
  return has_step(words, "Metaspace") ? text::kSpaceMark : std::string_view();
}

/// Listed tokens are found in the text before spaces become marks. `instead` of the mark they begin
/// with a space, or with nothing.
void note_marked_tokens(VocabularyJob& job, std::string_view mark, std::string_view instead) {
  if (mark.empty()) return;
  const auto is_marked = [&](const TokenMoves::Token& token) {
    return token.text.starts_with(mark) && token.text.size() > mark.size();
  };
  const auto first = std::ranges::find_if(job.listed, is_marked);
  if (first == job.listed.end()) return;
  const auto count = std::ranges::count_if(job.listed, is_marked);
  job.notes.push_back(fmt::format(
      "no text is tokenized as {}'{}': add '{}{}' instead",
      count == 1 ? "" : fmt::format("any of {} new tokens, the first ", count), escape(first->text),
      instead, escape(std::string_view(first->text).substr(mark.size()))));
}

/// The steps before a model that takes whole words.
text::Steps steps_of(const VocabularyJob& job, const std::optional<JsonText>& json) {
  if (json) return text::read_tokenizer_json(json->text, json->path).steps;
  const auto lines = job.edit.file_text("vocab.txt");
  if (!lines) return {};
  text::FolderConfig config = text::read_folder_config(job.edit.checkpoint().folder());
  if (const auto settings = read_json_text(job, "tokenizer_config.json"))
    config.settings = settings->root;
  text::choose_rules(config, text::VocabularyFile::kVocabTxt, job.path("vocab.txt"));
  return text::read_wordpiece(*lines, job.path("vocab.txt"), config, text::Flavor::kAuto).steps;
}

}  // namespace

ModelKind model_kind(const VocabularyJob& job, const std::optional<JsonText>& json) {
  static constexpr std::array<std::pair<std::string_view, ModelKind>, 4> kTypes{
      {{"WordPiece", ModelKind::kWordPiece},
       {"WordLevel", ModelKind::kWordLevel},
       {"BPE", ModelKind::kBpe},
       {"Unigram", ModelKind::kUnigram}}};
  if (json) {
    const JsonValue* model = json->root.find("model");
    if (model == nullptr) return ModelKind::kUnknown;
    const JsonValue* type = model->find("type");
    for (const auto& [name, kind] : kTypes)
      if (type != nullptr && type->text == name) return kind;
    // Older files do not say it.
    const JsonValue* vocab = model->find("vocab");
    if (model->find("merges") != nullptr) return ModelKind::kBpe;
    if (model->find("continuing_subword_prefix") != nullptr) return ModelKind::kWordPiece;
    return vocab != nullptr && vocab->is(JsonKind::kArray) ? ModelKind::kUnigram
                                                           : ModelKind::kWordLevel;
  }
  if (job.edit.file_text("vocab.txt")) return ModelKind::kWordPiece;
  if (job.edit.file_text("merges.txt")) return ModelKind::kBpe;
  return job.edit.file_text("vocab.json") ? ModelKind::kWordLevel : ModelKind::kUnknown;
}

void list_added_tokens(VocabularyJob& job, const std::optional<JsonText>& json) {
  const auto has_role = [&](const TokenMoves::Token& token) {  // found in the text as it is
    return std::ranges::any_of(job.moves.roles(), [&](const TokenMoves::Role& role) {
      return job.moves.id_after(role.id) == token.id;
    });
  };
  std::vector<TokenMoves::Token> fresh = job.moves.added();
  for (const TokenMoves::Token& token : job.moves.renamed())
    if (!has_role(token)) fresh.push_back(token);
  std::ranges::sort(fresh, {}, &TokenMoves::Token::id);
  if (fresh.empty()) return;
  const bool words = job.new_in_model();
  const auto is_new = [&](const TokenMoves::Token& token) { return job.moves.is_new(token.id); };
  const bool pieces =
      job.kind == ModelKind::kUnigram && json && !std::ranges::all_of(fresh, is_new);
  const text::Steps steps = words || pieces ? steps_of(job, json) : text::Steps{};
  std::vector<std::string_view> unreachable;
  for (const TokenMoves::Token& token : fresh) {
    const bool in_model = words || (pieces && !is_new(token));
    const Reach reach = in_model ? reach_of(steps, token.text) : Reach::kSplit;
    if (reach == Reach::kSplit || (reach == Reach::kRewritten && pieces))
      job.listed.push_back(token);
    if (reach == Reach::kRewritten && !pieces) unreachable.push_back(token.text);
  }
  if (prepends_mark(job, json)) {
    for (const std::string_view mark : {text::kSpaceMark, std::string_view(" ")})
      note_marked_tokens(job, mark, "");
  } else {
    note_marked_tokens(job, space_mark(job, json), " ");
  }
  if (unreachable.empty()) return;
  job.notes.push_back(fmt::format(
      "no text is tokenized as {}'{}': the tokenizer normalizes it (lower case, accents)",
      unreachable.size() == 1 ? ""
                              : fmt::format("any of {} new tokens, the first ", unreachable.size()),
      escape(unreachable[0])));
}

}  // namespace masque::surgery
