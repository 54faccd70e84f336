// SentencePiece's spaces: written as a character, in front of words.
#include <utility>

#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/rewriter.hpp"
#include "text/split.hpp"

namespace masque::text {

namespace {

/// When to write a mark where the text has no space.
enum class Scheme { kAlways, kFirst, kNever };

Scheme read_scheme(const PartFields& fields) {
  const auto name = fields.optional_text("prepend_scheme");
  // Files before the schemes say add_prefix_space only.
  const bool add = fields.optional_flag("add_prefix_space").value_or(true);
  if (!name) return add ? Scheme::kAlways : Scheme::kNever;
  if (!add && *name != "never") fields.refuse("'add_prefix_space' contradicts 'prepend_scheme'");
  if (*name == "always") return Scheme::kAlways;
  if (*name == "first") return Scheme::kFirst;
  if (*name != "never") fields.refuse("an unknown 'prepend_scheme'");
  return Scheme::kNever;
}

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string mark, Scheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void split(std::vector<AlignedText>& words, bool first) const override {
    const std::uint32_t start = words.empty() ? 0 : words.front().origin.front().begin;
    for (AlignedText& word : words) {
      write_marks(word);
      const bool at_start = first && word.origin.front().begin == start;
      if (scheme_ == Scheme::kNever || (scheme_ == Scheme::kFirst && !at_start)) continue;
      if (!word.text.starts_with(mark_)) prepend(word, mark_);
    }
    if (!split_) return;
    const auto find = [&](std::string_view text, std::vector<Stretch>& out) {
      for (std::size_t i = text.find(mark_); i != std::string_view::npos;
           i = text.find(mark_, i + mark_.size())) {
        out.push_back({i, i + mark_.size()});
      }
    };
    split_words(words, find, false, SplitBehavior::kMergedWithNext);
  }

 private:
  void write_marks(AlignedText& word) const {
    if (word.text.find(' ') == std::string::npos) return;
    AlignedText out;
    for (std::size_t i = 0; i < word.text.size(); ++i) {
      if (word.text[i] == ' ') {
        out.text += mark_;
      } else {
        out.text += word.text[i];
      }
      out.origin.resize(out.text.size(), word.origin[i]);
    }
    word = std::move(out);
  }

  std::string mark_;
  Scheme scheme_;
  bool split_;
};

const PreTokenizerRegistration kRegistration{
    {"Metaspace", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const std::string mark = fields.text("replacement");
       if (mark.empty() || char_bytes(mark[0]) != mark.size()) {
         fields.refuse("'replacement' is not one character");
       }
       return std::make_shared<Metaspace>(mark, read_scheme(fields),
                                          fields.optional_flag("split").value_or(true));
     }}};

}  // namespace

}  // namespace masque::text
