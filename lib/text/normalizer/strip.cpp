// Removes white space at the ends.
#include "text/normalizer.hpp"
#include "text/part_fields.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(AlignedText& text) const override {
    std::size_t begin = 0;
    std::size_t end = text.text.size();
    while (left_ && begin < end) {
      std::size_t next = begin;
      if (!is(next_char(text.text, next), kWhiteSpace)) break;
      begin = next;
    }
    while (right_ && begin < end) {
      std::size_t before = end;
      if (!is(previous_char(text.text, before), kWhiteSpace)) break;
      end = before;
    }
    if (end - begin < text.text.size()) text = text.part(begin, end);
  }

 private:
  bool left_;
  bool right_;
};

const NormalizerRegistration kRegistration{
    {"Strip", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Strip>(fields.flag("strip_left"), fields.flag("strip_right"));
     }}};

}  // namespace

}  // namespace masque::text
