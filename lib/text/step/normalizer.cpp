#include "text/step/normalizer.hpp"

#include <utility>
#include <vector>

#include "text/step/base64.hpp"
#include "text/step/bert.hpp"
#include "text/step/byte_level.hpp"
#include "text/step/charsmap.hpp"
#include "text/step/json_fields.hpp"
#include "text/step/normal_form.hpp"
#include "text/step/pattern.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

/// Cleaning, Chinese characters apart, accents, lower case.
class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertOptions& options) : options_(options) {}

  void apply(AlignedText& text) const override { bert_normalize(text, options_); }

 private:
  BertOptions options_;
};

// The normalizers that are a function of the text alone: lower case, character by character; a
// character for each byte, as byte-level BPE writes them; no marks, which a normal form has set
// apart before.

void strip_accents(AlignedText& text) {
  filter(text, [](char32_t c) { return !is(c, kMark); });
}

template <void (*kFunction)(AlignedText&)>
class FunctionNormalizer final : public Normalizer {
 public:
  void apply(AlignedText& text) const override { kFunction(text); }
};

template <void (*kFunction)(AlignedText&)>
std::shared_ptr<const Normalizer> make_function(const PartFields& /*fields*/) {
  return std::make_shared<FunctionNormalizer<kFunction>>();
}

/// The normal forms NFC, NFD, NFKC and NFKD.
template <NormalForm kForm>
class InNormalForm : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, kForm); }
};

template <NormalForm kForm>
std::shared_ptr<const Normalizer> make_form(const PartFields& /*fields*/) {
  return std::make_shared<InNormalForm<kForm>>();
}

// The cleaning of neural machine translation: no controls, one kind of space.

bool is_removed(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    filter(text, [](char32_t c) { return !is_removed(c); });
    Rewriter rewriter(text);
    for (std::size_t i = 0; i < text.text.size();) {
      const char32_t c = next_char(text.text, i);
      rewriter.put(is_space(c) ? U' ' : c, 0);
    }
    rewriter.finish();
  }
};

/// SentencePiece's compiled replacements.
class Precompiled : public Normalizer {
 public:
  Precompiled(std::string_view bytes, const std::string& path) : charsmap_(bytes, path) {}

  void apply(AlignedText& text) const override { replace_graphemes(text, charsmap_); }

 private:
  Charsmap charsmap_;
};

/// Puts a text in front.
class PrependText : public Normalizer {
 public:
  explicit PrependText(std::string content) : content_(std::move(content)) {}

  void apply(AlignedText& text) const override { prepend(text, content_); }

 private:
  std::string content_;
};

/// Replaces what a pattern finds.
class Replace : public Normalizer {
 public:
  Replace(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(AlignedText& text) const override {
    std::vector<Stretch> found;
    pattern_->find(text.text, found);
    AlignedText out;
    std::size_t at = 0;
    const auto keep_until = [&](std::size_t end) {
      out.text.append(text.text, at, end - at);
      const auto from = text.origin.begin();
      out.origin.insert(out.origin.end(), from + static_cast<std::ptrdiff_t>(at),
                        from + static_cast<std::ptrdiff_t>(end));
    };
    for (const Stretch& match : found) {
      keep_until(match.begin);
      out.text += content_;
      // The content stands for the last character that it replaces, or else for what is before it.
      const std::uint32_t start = text.origin.front().begin;
      const Span span = match.begin < match.end ? text.origin[match.end - 1]
                        : out.origin.empty()    ? Span{start, start}
                                                : out.origin.back();
      out.origin.resize(out.text.size(), span);
      check_growth(out);
      at = match.end;
    }
    keep_until(text.text.size());
    text = std::move(out);
  }

 private:
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

/// Removes white space at the ends.
class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(AlignedText& text) const override {
    std::size_t begin = 0;
    std::size_t end = text.text.size();
    while (left_ && begin < end) {
      std::size_t next = begin;
      if (!is(next_char(text.text, next), kWhiteSpace)) break;
      begin = next;
    }
    while (right_ && begin < end) {
      std::size_t before = end;
      if (!is(previous_char(text.text, before), kWhiteSpace)) break;
      end = before;
    }
    if (end - begin < text.text.size()) text = text.part(begin, end);
  }

 private:
  bool left_;
  bool right_;
};

/// Several normalizers, one after the other.
class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::shared_ptr<const Normalizer>> steps)
      : steps_(std::move(steps)) {}

  void apply(AlignedText& text) const override {
    for (const auto& step : steps_) {
      step->apply(text);
      check_growth(text);
    }
  }

 private:
  std::vector<std::shared_ptr<const Normalizer>> steps_;
};

template <class T>
std::shared_ptr<const Normalizer> make_plain(const PartFields& /*fields*/) {
  return std::make_shared<T>();
}

/// A type of normalizer.
struct NormalizerKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of its fields.
  std::shared_ptr<const Normalizer> (*make)(const PartFields& fields);
};

// By name.
constexpr NormalizerKind kNormalizers[] = {
    {"BertNormalizer",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       const bool lowercase = fields.flag("lowercase");
       return std::make_shared<BertNormalizer>(
           BertOptions{.clean_text = fields.flag("clean_text"),
                       .handle_chinese_chars = fields.flag("handle_chinese_chars"),
                       .strip_accents = fields.optional_flag("strip_accents").value_or(lowercase),
                       .lowercase = lowercase});
     }},
    {"ByteLevel", make_function<byte_level>},
    {"Lowercase", make_function<lower>},
    {"NFC", make_form<NormalForm::kNfc>},
    {"NFD", make_form<NormalForm::kNfd>},
    {"NFKC", make_form<NormalForm::kNfkc>},
    {"NFKD", make_form<NormalForm::kNfkd>},
    {"Nmt", make_plain<Nmt>},
    {"Precompiled",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       const auto bytes = decode_base64(fields.text("precompiled_charsmap"));
       if (!bytes) fields.refuse("'precompiled_charsmap' is not base64");
       return std::make_shared<Precompiled>(*bytes, fields.path());
     }},
    {"Prepend",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<PrependText>(fields.text("prepend"));
     }},
    {"Replace",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Replace>(make_pattern(fields), fields.text("content"));
     }},
    {"Sequence",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       std::vector<std::shared_ptr<const Normalizer>> steps;
       for (const JsonValue& item : fields.need("normalizers", JsonKind::kArray).items) {
         auto step = make_normalizer(item, fields.path());
         if (step == nullptr) fields.refuse("a step is null");
         steps.push_back(std::move(step));
       }
       return std::make_shared<Sequence>(std::move(steps));
     }},
    {"Strip",
     [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Strip>(fields.flag("strip_left"), fields.flag("strip_right"));
     }},
    {"StripAccents", make_function<strip_accents>},
};

}  // namespace

std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "normalizer", path);
  return fields.kind_in<NormalizerKind>(kNormalizers).make(fields);
}

}  // namespace masque::text
