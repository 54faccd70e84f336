// Puts a text in front.
#include <utility>

#include "text/normalizer.hpp"
#include "text/part_fields.hpp"
#include "text/rewriter.hpp"

namespace masque::text {

namespace {

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}

  void apply(AlignedText& text) const override { prepend(text, content_); }

 private:
  std::string content_;
};

const NormalizerRegistration kRegistration{
    {"Prepend", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Prepend>(fields.text("prepend"));
     }}};

}  // namespace

}  // namespace masque::text
