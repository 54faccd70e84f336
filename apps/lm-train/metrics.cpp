#include "metrics.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/interrupt.hpp"
#include "base/json.hpp"
#include "base/line_input.hpp"
#include "base/split.hpp"

namespace masque::lm_train {

namespace {

constexpr std::uint64_t kLongestMetricsLine = 1 << 20;
constexpr std::size_t kMostShown = 40;

}  // namespace

MetricsLine read_metrics_line(std::string_view text, std::uint64_t number_of_line,
                              const std::string& path) {
  const JsonValue line = parse_json_file(text, fmt::format("{}: line {}", path, number_of_line));
  const JsonValue* at = line.find("step");
  const auto found = at == nullptr ? std::nullopt : at->integer();
  if (!found)
    throw InputError(fmt::format("{}:{}", path, number_of_line),
                     "no key 'step', expected a line of metrics");
  MetricsLine result;
  result.step = static_cast<std::int64_t>(*found);
  const auto number_of = [&](std::string_view name, double& value) {
    const JsonValue* found_value = line.find(name);
    if (found_value == nullptr) return false;
    const std::optional<double> number = found_value->number();
    if (!number && !found_value->is(JsonKind::kNull)) {
      const bool nested = found_value->is(JsonKind::kArray) || found_value->is(JsonKind::kObject);
      const std::string shown = escape(found_value->text.substr(0, kMostShown));
      throw InputError(fmt::format("{}:{}", path, number_of_line),
                       fmt::format("{}: found {}, expected a number", name,
                                   nested ? "several values" : fmt::format("'{}'", shown)));
    }
    value = number.value_or(std::numeric_limits<double>::quiet_NaN());
    return true;
  };
  double loss = 0;
  if (number_of("loss", loss)) result.loss = loss;
  result.evaluation = number_of("eval_loss", result.eval_loss);
  number_of("eval_accuracy", result.eval_accuracy);
  result.never_selected = line.find("never_selected_loss") != nullptr;
  return result;
}

void for_each_metrics_line(const std::string& path,
                           const std::function<void(const MetricsLine&)>& use,
                           const std::function<void(std::string_view)>& batch_use) {
  const InputFile file = InputFile::open(path);
  LineInput lines(file.descriptor(), path, kLongestMetricsLine);
  for (LineBatch batch; lines.read(batch);) {
    throw_if_interrupted();
    std::uint64_t number = batch.first_line;
    for_each_line(batch.text,
                  [&](std::string_view text) { use(read_metrics_line(text, number++, path)); });
    if (batch_use) batch_use(batch.text);
  }
}

}  // namespace masque::lm_train
