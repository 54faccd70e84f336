// Runs of word characters and runs of others: \w+|[^\w\s]+.
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

class Whitespace : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      std::uint32_t before = kWhiteSpace;
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t begin = i;
        const std::uint32_t kind = properties(next_char(text, i)).flags & (kWhiteSpace | kWord);
        if (kind != kWhiteSpace && kind == before) {
          out.back().end = i;
        } else if (kind != kWhiteSpace) {
          out.push_back({begin, i});
        }
        before = kind;
      }
    };
    split_words(words, find, true, SplitBehavior::kRemoved);
  }
};

const PreTokenizerRegistration kRegistration{
    {"Whitespace", [](const PartFields&) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<Whitespace>();
     }}};

}  // namespace

}  // namespace masque::text
