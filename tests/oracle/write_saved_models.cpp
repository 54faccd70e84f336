// Saves random models of the families that transformers knows, with what masque computes for
// them: scripts/goldens/saved_models.py reads both.
//
//     write_saved_models FOLDER
//
// Makes FOLDER/NAME (config.json, model.safetensors), FOLDER/NAME.ids (int32) and FOLDER/NAME.out
// (float32: logits, or last states of a model without head; one row an id).
#include <cstdio>
#include <string>
#include <vector>

#include "model/checkpoint/save.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;
using namespace masque::model;

struct Case {
  const char* name;
  const char* family;
  std::size_t head;  ///< of the plan's; another number: none
  const char* config;
};

constexpr std::size_t kNoHead = 9;
constexpr const char* kEncoder =
    R"("vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
       "intermediate_size": 48, "max_position_embeddings": 20, "type_vocab_size": 2)";
constexpr const char* kGpt =
    R"("vocab_size": 61, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 48,
       "n_positions": 20)";

const std::vector<Case> kCases{
    {"bert", "bert", 0, ""},
    {"bert_untied", "bert", 0, R"("tie_word_embeddings": false, "hidden_act": "gelu_new")"},
    {"bert_causal", "bert", 0, R"("is_decoder": true)"},
    {"bert_base", "bert", kNoHead, R"("hidden_act": "relu")"},
    {"roformer", "roformer", 0, R"("embedding_size": 24)"},
    {"roformer_value", "roformer", 0, R"("rotary_value": true)"},
    {"electra_generator", "electra", 0, R"("embedding_size": 24)"},
    {"electra_discriminator", "electra", 1, R"("embedding_size": 24)"},
    {"gpt2", "gpt2", 0, ""},
    {"gpt2_untied", "gpt2", 0, R"("tie_word_embeddings": false, "activation_function": "relu")"},
    {"gpt2_base", "gpt2", kNoHead, ""},
};

class Rows final : public Observer {
 public:
  void logits(Index, Index, MatrixView<const float> x) override { keep(x); }
  void last_states(Index, Index, MatrixView<const float> x) override { keep(x); }
  std::string bytes;

 private:
  void keep(MatrixView<const float> x) {
    for (Index i = 0; i < x.rows; ++i) {
      const auto row = std::as_bytes(x.row_span(i));
      bytes.append(reinterpret_cast<const char*>(row.data()), row.size());
    }
  }
};

Design design_of(const Case& one) {
  const std::string sizes = one.family == std::string("gpt2") ? kGpt : kEncoder;
  const std::string more = *one.config == '\0' ? "" : std::string(", ") + one.config;
  const std::string text = "{" + sizes + more + "}";
  const ModelPlan plan =
      find_family(one.family)->plan(FamilyConfig(store::ModelConfig::parse(text, one.name)));
  Design design = plan.design;
  if (one.head < plan.heads.size()) design.head = plan.heads[one.head].design;
  return design;
}

void write(const Case& one, const std::string& folder) {
  const Design design = design_of(one);
  const std::string path = folder + "/" + one.name;
  save_model(path, design, masque::model::test::random_weights<float>(design, 11));
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 17; ++i) ids.push_back((i * i + 5) % 61);
  Batch batch;
  batch.add(ids);
  Request request;
  request.all_rows = true;
  request.logits = design.head.kind != HeadKind::kNone;
  request.last_states = !request.logits;
  Rows rows;
  open_model(path)->run(batch, request, &rows);
  const auto bytes = std::as_bytes(std::span(ids));
  masque::test::write_file(path + ".ids",
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  masque::test::write_file(path + ".out", rows.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_saved_models FOLDER\n", stderr);
    return 2;
  }
  for (const Case& one : kCases) write(one, argv[1]);
  return 0;
}
