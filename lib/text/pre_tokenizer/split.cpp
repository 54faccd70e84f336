// Cuts where a pattern matches.
#include "text/split.hpp"

#include <utility>

#include "text/part_fields.hpp"
#include "text/pattern.hpp"
#include "text/pre_tokenizer.hpp"

namespace masque::text {

namespace {

class Split : public PreTokenizer {
 public:
  Split(std::shared_ptr<const Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [&](std::string_view text, std::vector<Stretch>& out) {
      pattern_->find(text, out);
    };
    split_words(words, find, invert_, behavior_);
  }

 private:
  std::shared_ptr<const Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

const PreTokenizerRegistration kRegistration{
    {"Split", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<Split>(make_pattern(fields), read_split_behavior(fields, "behavior"),
                                      fields.flag("invert"));
     }}};

}  // namespace

}  // namespace masque::text
