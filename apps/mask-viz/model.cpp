// mask-viz model: what the layers of a model may read, by its config.json.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/stack_option.hpp"
#include "model/family.hpp"
#include "model/family_config.hpp"
#include "model/known_keys.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "store/config.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string model;
  std::string family;
  std::optional<Index> layer;
  commands::StackOption stack;
  cli::CommonOptions common;
};

/// The masks of a stack of layers.
struct StackMasks {
  std::string name;  ///< of an encoder–decoder; else empty
  std::vector<std::string> masks;
  std::string about;  ///< about()
};

/// What besides masks decides what a layer reads.
std::string about(const model::Design& design) {
  if (design.variants.mixer != nullptr)
    return fmt::format("mixer {} instead of attention", model::mixer_name(design));
  switch (design.streams) {
    case model::Streams::kOne: return "";
    case model::Streams::kTwo: return "queries of a second stream, where it predicts permutations";
    case model::Streams::kFixedKeys: return "keys and values from the embeddings";
    case model::Streams::kTowers: return "each half of the layers reads the embeddings";
  }
  return "";
}

/// Those that `o` asks for: of an encoder–decoder all three without a choice.
std::vector<StackMasks> stacks_of(const Options& o) {
  auto config = store::ModelConfig::find(is_folder(o.model) ? o.model : folder_of(o.model));
  if (!config) throw InputError(o.model, "no config.json, expected a checkpoint folder");
  config = model::with_family_type(*config, o.family);
  const model::Family& family = model::choose_family(*config, o.family);
  // Masks do not depend on how weights are stored.
  const model::FamilyConfig keys(store::without_quantization(*config));
  const model::Design design = model::read_plan(family, keys).design;
  if (!model::makes_decoder(family, *config)) {
    if (o.stack.chosen)
      throw UsageError(
          fmt::format("{}: {} is no encoder–decoder; remove it", field("stack"), o.model));
    return {{"", model::layer_mask_texts(design), about(design)}};
  }
  const model::Design decoder = family.decoder(keys).design;
  // Every token of a target reads its whole source.
  const std::vector<std::string> cross(static_cast<std::size_t>(decoder.num_hidden_layers), "full");
  std::vector<StackMasks> all;
  for (const auto& [name, stack] : o.stack.stacks) {
    if (o.stack.chosen.value_or(stack) != stack) continue;
    all.push_back({std::string(name),
                   stack == commands::Stack::kEncoder   ? model::layer_mask_texts(design)
                   : stack == commands::Stack::kDecoder ? model::layer_mask_texts(decoder)
                                                        : cross,
                   ""});
  }
  return all;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const std::vector<StackMasks> stacks = stacks_of(o);
  if (o.layer) {
    if (stacks.size() > 1) {
      throw UsageError(fmt::format("{}: {} is an encoder–decoder, expected {} as well",
                                   field("layer"), o.model, field("stack")));
    }
    const std::vector<std::string>& masks = stacks.front().masks;
    if (*o.layer >= std::ssize(masks))
      throw UsageError(
          fmt::format("{} {}: expected 0 to {}", field("layer"), *o.layer, masks.size() - 1));
    session.print(masks[static_cast<std::size_t>(*o.layer)] + "\n");
    return cli::ExitCode::kDone;
  }
  if (const std::string& more = stacks.front().about; !more.empty())
    session.note(fmt::format("{}: {}", o.model, more));
  cli::Table table(session, o.common, {"layers", "mask"});
  for (const auto& [name, masks, more] : stacks) {
    const std::string before = stacks.size() > 1 ? name + " " : "";
    for (std::size_t first = 0; first < masks.size();) {
      std::size_t end = first + 1;
      while (end < masks.size() && masks[end] == masks[first]) ++end;
      table.row({end == first + 1 ? fmt::format("{}{}", before, first)
                                  : fmt::format("{}{}-{}", before, first, end - 1),
                 masks[first]});
      first = end;
    }
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_model(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "model", "prints the masks of a model's layers as expressions, by its config.json alone");
  c.example("mask-viz model gemma-2-2b/", "one line for each run of layers with the same mask");
  c.example("mask-viz show \"$(mask-viz model longformer/ --layer 0)\" -n 64",
            "draws the mask of the first layer");
  c.argument("MODEL", o->model,
             "a checkpoint folder, or hf:OWNER/NAME of the local Hugging Face cache");
  c.option("--layer", "N", o->layer, cli::AllowedRange{0, 1e6},
           "print the expression of this layer alone, from 0");
  c.choice("--stack", o->stack.chosen, o->stack.stacks,
           "of an encoder–decoder: the encoder, the decoder, or its attention to the source [all]");
  c.option("--family", "NAME", o->family, "model family [that of config.json]");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
