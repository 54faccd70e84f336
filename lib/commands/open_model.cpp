#include "commands/open_model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/thread/parallel.hpp"
#include "commands/flow_options.hpp"
#include "commands/gguf_tokenizer.hpp"
#include "commands/model_notes.hpp"
#include "commands/run_options.hpp"
#include "exchange/read_masks.hpp"
#include "kernel/parallel.hpp"
#include "model/layer_list.hpp"
#include "model/masks.hpp"
#include "nn/normalizer.hpp"
#include "records/selection.hpp"
#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/sharding.hpp"
#include "train/data/corpus.hpp"

namespace masque::commands {

namespace {

std::string_view head_text(model::HeadKind kind) {
  switch (kind) {
    case model::HeadKind::kNone: return "no head";
    case model::HeadKind::kMasked: return "masked head";
    case model::HeadKind::kCausal: return "causal head";
    case model::HeadKind::kEnergy: return "energies";
    case model::HeadKind::kText: return "regression head";
    case model::HeadKind::kDiscriminator: break;
  }
  return "discriminator";
}

/// The mask that leaves words to each text, made for a text. `tokens` are the tokenizer's, if there
/// is one.
std::function<mask::Mask(std::span<const TokenId>)> mask_maker(
    const OpenedModel& opened, const std::optional<records::TokenTable>& tokens) {
  const auto mask = model::open_mask(opened.model->design(), opened.options.masks);
  if (!mask) return {};
  const std::string whose = opened.options.masks.empty() ? "the model's mask" : field("mask");
  return [mask = *mask, whose, tokens](std::span<const TokenId> ids) {
    if (!tokens) {
      throw UsageError(fmt::format("{} '{}' depends on the words of each text and needs {}", whose,
                                   mask.shown(), field("tokenizer")));
    }
    return mask.closed(records::word_lengths(ids, *tokens), 0).bind_sequence(std::ssize(ids));
  };
}

void open_tokenizer(const OpenModelOptions& options, const std::string& folder, OpenedModel& opened,
                    cli::Session& session) {
  const auto problem = input_error_message([&] {
    if (!options.tokenizer) opened.tokenizer = open_gguf_tokenizer(folder);
    if (!opened.tokenizer)
      opened.tokenizer =
          text::Tokenizer::open(options.tokenizer.value_or(folder), {.model = folder});
  });
  if (problem) {
    const bool file =
        !options.tokenizer && exists(folder) && !is_folder(folder) && !folder.ends_with(".gguf");
    if (!file) throw InputError(*problem);
    store::open_checkpoint(folder);  // what is no model is refused as such
    throw InputError(folder, fmt::format("a file without a tokenizer, expected a checkpoint "
                                         "folder, or {} with it",
                                         field("tokenizer")));
  }
  session.notes(opened.tokenizer->parts().path, opened.tokenizer->warnings());
  opened.options.mask_token_id = opened.tokenizer->roles().mask;
}

std::vector<Given> given_options(const OpenModelOptions& o) {
  std::vector<Given> given;
  if (o.tokenizer) given.push_back({"tokenizer", *o.tokenizer});
  if (!o.family.empty()) given.push_back({"family", o.family});
  if (o.mask) given.push_back({"mask", *o.mask});
  if (o.keys) given.push_back({"kv", std::string(name_in(mask::key_source_names(), *o.keys))});
  if (o.query)
    given.push_back({"query", std::string(name_in(mask::query_start_names(), *o.query))});
  if (o.normalizer) given.push_back({"normalizer", *o.normalizer});
  return given;
}

/// A vocab.txt in Google's style names no roles. T-TA was trained inside [SOS] … [EOS], which its
/// vocabulary has besides [CLS] and [SEP].
void use_sentence_ends(OpenedModel& opened, const std::string& path, cli::Session& session) {
  const text::TokenizerParts& parts = opened.tokenizer->parts();
  const auto named = [](const auto& role) { return role.first == "cls" || role.first == "sep"; };
  if (opened.model->design().family != "tta" || parts.format != "vocab.txt" ||
      std::any_of(parts.role_names.begin(), parts.role_names.end(), named) ||
      !opened.tokenizer->find("[SOS]") || !opened.tokenizer->find("[EOS]")) {
    return;
  }
  session.note(
      fmt::format("{}: using [SOS] and [EOS] around texts, as a T-TA expects", parts.path));
  opened.tokenizer = text::Tokenizer::open(
      path, {.roles = {{"cls", "[SOS]"}, {"sep", "[EOS]"}}, .model = opened.path});
}

void check_sizes(const OpenedModel& opened) {
  const auto tokens = static_cast<Index>(opened.tokenizer->size());
  const Index rows = opened.model->design().vocab_size;
  if (tokens <= rows) return;
  throw InputError(
      opened.tokenizer->parts().path,
      fmt::format("the tokenizer has {} tokens, expected at most {}, the vocabulary of the model",
                  tokens, rows));
}

}  // namespace

std::vector<Given> given_input(const cli::InputOptions& input) {
  std::vector<Given> given;
  if (input.invalid != cli::Invalid::kReplace)
    given.push_back({"invalid", input.invalid == cli::Invalid::kSkip ? "skip" : "error"});
  if (input.crlf) given.push_back({"crlf", "true", false});
  if (input.field) {
    given.push_back({"field", *input.field});
  } else if (input.format != cli::TextFormat::kAuto) {
    given.push_back({"format", input.json() ? "json" : "text"});
  }
  return given;
}

void add_given(JsonWriter& json, const std::vector<Given>& given) {
  for (const Given& g : given) {
    json.key(g.name);
    if (g.text) {
      json.value(g.value);
    } else {
      json.raw(g.value);
    }
  }
}

void add_open_options(cli::Command& command, OpenModelOptions& options) {
  command.argument("MODEL", options.model,
                   "a checkpoint folder, or hf:OWNER/NAME of the local Hugging Face cache");
  add_folder_options(command, options.tokenizer, options.family);
  add_precision(command, options.precision);
  command.option("--memory", "SIZE", options.memory,
                 "memory for packed weights, for example 8GB; layers beyond it are read from the "
                 "file for each batch [all are packed]");
  command.option(
      "--mask", "EXPR", options.mask,
      "replace the model's mask by an expression of mask-viz for all layers, or by a list with "
      "one per layer");
  add_flow(command, options.keys, options.query);
  command.option("--normalizer", "NAME", options.normalizer,
                 "replace the model's normalizer by one of attn-probe variants, for example "
                 "'log_n(base=512)'; or by a list with one per layer: '3*A, B'");
  add_threads(command, options.common);
  add_quiet(command, options.common);
  add_verbose(command, options.common);
}

void add_batch_tokens(cli::Command& command, OpenModelOptions& options) {
  add_batch_tokens(command, options.batch_tokens);
}

std::string OpenedModel::description() const {
  const model::Design& design = model->design();
  const std::string layers =
      model->encoder() == nullptr
          ? fmt::format("{} layers", design.num_hidden_layers)
          : fmt::format("{} + {} layers", model->encoder()->design().num_hidden_layers,
                        design.num_hidden_layers);
  return fmt::format("{}, {}, {}, {}", design.family, layers,
                     kernel::precision_name(model->precision()), head_text(design.head.kind));
}

OpenedModel open_model(const OpenModelOptions& options, const std::string& folder,
                       bool with_tokenizer, cli::Session& session) {
  kernel::set_threads(options.common.threads > 0 ? options.common.threads : default_threads());
  OpenedModel opened;
  opened.path = options.model;
  opened.folder = folder;
  opened.given = given_options(options);
  opened.options.precision = options.precision;
  opened.options.family = options.family;
  if (options.memory) {
    if (options.precision == kernel::Precision::kF64)
      throw UsageError(fmt::format("{} cannot be combined with {} f64, which keeps all weights",
                                   field("memory"), field("precision")));
    opened.options.memory = store::parse_byte_size(*options.memory, "memory");
  }
  if (options.mask) opened.options.masks = exchange::read_mask_layers(*options.mask);
  opened.options.keys = options.keys;
  opened.options.query = options.query;
  opened.options.decoder = options.decoder;
  if (options.normalizer) {
    // Also an empty name is refused. How long a list must be the model says.
    for (const std::string& one : model::LayerList(*options.normalizer).choices())
      nn::parse_normalizer(one);
    opened.options.normalizer = *options.normalizer;
  }
  std::optional<records::TokenTable> tokens;
  if (with_tokenizer) {
    open_tokenizer(options, folder, opened, session);
  } else {
    // Only the mask token is wanted, and where words end, and only by models that say so themselves
    // if it is missing.
    const auto unread = input_error_message([&] {
      const auto tokenizer =
          text::Tokenizer::open(options.tokenizer.value_or(folder), {.model = folder});
      session.notes(tokenizer.parts().path, tokenizer.warnings());
      opened.options.mask_token_id = tokenizer.roles().mask;
      tokens = train::token_table(tokenizer);
    });
    if (unread && options.tokenizer) throw InputError(*unread);
  }
  opened.model = model::open_model(folder, opened.options);
  if (with_tokenizer) {
    use_sentence_ends(opened, options.tokenizer.value_or(folder), session);
    check_sizes(opened);
    tokens = train::token_table(*opened.tokenizer);
  }
  opened.mask_of = mask_maker(opened, tokens);
  note_model(folder, opened.model->design(), session);
  if (const std::string& head = opened.model->design().missing_head; !head.empty())
    session.detail(fmt::format("{}: {}", folder, head));
  for (const std::string& name : opened.model->unused())
    session.detail(fmt::format("{}: tensor '{}' is not used", folder, name));
  return opened;
}

}  // namespace masque::commands
