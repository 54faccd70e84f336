// A text, a tokenizer and tiny models for tests of other lengths.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "length/eval.hpp"
#include "model/checkpoint/save.hpp"
#include "model/random_model.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {}
namespace masque::length::test {
using namespace train;

// Other files of a batch write test:: for masque::test.
using namespace masque::test;

using masque::test::TempFolder;

inline const std::string kRotary = R"("position_embedding_type": "rotary")";
inline const std::string kLearned = R"("position_embedding_type": "learned")";
inline const std::string kCausal = R"(, "mask": "causal", "head": "causal")";
inline const std::string kTta = R"(, "streams": "fixed_keys")";

/// A text, a tokenizer with a template or without, and tiny models with random weights.
class Bench {
 public:
  explicit Bench(bool with_template = true) {
    // Without [CLS] and [SEP] there is no template.
    masque::test::write_file(
        folder_ / "vocab.txt",
        with_template ? "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\non\nmat\n.\ndog\n"
                      : "the\ncat\nsat\non\nmat\n.\ndog\n[UNK]\n");
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += i % 3 == 0 ? "the cat sat on the mat.\n" : "the dog sat.\nthe mat sat on.\n";
    masque::test::write_file(folder_ / "text", lines);
    const std::string path = folder_ / "vocab.txt";
    tokenizer_ = std::make_unique<const text::Tokenizer>(
        text::Tokenizer::open(with_template ? path : "whitespace:" + path));
  }

  StreamRequest request(const std::string& objective, std::vector<Index> lengths) const {
    StreamRequest request;
    request.text = folder_ / "text";
    request.objective = objective;
    request.lengths = std::move(lengths);
    request.seed = 5;
    return request;
  }
  LengthStream stream(const StreamRequest& request) const { return {request, *tokenizer_}; }

  const model::TreatableModel& model(const std::string& members) {
    const std::string path = folder_ / fmt::format("model{}", models_.size());
    const model::Design design = model::test::tiny_design(members);
    model::save_model(path, design, model::test::random_weights<float>(design, 7));
    models_.push_back(std::make_unique<model::TreatableModel>(path, "", kernel::Precision::kF32));
    return *models_.back();
  }

  TreatmentGrid grid(const model::TreatableModel& model, const TreatmentLists& lists,
                     std::vector<Index> lengths) {
    TreatmentGrid grid;
    grid.model = &model;
    grid.treatments = make_treatments(lists);
    grid.lengths = std::move(lengths);
    grid.trained = model.trained_length();
    grid.mask_token_id = 4;
    grid.note = [this](const std::string& line) { notes.push_back(line); };
    return grid;
  }

  std::vector<std::string> notes;

 private:
  TempFolder folder_;
  std::unique_ptr<const text::Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<model::TreatableModel>> models_;
};

}  // namespace masque::length::test
