// tokenizer_config.json, special_tokens_map.json, added_tokens.json.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

/// "mask_token": "…" or {"content": "…"}, lists of them, and objects of further roles.
void change_role_names(const VocabularyJob& job, const JsonText& file, TextSplice& splice) {
  const auto change = [&](const JsonValue& value) {
    const JsonValue* content = value.find("content");
    const JsonValue& name = content != nullptr ? *content : value;
    if (!name.is(JsonKind::kString)) return;
    if (job.moves.text_after(name.text).empty() && !name.text.empty())
      refuse_special(file.path, name.text);
    change_name(job, name, splice);
  };
  for (const JsonMember& member : file.root.members) {
    if (member.name.ends_with("_token")) change(member.value);
    if (member.name != "additional_special_tokens" && member.name != "extra_special_tokens" &&
        member.name != "model_specific_special_tokens") {
      continue;
    }
    for (const JsonValue& item : member.value.items) change(item);
    for (const JsonMember& role : member.value.members) change(role.value);
  }
}

/// {"30522": {"content": "<new>", …}, …}
void change_decoder(VocabularyJob& job, const JsonText& file, const JsonValue& decoder,
                    TextSplice& splice) {
  std::vector<std::string> wanted;
  wanted.reserve(decoder.members.size() + job.listed.size());
  std::unordered_set<std::string_view> contents;
  for (const JsonMember& member : decoder.members) {
    const auto old = parse_unsigned(member.name);
    const JsonValue* content = member.value.find("content");
    if (!old || content == nullptr || !content->is(JsonKind::kString)) {
      throw InputError(file.path,
                       fmt::format("byte {}: expected an id and an added token", member.begin));
    }
    const auto now = job.moves.follow(*old, content->text, file.path);
    if (!now) {
      if (is_true(member.value.find("special"))) refuse_special(file.path, content->text);
      continue;
    }
    contents.insert(now->text);
    TextSplice edits;
    if (now->text != content->text)
      edits.replace(content->begin, content->end, quote_json(now->text));
    wanted.push_back(member_text(file.text, member,
                                 now->id == *old ? member.name : fmt::format("{}", now->id),
                                 edits.apply(file.text, member.value.begin, member.value.end)));
  }
  const JsonValue* like = decoder.members.empty() ? nullptr : &decoder.members.back().value;
  for (const TokenMoves::Token& token : job.listed) {
    if (contents.contains(token.text)) continue;
    wanted.push_back(new_member(file.text, decoder, fmt::format("{}", token.id),
                                added_token_text(file.text, like, token, false)));
  }
  set_elements(file.text, decoder, wanted, splice);
}

/// A token that had its role by its usual name and is called otherwise now gets the role here.
void name_roles(VocabularyJob& job, const std::optional<JsonText>& config) {
  const auto map = read_json_text(job, "special_tokens_map.json");
  for (const TokenMoves::Role& role : job.moves.roles()) {
    const std::string& old = job.moves.before().token(role.id);
    const std::string_view now = job.moves.text_after(old);
    const bool named = (config && config->root.find(role.name) != nullptr) ||
                       (map && map->root.find(role.name) != nullptr);
    if (now == old || named) continue;
    const std::string text = job.edit.file_text(kTokenizerConfig).value_or("{}\n");
    job.edit.set_file(kTokenizerConfig,
                      set_json_member(text, {std::string(role.name)}, quote_json(now)));
  }
}

}  // namespace

void change_tokenizer_config(VocabularyJob& job) {
  const auto file = read_json_text(job, kTokenizerConfig);
  if (file) {
    TextSplice splice;
    change_role_names(job, *file, splice);
    const JsonValue* decoder = file->root.find("added_tokens_decoder");
    if (decoder != nullptr && decoder->is(JsonKind::kObject))
      change_decoder(job, *file, *decoder, splice);
    write_splice(job, *file, splice);
  }
  name_roles(job, file);
}

void change_special_tokens_map(VocabularyJob& job) {
  const auto file = read_json_text(job, "special_tokens_map.json");
  if (!file) return;
  TextSplice splice;
  change_role_names(job, *file, splice);
  write_splice(job, *file, splice);
}

void change_added_tokens_json(VocabularyJob& job, bool has_tokenizer_json) {
  constexpr const char* kName = "added_tokens.json";
  const auto file = read_json_text(job, kName);
  if (!file) {
    // Whoever reads vocab.txt or vocab.json finds added tokens in tokenizer_config.json or here.
    const auto config = read_json_text(job, kTokenizerConfig);
    const bool listed = config && config->root.find("added_tokens_decoder") != nullptr;
    const bool needed =
        !has_tokenizer_json || job.edit.file_text("vocab.txt") || job.edit.file_text("vocab.json");
    if (listed || !needed || job.listed.empty()) return;
    // Readers number what is listed: nothing may be left out.
    std::vector<TokenMoves::Token> all = job.listed;
    all.insert(all.end(), job.beyond.begin(), job.beyond.end());
    std::ranges::sort(all, {}, &TokenMoves::Token::id);
    const auto same = [](const auto& a, const auto& b) { return a.id == b.id; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    std::string text;
    JsonWriter json(text, JsonLayout::kLines);
    json.begin_object();
    for (const TokenMoves::Token& token : all) json.member(token.text, token.id);
    json.end_object();
    job.edit.set_file(kName, text + "\n");
    return;
  }
  TextSplice splice;
  std::vector<std::string> wanted;
  wanted.reserve(file->root.members.size() + job.listed.size());
  std::unordered_set<std::string_view> contents;
  for (const JsonMember& member : file->root.members) {
    const std::uint64_t old = json_id(member.value, file->path);
    const auto now = job.moves.follow(old, member.name, file->path);
    if (!now) continue;
    contents.insert(now->text);
    wanted.push_back(member_text(
        file->text, member, now->text,
        now->id == old ? text_of(file->text, member.value) : fmt::format("{}", now->id)));
  }
  for (const TokenMoves::Token& token : job.listed) {
    if (contents.contains(token.text)) continue;
    wanted.push_back(new_member(file->text, file->root, token.text, fmt::format("{}", token.id)));
  }
  // Nobody needs a list that lost its last token.
  if (wanted.empty() && !file->root.members.empty()) {
    job.edit.drop_file(kName);
    return;
  }
  set_elements(file->text, file->root, wanted, splice);
  write_splice(job, *file, splice);
}

}  // namespace masque::surgery
