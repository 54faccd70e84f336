// Longformer: RoBERTa whose tokens read a window on both sides. Beltagy, Peters and Cohan 2020,
// arXiv:2004.05150. No token has global attention, as in transformers' masked LM by default; the
// projections of such tokens are kept. Classes that give tokens global attention by themselves are
// refused.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

constexpr Index kLongformerWindow = 512;

/// Half of it on each side.
Index half_window(const FamilyConfig& config, double window) {
  const auto whole = static_cast<Index>(window);
  if (static_cast<double>(whole) != window || whole < 2 || whole % 2 != 0)
    config.refuse("attention_window", "even numbers above 0");
  return whole / 2;
}

void read_attention_windows(Design& design, const FamilyConfig& config) {
  if (config.raw().spelling("attention_window").starts_with('[')) {
    const auto windows = config.numbers("attention_window");
    if (std::ssize(*windows) != design.num_hidden_layers)
      config.refuse("attention_window", fmt::format("{} numbers, one a layer, or one number",
                                                    design.num_hidden_layers));
    for (std::size_t l = 0; l < windows->size(); ++l)
      design.layers[l].window = half_window(config, (*windows)[l]);
    return;
  }
  const Index half = half_window(config, config.number("attention_window", kLongformerWindow));
  for (LayerDesign& layer : design.layers) layer.window = half;
}

/// Throws InputError for a class that gives tokens global attention unless it is told which: the
/// first one, those of a question, those of an answer.
void check_class(const FamilyConfig& config) {
  constexpr std::array<std::string_view, 3> kWithGlobal{
      "ForSequenceClassification", "ForQuestionAnswering", "ForMultipleChoice"};
  for (const std::string& name : config.raw().architectures()) {
    const auto is_end = [&](std::string_view end) { return name.ends_with(end); };
    if (std::ranges::any_of(kWithGlobal, is_end))
      config.fail("architectures",
                  fmt::format("{} gives tokens global attention, which is not supported; expected "
                              "LongformerModel or a class ForMaskedLM or ForTokenClassification",
                              escape(name)));
  }
}

ModelPlan make_plan(const FamilyConfig& config) {
  check_class(config);
  ModelPlan plan;
  plan.prefix = "longformer.";
  Design& design = plan.design;
  design = encoder_design(config, "longformer", {.pad_token_id = 1});
  config.expect_flag("is_decoder", false);
  if (!design.pad_token_id) config.refuse("pad_token_id", "a token id");
  design.position_offset = *design.pad_token_id + 1;
  if (design.max_position_embeddings <= design.position_offset)
    config.refuse("max_position_embeddings", "more than pad_token_id + 1");
  design.max_position_embeddings -= design.position_offset;
  read_attention_windows(design, config);
  plan.rows = embedding_rows(design);
  append(plan.rows, encoder_layer_rows());
  const std::string self = "~encoder.layer.{l}.attention.self.";
  append(plan.rows, {{self + "query_global", {Role::kGlobalQuery}},
                     {self + "key_global", {Role::kGlobalKey}},
                     {self + "value_global", {Role::kGlobalValue}}});
  plan.heads = {roberta_head(design, config)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "longformer",
    .model_types = {"longformer"},
    .classes = {"Longformer"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "Longformer, no token with global attention, with the masked-LM head or without",
    .plan = make_plan,
    .starts = padded_position_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
