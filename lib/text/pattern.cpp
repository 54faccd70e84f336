#include "text/pattern.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/regex.hpp"
#include "text/part_fields.hpp"
#include "text/utf8.hpp"

namespace masque::text {

namespace {

class Literal : public Pattern {
 public:
  explicit Literal(std::string text) : text_(std::move(text)) {}

  void find(std::string_view text, std::vector<Stretch>& out) const override {
    for (std::size_t i = text.find(text_); i != std::string_view::npos;
         i = text.find(text_, i + text_.size())) {
      out.push_back({i, i + text_.size()});
    }
  }

 private:
  std::string text_;
};

class Gpt2Words : public Pattern {
 public:
  void find(std::string_view text, std::vector<Stretch>& out) const override {
    find_gpt2_words(text, out);
  }
};

class LlamaWords : public Pattern {
 public:
  explicit LlamaWords(int digits) : digits_(digits) {}
  void find(std::string_view text, std::vector<Stretch>& out) const override {
    find_llama_words(text, digits_, out);
  }

 private:
  int digits_;
};

/// Anything else, by Oniguruma.
class Expression : public Pattern {
 public:
  Expression(std::string_view expression, Regex::Refuse refuse)
      : regex_(expression, RegexDialect::kOniguruma, std::move(refuse)) {}

  void find(std::string_view text, std::vector<Stretch>& out) const override {
    if (text.empty()) return;
    RegexSearch search(regex_, text);
    // As the reference walks: of the empty matches behind one that is not empty the first one does
    // not count, wherever it is.
    bool skip_empty = false;
    std::size_t at = 0;
    while (at <= text.size() && search.find(at)) {
      const Stretch match{search.begin(), search.end()};
      at = match.end;
      if (match.begin < match.end) {
        skip_empty = true;
      } else {
        at += at < text.size() ? char_bytes(text, at) : 1;
        if (std::exchange(skip_empty, false)) continue;
      }
      out.push_back(match);
    }
  }

 private:
  Regex regex_;
};

/// An expression as messages show it.
std::string quoted(std::string_view expression) {
  constexpr std::size_t kMostShown = 200;
  const bool whole = expression.size() <= kMostShown;
  return fmt::format("'{}{}'", escape(expression.substr(0, kMostShown)), whole ? "" : "…");
}

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::shared_ptr<const Pattern> make_pattern(const PartFields& fields) {
  const JsonValue& json = fields.need("pattern", JsonKind::kObject);
  const JsonValue* text = json.find("String");
  const JsonValue* regex = json.find("Regex");
  const JsonValue* value = text != nullptr ? text : regex;
  if (json.members.size() != 1 || value == nullptr || !value->is(JsonKind::kString)) {
    fields.refuse("'pattern' is neither a String nor a Regex");
  }
  if (value->text.empty()) fields.refuse("'pattern' is empty");
  if (text != nullptr) return std::make_shared<Literal>(text->text);
  if (regex->text == kGpt2) return std::make_shared<Gpt2Words>();
  if (regex->text == kLlama3) return std::make_shared<LlamaWords>(3);
  if (regex->text == kQwen2) return std::make_shared<LlamaWords>(1);
  return std::make_shared<Expression>(regex->text, [path = fields.path(), part = fields.title(),
                                                    expression = quoted(regex->text)](
                                                       const std::string& why) {
    throw InputError(path, fmt::format("{}: the regular expression {}: {}", part, expression, why));
  });
}

}  // namespace masque::text
