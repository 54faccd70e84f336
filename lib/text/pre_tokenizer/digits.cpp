// Cuts off numbers, whole or digit by digit.
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kNumeric); }, out);
    };
    split_words(words, find, false,
                individual_ ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }

 private:
  bool individual_;
};

const PreTokenizerRegistration kRegistration{
    {"Digits", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<Digits>(fields.flag("individual_digits"));
     }}};

}  // namespace

}  // namespace masque::text
