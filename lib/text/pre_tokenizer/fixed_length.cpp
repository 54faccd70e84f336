// Cuts into parts of "length" characters (5); the last may be shorter.
#include "text/json_fields.hpp"
#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/split.hpp"

namespace masque::text {

namespace {

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::uint64_t length) : length_(length) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [this](std::string_view text, std::vector<Stretch>& out) {
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < text.size();) {
        if (count++ % length_ == 0) out.push_back({i, i});
        i += char_bytes(text, i);
        out.back().end = i;
      }
    };
    split_words(words, find, true, SplitBehavior::kRemoved);
  }

 private:
  std::uint64_t length_;
};

const PreTokenizerRegistration kRegistration{
    {"FixedLength", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const JsonValue* value =
           find_field(fields.json(), "length", JsonKind::kNumber, fields.path());
       const auto length = value == nullptr ? std::uint64_t{5} : value->integer().value_or(0);
       if (length == 0) fields.refuse("'length' is no positive number");
       return std::make_shared<FixedLength>(length);
     }}};

}  // namespace

}  // namespace masque::text
