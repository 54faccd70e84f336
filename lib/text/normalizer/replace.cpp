// Replaces what a pattern finds.
#include <utility>
#include <vector>

#include "text/normalizer.hpp"
#include "text/part_fields.hpp"
#include "text/pattern.hpp"
#include "text/rewriter.hpp"

namespace masque::text {

namespace {

class Replace : public Normalizer {
 public:
  Replace(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(AlignedText& text) const override {
    std::vector<Stretch> found;
    pattern_->find(text.text, found);
    AlignedText out;
    std::size_t at = 0;
    const auto keep_until = [&](std::size_t end) {
      out.text.append(text.text, at, end - at);
      const auto from = text.origin.begin();
      out.origin.insert(out.origin.end(), from + static_cast<std::ptrdiff_t>(at),
                        from + static_cast<std::ptrdiff_t>(end));
    };
    for (const Stretch& match : found) {
      keep_until(match.begin);
      out.text += content_;
      // The content stands for the last character that it replaces, or else for what is before it.
      const std::uint32_t start = text.origin.front().begin;
      const Span span = match.begin < match.end ? text.origin[match.end - 1]
                        : out.origin.empty()    ? Span{start, start}
                                                : out.origin.back();
      out.origin.resize(out.text.size(), span);
      check_growth(out);
      at = match.end;
    }
    keep_until(text.text.size());
    text = std::move(out);
  }

 private:
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

const NormalizerRegistration kRegistration{
    {"Replace", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Replace>(make_pattern(fields), fields.text("content"));
     }}};

}  // namespace

}  // namespace masque::text
