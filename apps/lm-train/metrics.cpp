#include "metrics.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"

namespace masque::lm_train {

MetricsLine read_metrics_line(std::string_view text, std::uint64_t number,
                              const std::string& path) {
  const JsonValue line = parse_json_file(text, fmt::format("{}: line {}", path, number));
  const JsonValue* at = line.find("step");
  const auto found = at == nullptr ? std::nullopt : at->integer();
  if (!found)
    throw InputError(fmt::format("{}:{}", path, number),
                     "no key 'step', expected a line of metrics");
  MetricsLine result;
  result.step = static_cast<std::int64_t>(*found);
  if (const JsonValue* loss = line.find("loss"))
    result.loss = loss->number().value_or(std::numeric_limits<double>::quiet_NaN());
  result.evaluation = line.find("eval_loss") != nullptr;
  result.never_selected = line.find("never_selected_loss") != nullptr;
  return result;
}

}  // namespace masque::lm_train
