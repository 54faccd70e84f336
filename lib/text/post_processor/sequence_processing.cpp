// Sequence: one of "processors" after another.
#include "text/json_fields.hpp"
#include "text/post_processor.hpp"

namespace masque::text {

namespace {

class SequenceProcessing final : public PostProcessor {
 public:
  explicit SequenceProcessing(std::vector<std::unique_ptr<PostProcessor>> steps)
      : steps_(std::move(steps)) {}

  void process(std::vector<Encoding>& parts, bool special) const override {
    for (const auto& step : steps_) step->process(parts, special);
  }

  std::size_t added(bool pair) const override {
    std::size_t count = 0;
    for (const auto& step : steps_) count += step->added(pair);
    return count;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> steps_;
};

std::unique_ptr<PostProcessor> make_sequence_processing(const JsonValue& json,
                                                        const std::string& path) {
  std::vector<std::unique_ptr<PostProcessor>> steps;
  for (const JsonValue& item : get_field(json, "processors", JsonKind::kArray, path).items)
    steps.push_back(make_post_processor(item, path));
  return std::make_unique<SequenceProcessing>(std::move(steps));
}

const PostProcessorRegistration kRegistration{{"Sequence", make_sequence_processing}};

}  // namespace

}  // namespace masque::text
