// Words between white space, with each punctuation mark a word of its own.
#include <utility>

#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

class BertPreTokenizer : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    std::vector<AlignedText> out;
    for (const AlignedText& word : words) {
      const std::string_view text = word.text;
      std::size_t begin = 0;
      const auto end_word = [&](std::size_t end) {
        if (begin < end) out.push_back(word.part(begin, end));
      };
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t at = i;
        const CharProperties& p = properties(next_char(text, i));
        if (!p.has(kWhiteSpace | kPunctuation)) continue;
        end_word(at);
        if (p.has(kPunctuation)) out.push_back(word.part(at, i));
        begin = i;
      }
      end_word(text.size());
    }
    words = std::move(out);
  }
};

const PreTokenizerRegistration kRegistration{
    {"BertPreTokenizer", [](const PartFields&) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<BertPreTokenizer>();
     }}};

}  // namespace

}  // namespace masque::text
