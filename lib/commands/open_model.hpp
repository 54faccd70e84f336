// The model and the tokenizer that a command opens.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "cli/run_tool.hpp"
#include "model/model.hpp"
#include "text/tokenizer.hpp"

namespace masque::commands {

struct OpenModelOptions {
  std::string model;
  std::optional<std::string> tokenizer;
  std::string family;
  kernel::Precision precision = kernel::Precision::kF32;
  std::optional<std::string> mask;
  std::optional<mask::KeySource> keys;
  std::optional<mask::QueryStart> query;
  std::optional<std::string> normalizer;
  std::int64_t batch_tokens = 8192;
  std::optional<std::int64_t> digits;
  cli::CommonOptions common;
};

/// MODEL, --tokenizer, --family, --precision, --mask, --kv, --query, --normalizer, -j, -q, -v.
void add_open_options(cli::Command& command, OpenModelOptions& options);

/// The same of an opened model.
void add_batch_tokens(cli::Command& command, OpenModelOptions& options);

/// An option that changes numbers, as it was given: "max_length", "12".
struct Given {
  std::string name;
  std::string value;
  bool text = true;  ///< else a number or true
};
/// Members of a JSON object: "mask":"causal","max_length":12.
void add_given(JsonWriter& json, const std::vector<Given>& given);

/// What was opened.
struct OpenedModel {
  std::string path;
  model::ModelOptions options;
  std::unique_ptr<model::Model> model;
  std::optional<text::Tokenizer> tokenizer;
  std::vector<Given> given;  ///< of tokenizer, family, mask, kv, query and normalizer
  /// What a sequence of these ids may read, where the model's mask or --mask leaves words or a seed
  /// to each text; empty: none does. The mask is for Sequence::mask and the like; the function
  /// throws UsageError where there is no tokenizer to find words.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;

  /// "bert, 12 layers, f32".
  std::string description() const;
};

/// Opens the model and, if requested, its tokenizer (else only the id of its mask token, if it has
/// one), sets the threads, and tells what the checkpoint lacks. `folder` has the weights,
/// `tokenizer` the default of --tokenizer. Throws InputError if the tokenizer has more tokens than
/// the model.
OpenedModel open_model(const OpenModelOptions& options, const std::string& folder,
                       bool with_tokenizer, cli::Session& session);

}  // namespace masque::commands
