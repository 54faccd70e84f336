// Cuts where the script changes: Latin, Han (with Hiragana and Katakana), …
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

/// Stretches of one script; characters of none belong to the one before them.
void find_scripts(std::string_view text, std::vector<Stretch>& out) {
  unsigned last = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const unsigned script = script_of(next_char(text, i));
    if (script != 0 && script != last) {
      out.push_back({begin, begin});
      last = script;
    }
    if (!out.empty()) out.back().end = i;
  }
}

class UnicodeScripts : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    // What stands before the first script goes.
    split_words(words, find_scripts, true, SplitBehavior::kRemoved);
  }
};

const PreTokenizerRegistration kRegistration{
    {"UnicodeScripts", [](const PartFields&) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<UnicodeScripts>();
     }}};

}  // namespace

}  // namespace masque::text
