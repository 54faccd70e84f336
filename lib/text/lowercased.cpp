#include "text/lowercased.hpp"

#include <utility>

#include "text/bert.hpp"
#include "text/rewriter.hpp"

namespace masque::text {

namespace {

class Lowercased final : public Normalizer {
 public:
  explicit Lowercased(std::shared_ptr<const Normalizer> next) : next_(std::move(next)) {}

  void apply(AlignedText& text) const override {
    lower(text);
    check_growth(text);
    if (next_ != nullptr) next_->apply(text);
  }

 private:
  std::shared_ptr<const Normalizer> next_;
};

}  // namespace

Tokenizer lowercased(const Tokenizer& tokenizer) {
  TokenizerParts parts = tokenizer.parts();
  parts.added = tokenizer.added().tokens();
  parts.steps.normalizer = std::make_shared<Lowercased>(parts.steps.normalizer);
  // A fast encoder does not know of the new step.
  parts.make_fast = nullptr;
  parts.warnings.clear();
  return Tokenizer(std::move(parts));
}

}  // namespace masque::text
