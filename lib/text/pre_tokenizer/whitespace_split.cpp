// Words between white space.
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

class WhitespaceSplit : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kWhiteSpace); }, out);
    };
    split_words(words, find, false, SplitBehavior::kRemoved);
  }
};

const PreTokenizerRegistration kRegistration{
    {"WhitespaceSplit", [](const PartFields&) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<WhitespaceSplit>();
     }}};

}  // namespace

}  // namespace masque::text
