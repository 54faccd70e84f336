#include "surgery/vocabulary/vocabulary_files.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

void change_name(const VocabularyJob& job, const JsonValue& value, TextSplice& splice) {
  if (!value.is(JsonKind::kString)) return;
  const std::string_view now = job.moves.text_after(value.text);
  if (now != value.text && !now.empty()) splice.replace(value.begin, value.end, quote_json(now));
}

void change_id(const VocabularyJob& job, const JsonValue& value, const std::string& path,
               TextSplice& splice) {
  const std::uint64_t old = json_id(value, path);
  const auto now = job.moves.id_after(old);
  if (!now || job.moves.change().tokens[*now].empty()) {
    if (!job.moves.before().assigned(old)) return;
    throw InputError(path,
                     fmt::format("byte {}: uses token {} '{}', which therefore cannot be removed",
                                 value.begin, old, escape(job.moves.before().token(old))));
  }
  if (*now != old) splice.replace(value.begin, value.end, fmt::format("{}", *now));
}

bool is_true(const JsonValue* value) {
  return value != nullptr && value->is(JsonKind::kBool) && value->text == "true";
}

void refuse_special(const std::string& path, std::string_view token) {
  throw InputError(
      path, fmt::format("token '{}' is a special token and cannot be removed", escape(token)));
}

void ModelIds::add(std::uint64_t id) {
  if (id >= has_.size()) has_.resize(id + 1);
  if (!has_[id]) ++count_;
  has_[id] = true;
}

std::vector<TokenMoves::Token> ModelIds::others(const TokenMoves& moves) const {
  std::vector<TokenMoves::Token> out;
  const auto& tokens = moves.change().tokens;
  for (std::uint64_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty() && !has_[id]) out.push_back({id, tokens[id]});
  }
  return out;
}

std::vector<TokenMoves::Token> ModelIds::missing(const TokenMoves& moves) const {
  std::vector<TokenMoves::Token> out = others(moves);
  std::uint64_t next = count_;
  for (const TokenMoves::Token& token : out)
    if (token.id != next++) return out;
  return {};
}

ModelIds change_vocabulary_object(VocabularyJob& job, const std::string& path,
                                  const std::string& text, const JsonValue& vocab,
                                  TextSplice& splice) {
  ModelIds ids(job.moves);
  std::vector<std::string> wanted;
  wanted.reserve(vocab.members.size());
  for (const JsonMember& member : vocab.members) {
    const std::uint64_t old = json_id(member.value, path);
    const auto now = job.moves.follow(old, member.name, path);
    if (!now) continue;
    ids.add(now->id);
    const std::string value =
        now->id == old ? text_of(text, member.value) : fmt::format("{}", now->id);
    wanted.push_back(member_text(text, member, now->text, value));
  }
  const auto append = [&](const TokenMoves::Token& token) {
    ids.add(token.id);
    wanted.push_back(new_member(text, vocab, token.text, fmt::format("{}", token.id)));
  };
  if (job.new_in_model()) {
    for (const TokenMoves::Token& token : job.moves.added()) append(token);
  }
  for (const TokenMoves::Token& token : ids.missing(job.moves)) append(token);
  set_elements(text, vocab, wanted, splice);
  return ids;
}

std::vector<std::string> change_vocabulary_files(CheckpointEdit& edit, const TokenNames& before,
                                                 const VocabularyChange& change) {
  if (!edit.checkpoint().is_folder()) return {};
  TokenMoves moves(before, change, edit.checkpoint().folder());
  VocabularyJob job{edit, moves};
  check_sentencepiece(job);
  {
    const auto json = read_json_text(job, "tokenizer.json");
    job.kind = model_kind(job, json);
    list_added_tokens(job, json);
    change_vocab_txt(job);
    change_vocab_json(job);
    change_merges_txt(job);
    if (json) change_tokenizer_json(job, *json);
    change_added_tokens_json(job, json.has_value());
  }
  change_tokenizer_config(job);
  change_special_tokens_map(job);
  job.notes.insert(job.notes.begin(), moves.notes().begin(), moves.notes().end());
  return job.notes;
}

}  // namespace masque::surgery
