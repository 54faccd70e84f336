#include "text/convert.hpp"

#include <algorithm>
#include <array>

#include "base/json_writer.hpp"
#include "base/split.hpp"

namespace masque::text {

namespace {

/// The pieces of a template, a list; false if the model lacks a token. Adds its tokens to `used`.
bool add_pieces(const TokenModel& model, std::string_view pattern, JsonWriter& json,
                std::vector<std::string>& used) {
  json.begin_array();
  for (const std::string_view piece : split_terminated(pattern, ' ')) {
    const std::string name(piece.substr(0, piece.size() - 2));
    const std::string_view type = piece.substr(piece.size() - 1);
    const bool text = name == "$A" || name == "$B";
    if (!text && !model.find(name)) return false;
    if (!text && std::find(used.begin(), used.end(), name) == used.end()) used.push_back(name);
    json.begin_object().key(text ? "Sequence" : "SpecialToken").begin_object();
    json.member("id", text ? name.substr(1) : name).raw_member("type_id", type);
    json.end_object().end_object();
  }
  json.end_array();
  return true;
}

}  // namespace

std::string added_json(const TokenModel& model, std::string_view content, bool special,
                       bool lstrip) {
  const auto id = model.find(content);
  if (!id) return {};
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("id", *id)
      .member("content", content)
      .member("single_word", false)
      .member("lstrip", lstrip)
      .member("rstrip", false)
      .member("normalized", false)
      .member("special", special)
      .end_object();
  return out;
}

std::string added_json(const TokenModel& model, const std::vector<std::string_view>& contents) {
  std::string out;
  JsonWriter items(out);
  for (const std::string_view content : contents) items.raw(added_json(model, content, true));
  return out;
}

std::string template_json(const TokenModel& model, std::string_view single, std::string_view pair) {
  std::string out;
  JsonWriter json(out);
  std::vector<std::string> used;
  json.begin_object().member("type", "TemplateProcessing");
  if (!add_pieces(model, single, json.key("single"), used) ||
      !add_pieces(model, pair, json.key("pair"), used)) {
    return "null";
  }
  json.key("special_tokens").begin_object();
  for (const std::string& token : used) {
    json.key(token).begin_object().member("id", token);
    json.key("ids").array(std::array{*model.find(token)});
    json.key("tokens").array(std::array{token}).end_object();
  }
  json.end_object().end_object();
  return out;
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
