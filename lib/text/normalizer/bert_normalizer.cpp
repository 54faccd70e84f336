// Cleaning, Chinese characters apart, accents, lower case.
#include "text/bert.hpp"
#include "text/normalizer.hpp"
#include "text/part_fields.hpp"

namespace masque::text {

namespace {

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertOptions& options) : options_(options) {}

  void apply(AlignedText& text) const override { bert_normalize(text, options_); }

 private:
  BertOptions options_;
};

const NormalizerRegistration kRegistration{
    {"BertNormalizer", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       const bool lowercase = fields.flag("lowercase");
       return std::make_shared<BertNormalizer>(
           BertOptions{.clean_text = fields.flag("clean_text"),
                       .handle_chinese_chars = fields.flag("handle_chinese_chars"),
                       .strip_accents = fields.optional_flag("strip_accents").value_or(lowercase),
                       .lowercase = lowercase});
     }}};

}  // namespace

}  // namespace masque::text
