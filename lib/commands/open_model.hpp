// The model and the tokenizer that a command opens.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json/json_writer.hpp"
#include "cli/input_lines.hpp"
#include "cli/run_tool.hpp"
#include "model/model.hpp"
#include "text/tokenizer.hpp"

namespace masque::commands {

/// What the options of a command say about the model. Nothing: the checkpoint's own.
struct OpenModelOptions {
  std::string model;                     ///< MODEL, a checkpoint folder or file
  std::optional<std::string> tokenizer;  ///< a folder or file
  std::string family;                    ///< a model_type; empty: that of config.json
  kernel::Precision precision = kernel::Precision::kF32;  ///< of products
  std::optional<std::string> memory;      ///< ModelOptions::memory, as parse_byte_size() reads it
  std::optional<std::string> mask;        ///< a mask, or a list by layer, in the mask language
  std::optional<mask::KeySource> keys;    ///< --kv
  std::optional<mask::QueryStart> query;  ///< --query
  std::optional<std::string> normalizer;  ///< a name, or a list by layer
  bool decoder = false;                   ///< ModelOptions::decoder: the command gives sources
  std::int64_t batch_tokens = 8192;       ///< tokens that run together
  std::optional<std::int64_t> digits;     ///< of results; see ResultFormat
  cli::CommonOptions common;              ///< threads, quiet and verbose
};

/// Declares MODEL, --tokenizer, --family, --precision, --memory, --mask, --kv, --query,
/// --normalizer, -j, -q and -v of `command`, with `options` as their targets.
void add_open_options(cli::Command& command, OpenModelOptions& options);

/// Declares --batch-tokens of `command`, with `options` as its target.
void add_batch_tokens(cli::Command& command, OpenModelOptions& options);

/// An option that changes numbers, as it was given: "max_length", "12".
struct Given {
  std::string name;   ///< the key in JSON
  std::string value;  ///< as JSON has it, without quotes
  bool text = true;   ///< else a number or true
};
/// The options of `input` that change which bytes are read, where they are not the defaults:
/// "invalid", "crlf", "field", "format".
std::vector<Given> given_input(const cli::InputOptions& input);
/// Writes `given` as members of the object that `json` is in: "mask":"causal","max_length":12.
void add_given(JsonWriter& json, const std::vector<Given>& given);

/// What was opened.
struct OpenedModel {
  std::string path;                          ///< OpenModelOptions::model
  std::string folder;                        ///< with the weights; `path`, or inside it
  model::ModelOptions options;               ///< with which `model` was opened
  std::unique_ptr<model::Model> model;       ///< never nullptr
  std::optional<text::Tokenizer> tokenizer;  ///< none if it was not requested
  std::vector<Given> given;  ///< of tokenizer, family, mask, kv, query and normalizer
  /// What a sequence of these ids may read, where the model's mask or --mask leaves words or a seed
  /// to each text; empty: none does. The mask is for Sequence::mask and the like; the function
  /// throws UsageError where there is no tokenizer to find words.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;

  /// Family, number of layers, precision and head: "bert, 12 layers, f32, masked head"; of an
  /// encoder–decoder "t5, 6 + 6 layers, …".
  std::string description() const;
};

/// Opens the model as `options` say and, if `with_tokenizer`, its tokenizer (else only the id of
/// its mask token and where words begin, if it has one), sets the threads of all kernels, and tells
/// on `session` what the checkpoint lacks. `folder` has the weights and is the default of
/// --tokenizer; options.model is the name in messages. Throws InputError if something cannot be
/// read or the tokenizer has more tokens than the model; UsageError for a mask or normalizer that
/// is none or does not fit.
OpenedModel open_model(const OpenModelOptions& options, const std::string& folder,
                       bool with_tokenizer, cli::Session& session);

}  // namespace masque::commands
