#include "text/convert.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.hpp"

namespace masque::text {

namespace {

/// The pieces of a template; false if the model lacks a token. Adds its tokens to `used`.
bool add_pieces(const Model& model, std::string_view pattern, std::string& out,
                std::vector<std::string>& used) {
  for (bool first = true; !pattern.empty(); first = false) {
    const std::size_t end = std::min(pattern.find(' '), pattern.size());
    const std::string name(pattern.substr(0, end - 2));
    const char type = pattern[end - 1];
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
    const bool text = name == "$A" || name == "$B";
    if (!text && !model.find(name)) return false;
    if (!text && std::find(used.begin(), used.end(), name) == used.end()) used.push_back(name);
    out += fmt::format(R"({}{{"{}":{{"id":{},"type_id":{}}}}})", first ? "" : ",",
                       text ? "Sequence" : "SpecialToken", quote_json(text ? name.substr(1) : name),
                       type);
  }
  return true;
}

}  // namespace

std::string added_json(const Model& model, std::string_view content, bool special, bool lstrip) {
  const auto id = model.find(content);
  if (!id) return {};
  return fmt::format(
      R"({{"id":{},"content":{},"single_word":false,"lstrip":{},"rstrip":false,"normalized":false,"special":{}}})",
      *id, quote_json(content), lstrip, special);
}

std::string added_json(const Model& model, const std::vector<std::string_view>& contents) {
  std::string out;
  for (const std::string_view content : contents) {
    const std::string item = added_json(model, content, true);
    if (item.empty()) continue;
    if (!out.empty()) out += ',';
    out += item;
  }
  return out;
}

std::string template_json(const Model& model, std::string_view single, std::string_view pair) {
  std::string first;
  std::string second;
  std::vector<std::string> used;
  if (!add_pieces(model, single, first, used) || !add_pieces(model, pair, second, used))
    return "null";
  std::string tokens;
  for (const std::string& token : used) {
    tokens +=
        fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})", tokens.empty() ? "" : ",",
                    quote_json(token), quote_json(token), *model.find(token), quote_json(token));
  }
  return fmt::format(
      R"({{"type":"TemplateProcessing","single":[{}],"pair":[{}],"special_tokens":{{{}}}}})", first,
      second, tokens);
}

}  // namespace masque::text
