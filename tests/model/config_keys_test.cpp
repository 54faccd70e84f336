// One key of config.json changed: the numbers of transformers, or a refusal, never other numbers.
// The numbers are of scripts/goldens/config_keys.py (transformers 5.24, float64).
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "model/model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

constexpr std::size_t kShown = 3;                            // numbers of each row
const std::vector<TokenId> kKeySource = {7, 21, 4, 30, 11};  // what an encoder reads

/// The first numbers of the last token's last state, and of its logits.
class LastRow final : public Observer {
 public:
  void hidden_states(Index /*sequence*/, Index /*state*/, MatrixView<const double> x) override {
    state_ = first(x.row(x.rows - 1), x.columns);
  }
  void logits(Index /*sequence*/, Index /*first*/, MatrixView<const double> x) override {
    logits_ = first(x.row(x.rows - 1), x.columns);
  }
  std::vector<double> numbers() const {
    std::vector<double> all = state_;
    all.insert(all.end(), logits_.begin(), logits_.end());
    return all;
  }

 private:
  static std::vector<double> first(const double* row, Index columns) {
    return {row, row + std::min(columns, static_cast<Index>(kShown))};
  }
  std::vector<double> state_, logits_;
};

/// What masque makes of a folder: numbers, or nothing and why.
struct Result {
  std::vector<double> numbers;
  std::string refused;
};

Result run(const std::string& folder, const std::vector<TokenId>& ids, bool decoder) {
  Result result;
  const auto refused = test::message_of([&] {
    ModelOptions options;
    options.precision = kernel::Precision::kF64;
    options.decoder = decoder;
    const auto model = open_model(folder, options);
    Batch batch;
    batch.add(ids);
    if (model->encoder() != nullptr) batch.sources = {kKeySource};
    Request request;
    request.hidden_states = true;
    request.logits = model->design().head.kind != HeadKind::kNone;
    request.all_rows = true;
    LastRow seen;
    model->run(batch, request, &seen);
    result.numbers = seen.numbers();
  });
  if (result.numbers.empty()) result.refused = refused;
  return result;
}

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < b.size()) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-5 * std::max(1.0, std::abs(b[i]))) return false;
  }
  return true;
}

std::vector<double> numbers_of(const JsonValue& list) {
  std::vector<double> numbers;
  for (const JsonValue& item : list.items) numbers.push_back(item.number().value());
  return numbers;
}

/// A case of the golden file.
class KeyCase {
 public:
  KeyCase(const JsonValue& line, const std::string& text)
      : name_(line.text_of("case")), line_(line), text_(text) {
    const bool in_model = name_.find('/') == std::string::npos;
    const std::string from = std::string(MASQUE_TEST_DATA) + (in_model ? "/model/" : "/") + name_;
    config_ = test::read_file(from + "/config.json");
    std::filesystem::create_symlink(from + "/model.safetensors", folder_ / "model.safetensors");
    for (const double id : numbers_of(*line.find("ids"))) ids_.push_back(static_cast<TokenId>(id));
  }

  void check() {
    CAPTURE(name_);
    const std::vector<double> base = numbers_of(*line_.find("base"));
    const Result own = with(config_);
    CHECK_MESSAGE(near(own.numbers, base), own.refused);
    for (const JsonValue& change : line_.find("same")->items) check_change(change, base);
    for (const JsonValue& change : line_.find("other")->items)
      check_change(change, numbers_of(change.items.back()));
    CHECK(refused_ < computed_);
  }

 private:
  Result with(const std::string& config) {
    test::write_file(folder_ / "config.json", config);
    return run(folder_.path(), ids_, name_.find('/') != std::string::npos);
  }

  void check_change(const JsonValue& change, const std::vector<double>& wanted) {
    const std::string key = change.items.front().text;
    const bool removed = change.items.size() == 1 || change.items[1].is(JsonKind::kNull);
    std::string config = erase_json_member(config_, {key});
    if (!removed) {
      const JsonValue& value = change.items[1];
      config = set_json_member(config_, {key}, text_.substr(value.begin, value.end - value.begin));
    }
    const Result result = with(config);
    CAPTURE(config);
    CAPTURE(key);
    if (result.numbers.empty()) {
      ++refused_;
      CHECK(test::contains(result.refused, "expected"));
    } else {
      ++computed_;
      CHECK(near(result.numbers, wanted));
    }
  }

  std::string name_;
  const JsonValue& line_;
  const std::string& text_;
  test::TempFolder folder_;
  std::string config_;
  std::vector<TokenId> ids_;
  int refused_ = 0, computed_ = 0;
};

TEST_CASE("a changed key of config.json gives the numbers of transformers or is refused") {
  const std::string path = MASQUE_TEST_DATA "/config_keys/values.jsonl";
  const std::string lines = test::read_file(path);
  std::size_t at = 0;
  int cases = 0;
  while (at < lines.size()) {
    const std::size_t end = lines.find('\n', at);
    const std::string text = lines.substr(at, end - at);
    const JsonValue line = parse_json_file(text, path);
    KeyCase(line, text).check();
    at = end + 1;
    ++cases;
  }
  CHECK(cases > 20);
}

}  // namespace
}  // namespace masque::model
