#include "support/model_cases.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json/json.hpp"
#include "store/checkpoint.hpp"
#include "tensor/convert.hpp"

namespace masque::test {
namespace {

template <class T>
std::vector<T> numbers(const JsonValue& line, std::string_view name) {
  std::vector<T> result;
  if (const JsonValue* list = line.find(name)) {
    for (const JsonValue& item : list->items) {
      result.push_back(static_cast<T>(item.integer().value()));
    }
  }
  return result;
}

std::vector<ModelCase> cases_under(const std::string& folder) {
  std::vector<ModelCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    ModelCase one{entry.path().filename().string(), entry.path().string(), {}};
    std::ifstream in(entry.path() / "records.jsonl");
    for (std::string text; std::getline(in, text);) {
      const JsonValue line = parse_json_file(text, "records.jsonl");
      const JsonValue* mask = line.find("mask");
      one.lines.push_back({numbers<TokenId>(line, "ids"), numbers<Index>(line, "pos"),
                           numbers<Index>(line, "seg"), mask != nullptr ? mask->text : "",
                           numbers<TokenId>(line, "source_ids")});
    }
    cases.push_back(std::move(one));
  }
  std::sort(cases.begin(), cases.end(),
            [](const ModelCase& a, const ModelCase& b) { return a.name < b.name; });
  return cases;
}

}  // namespace

std::vector<ModelCase> model_cases() { return cases_under(MASQUE_TEST_DATA "/model"); }

std::vector<ModelCase> encoder_decoder_cases() {
  return cases_under(MASQUE_TEST_DATA "/encoder_decoder");
}

std::optional<Expected> expected(const ModelCase& model, const std::string& name) {
  const store::Checkpoint file = store::open_checkpoint(model.folder + "/expected.safetensors");
  const store::TensorInfo* info = file.find(name);
  if (info == nullptr) return std::nullopt;
  std::vector<std::byte> bytes(info->bytes());
  file.read(*info, 0, bytes);
  Expected result{info->shape, std::vector<double>(info->elements())};
  to_double(info->dtype, bytes, result.values);
  return result;
}

}  // namespace masque::test
