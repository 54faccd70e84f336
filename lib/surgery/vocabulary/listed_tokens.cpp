// Which new tokens have to be found in the text, because the model cannot make them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "surgery/vocabulary/files.hpp"
#include "text/tokenizer_files.hpp"

namespace masque {

namespace {

enum class Reach { kYes, kSplit, kRewritten };

/// Whether a word of this spelling comes to the model as it stands.
Reach reach_of(const text::Steps& steps, std::string_view token) {
  // What continues a word comes without its prefix.
  if (token.starts_with("##") && token.size() > 2) token.remove_prefix(2);
  std::vector<text::AlignedText> words{text::AlignedText::from(token)};
  if (steps.normalizer != nullptr) steps.normalizer->apply(words[0]);
  if (steps.pre_tokenizer != nullptr) steps.pre_tokenizer->split(words, true);
  if (words.size() != 1) return Reach::kSplit;
  return words[0].text == token ? Reach::kYes : Reach::kRewritten;
}

/// The steps before a model that takes whole words.
text::Steps steps_of(const VocabularyJob& job, const std::optional<JsonText>& json) {
  if (json) return text::read_tokenizer_json(json->text, json->path).steps;
  const auto lines = job.edit.file_text("vocab.txt");
  if (!lines) return {};
  text::FolderConfig config = text::read_folder_config(job.edit.checkpoint().folder());
  if (const auto settings = read_json_text(job, "tokenizer_config.json"))
    config.settings = settings->root;
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
  std::vector<TokenMoves::Token> fresh = job.moves.added();
  if (!job.new_in_model() && job.kind != ModelKind::kBpe) {
    job.listed = std::move(fresh);  // a renamed piece keeps its score: the model makes it
    return;
  }
  const auto has_role = [&](const TokenMoves::Token& token) {  // found in the text as it is
    return std::ranges::any_of(job.moves.roles(), [&](const TokenMoves::Role& role) {
      return job.moves.id_after(role.id) == token.id;
    });
  };
  for (const TokenMoves::Token& token : job.moves.renamed())
    if (!has_role(token)) fresh.push_back(token);
  std::ranges::sort(fresh, {}, &TokenMoves::Token::id);
  if (fresh.empty()) return;
  if (job.kind == ModelKind::kBpe) {
    job.listed = std::move(fresh);
    return;
  }
  const text::Steps steps = steps_of(job, json);
  std::vector<std::string_view> unreachable;
  for (const TokenMoves::Token& token : fresh) {
    const Reach reach = reach_of(steps, token.text);
    if (reach == Reach::kSplit) job.listed.push_back(token);
    if (reach == Reach::kRewritten) unreachable.push_back(token.text);
  }
  if (unreachable.empty()) return;
  job.notes.push_back(fmt::format(
      "no text gives {}'{}': the tokenizer rewrites it (lower case, accents)",
      unreachable.size() == 1 ? "" : fmt::format("{} new tokens, the first ", unreachable.size()),
      escape(unreachable[0])));
}

}  // namespace masque
