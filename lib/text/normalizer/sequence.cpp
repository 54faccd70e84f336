// Several normalizers, one after the other.
#include <utility>
#include <vector>

#include "text/normalizer.hpp"
#include "text/part_fields.hpp"
#include "text/rewriter.hpp"

namespace masque::text {

namespace {

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::shared_ptr<const Normalizer>> steps)
      : steps_(std::move(steps)) {}

  void apply(AlignedText& text) const override {
    for (const auto& step : steps_) {
      step->apply(text);
      check_growth(text);
    }
  }

 private:
  std::vector<std::shared_ptr<const Normalizer>> steps_;
};

const NormalizerRegistration kRegistration{
    {"Sequence", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       std::vector<std::shared_ptr<const Normalizer>> steps;
       for (const JsonValue& item : fields.need("normalizers", JsonKind::kArray).items) {
         auto step = make_normalizer(item, fields.path());
         if (step == nullptr) fields.refuse("a step is null");
         steps.push_back(std::move(step));
       }
       return std::make_shared<Sequence>(std::move(steps));
     }}};

}  // namespace

}  // namespace masque::text
