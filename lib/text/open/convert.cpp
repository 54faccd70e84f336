#include "text/open/convert.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "text/step/base64.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::text {

namespace {

/// The pieces of a template, a list; false if a token is not found. Adds its tokens to `used`.
bool add_pieces(const TokenFinder& find, const std::vector<std::string>& pieces, JsonWriter& json,
                std::vector<std::string>& used) {
  json.begin_array();
  for (const std::string& piece : pieces) {
    const std::string name = piece.substr(0, piece.size() - 2);
    const std::string type = piece.substr(piece.size() - 1);
    const bool text = name == "$A" || name == "$B";
    if (!text && !find(name)) return false;
    if (!text && std::find(used.begin(), used.end(), name) == used.end()) used.push_back(name);
    json.begin_object().key(text ? "Sequence" : "SpecialToken").begin_object();
    json.member("id", text ? name.substr(1) : name).raw_member("type_id", type);
    json.end_object().end_object();
  }
  json.end_array();
  return true;
}

std::vector<std::string> pieces_of(std::string_view pattern) {
  std::vector<std::string> out;
  for (const std::string_view piece : split_terminated(pattern, ' ')) out.emplace_back(piece);
  return out;
}

/// Whether a file sets the role to null.
bool is_null(const FolderConfig& config, std::string_view role) {
  const JsonValue* value = config.settings.find(fmt::format("{}_token", role));
  return value != nullptr && value->is(JsonKind::kNull);
}

}  // namespace

std::string added_json(const TokenModel& model, const std::vector<std::string_view>& contents) {
  std::string out;
  JsonWriter items(out);
  for (const std::string_view content : contents) {
    const auto id = model.find(content);
    if (!id) continue;
    items.begin_object().member("id", *id).member("content", content);
    items.member("single_word", false).member("lstrip", false).member("rstrip", false);
    items.member("normalized", false).member("special", true).end_object();
  }
  return out;
}

std::string template_json(const TokenFinder& find, const std::vector<std::string>& single,
                          const std::vector<std::string>& pair) {
  std::string out;
  JsonWriter json(out);
  std::vector<std::string> used;
  json.begin_object().member("type", "TemplateProcessing");
  if (!add_pieces(find, single, json.key("single"), used) ||
      !add_pieces(find, pair, json.key("pair"), used)) {
    return "null";
  }
  json.key("special_tokens").begin_object();
  for (const std::string& token : used) {
    json.key(token).begin_object().member("id", token);
    json.key("ids").array(std::array{*find(token)});
    json.key("tokens").array(std::array{token}).end_object();
  }
  json.end_object().end_object();
  return out;
}

std::string template_json(const TokenModel& model, std::string_view single, std::string_view pair) {
  return template_json([&](std::string_view token) { return model.find(token); }, pieces_of(single),
                       pieces_of(pair));
}

std::string roberta_json(const TokenFinder& find, std::string_view cls, std::string_view sep,
                         bool trim_offsets, bool prefix) {
  const auto cls_id = find(cls);
  const auto sep_id = find(sep);
  if (!cls_id || !sep_id) return "null";
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "RobertaProcessing");
  json.key("sep").begin_array().value(sep).value(*sep_id).end_array();
  json.key("cls").begin_array().value(cls).value(*cls_id).end_array();
  json.member("trim_offsets", trim_offsets).member("add_prefix_space", prefix).end_object();
  return out;
}

std::string byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "ByteLevel").member("add_prefix_space", add_prefix_space);
  json.member("trim_offsets", trim_offsets).member("use_regex", use_regex).end_object();
  return out;
}

std::string cut_bytes_json(std::string_view regex, std::string_view behavior, bool invert,
                           const std::string& bytes) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "Sequence").key("pretokenizers").begin_array();
  json.begin_object().member("type", "Split").key("pattern").begin_object();
  json.member("Regex", regex).end_object();
  json.member("behavior", behavior).member("invert", invert).end_object().raw(bytes);
  json.end_array().end_object();
  return out;
}

std::string metaspace_json(std::string_view scheme, bool split) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "Metaspace")
      .member("replacement", kSpaceMark)
      .member("prepend_scheme", scheme)
      .member("split", split)
      .end_object();
  return out;
}

std::string replace_json(std::string_view kind, std::string_view pattern,
                         std::string_view content) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "Replace").key("pattern").begin_object();
  json.member(kind, pattern).end_object().member("content", content).end_object();
  return out;
}

