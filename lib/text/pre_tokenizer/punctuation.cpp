// Cuts at punctuation.
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

class Punctuation : public PreTokenizer {
 public:
  explicit Punctuation(SplitBehavior behavior) : behavior_(behavior) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kPunctuation); }, out);
    };
    split_words(words, find, false, behavior_);
  }

 private:
  SplitBehavior behavior_;
};

const PreTokenizerRegistration kRegistration{
    {"Punctuation", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const bool given = fields.optional_text("behavior").has_value();
       return std::make_shared<Punctuation>(given ? read_split_behavior(fields, "behavior")
                                                  : SplitBehavior::kIsolated);
     }}};

}  // namespace

}  // namespace masque::text
