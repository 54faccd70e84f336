// Cuts at the character "delimiter", which goes.
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"

namespace masque::text {

namespace {

class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [this](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [this](char32_t c) { return c == delimiter_; }, out);
    };
    split_words(words, find, false, SplitBehavior::kRemoved);
  }

 private:
  char32_t delimiter_;
};

const PreTokenizerRegistration kRegistration{
    {"CharDelimiterSplit", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const std::string delimiter = fields.text("delimiter");
       std::size_t end = 0;
       const char32_t c = delimiter.empty() ? U'\0' : next_char(delimiter, end);
       if (delimiter.empty() || end != delimiter.size())
         fields.refuse("'delimiter' is not one character");
       return std::make_shared<CharDelimiterSplit>(c);
     }}};

}  // namespace

}  // namespace masque::text