std::string sequence_json(std::string_view list, const std::vector<std::string>& steps) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "Sequence").key(list).begin_array();
  for (const std::string& step : steps) json.raw(step);
  json.end_array().end_object();
  return out;
}

std::string precompiled_json(std::string_view charsmap) {
  if (charsmap.empty()) return "null";
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "Precompiled")
      .member("precompiled_charsmap", encode_base64(charsmap))
      .end_object();
  return out;
}

FolderConfig with_class_roles(FolderConfig config, std::span<const ClassRole> defaults) {
  for (const auto& [role, token] : defaults) {
    if (!role_of(config, role) && !is_null(config, role))
      config.roles.emplace_back(std::string(role), std::string(token));
  }
  return config;
}

std::vector<ClassRole> known_roles(std::span<const ClassRole> roles, const TokenModel& model) {
  std::vector<ClassRole> out;
  std::ranges::copy_if(roles, std::back_inserter(out),
                       [&](const ClassRole& role) { return model.find(role.token).has_value(); });
  return out;
}

std::optional<std::string> role_of(const FolderConfig& config, std::string_view role) {
  const auto found =
      std::ranges::find_if(config.roles, [role](const auto& entry) { return entry.first == role; });
  return found == config.roles.end() ? std::nullopt : std::optional(found->second);
}

const JsonValue* step_of(const JsonValue& json, const char* member, std::string_view type) {
  const JsonValue* part = json.find(member);
  if (part == nullptr) return nullptr;
  if (part->text_of("type") == type) return part;
  for (const char* list : {"normalizers", "pretokenizers"}) {
    const JsonValue* steps = part->find(list);
    if (steps == nullptr) continue;
    const auto found = std::ranges::find_if(
        steps->items, [&](const JsonValue& step) { return step.text_of("type") == type; });
    if (found != steps->items.end()) return &*found;
  }
  return nullptr;
}

void set_mask_flags(FolderConfig& config, std::string_view kind) {
  config.mask_takes_space = kind == "camembert" || kind.starts_with("mbart") || kind == "nllb" ||
                            kind == "xlnet" || kind == "mpnet";
  config.mask_is_normalized = kind == "nllb";
}

std::string cls_sep_json(const TokenFinder& find, const FolderConfig& config) {
  const std::string cls = role_of(config, "cls").value_or("") + ":0";
  const std::string sep = role_of(config, "sep").value_or("");
  return template_json(find, {cls, "$A:0", sep + ":0"},
                       {cls, "$A:0", sep + ":0", "$B:1", sep + ":1"});
}

std::string bos_eos_json(const TokenFinder& find, const FolderConfig& config, bool bos, bool eos) {
  const auto first = role_of(config, "bos");
  const auto last = role_of(config, "eos");
  bos = setting(config, "add_bos_token", bos) && first;
  eos = setting(config, "add_eos_token", eos) && last;
  const auto part = [&](std::string_view text, std::string_view type) {
    std::vector<std::string> out;
    if (bos) out.push_back(fmt::format("{}:{}", *first, type));
    out.push_back(fmt::format("{}:{}", text, type));
    if (eos) out.push_back(fmt::format("{}:{}", *last, type));
    return out;
  };
  const std::vector<std::string> single = part("$A", "0");
  std::vector<std::string> pair = single;
  for (std::string& piece : part("$B", "1")) pair.push_back(std::move(piece));
  return template_json(find, single, pair);
}

TokenFinder finder_with(const std::shared_ptr<const TokenModel>& model,
                        const std::vector<AddedToken>& tokens) {
  std::vector<std::string> warnings;  // given again when the tokenizer is made
  const auto added = std::make_shared<const AddedTokens>(tokens, *model, nullptr, warnings);
  return [model, added](std::string_view token) -> std::optional<TokenId> {
    if (const AddedToken* found = added->find(token)) return found->id;
    return model->find(token);
  };
}

std::string tokenizer_json(const TokenizerText& text) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().raw_member("normalizer", text.normalizer);
  json.raw_member("pre_tokenizer", text.pre_tokenizer);
  json.raw_member("post_processor", text.post_processor).raw_member("decoder", text.decoder);
  json.key("added_tokens").begin_array().raw(text.added_tokens).end_array().end_object();
  return out;
}

}  // namespace masque::text
