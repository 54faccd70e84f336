// Several pre-tokenizers, one after the other.
#include <utility>

#include "text/part_fields.hpp"
#include "text/pre_tokenizer.hpp"

namespace masque::text {

namespace {

class PreTokenizers : public PreTokenizer {
 public:
  explicit PreTokenizers(std::vector<std::shared_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(std::vector<AlignedText>& words, bool first) const override {
    const auto begin = [&] { return words.empty() ? 0 : words.front().origin.front().begin; };
    const std::uint32_t start = begin();
    for (const auto& step : steps_) step->split(words, first && begin() == start);
  }

 private:
  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
};

const PreTokenizerRegistration kRegistration{
    {"Sequence", [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       std::vector<std::shared_ptr<const PreTokenizer>> steps;
       for (const JsonValue& item : fields.need("pretokenizers", JsonKind::kArray).items) {
         auto step = make_pre_tokenizer(item, fields.path());
         if (step == nullptr) fields.refuse("a step is null");
         steps.push_back(std::move(step));
       }
       return std::make_shared<PreTokenizers>(std::move(steps));
     }}};

}  // namespace

}  // namespace masque::text
