// Parts of a model's folder besides what model/checkpoint/save.hpp writes.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/scratch_file.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "text/tokenizer.hpp"

namespace masque::train {

/// The file of a run's folder that has one line of JSON for each reported step.
inline constexpr const char* kMetricsName = "metrics.jsonl";

/// The picture of the loss in a run's folder.
inline constexpr const char* kLossPicture = "loss.svg";
/// The chat template next to a tokenizer.
inline constexpr const char* kChatTemplate = "chat_template.jinja";

/// Returns the tensor `name` of this `shape` to write: `values`, row-major, which must stay until
/// it is written.
store::OutputTensor float_tensor(const std::string& name, const Shape& shape,
                                 std::span<const float> values);

/// Whether `tokenizer` is of files that a folder can have: not built in, nor one of lines, which no
/// name in a folder stands for.
bool has_files(const text::Tokenizer& tokenizer);

/// Returns the files of `tokenizer`, which the model's folder gets too: its vocabulary, under the
/// name that a folder has it (vocab.txt, tokenizer.json, …), and the chat template and the settings
/// that its folder has, or has in its name (text/open/google_folder.hpp), with
/// text::needed_settings() next to the text `config` as config.json. The files are kept open in
/// `opened`, which must stay until they are written. None without has_files(). Throws InputError.
std::vector<store::OutputExtra> tokenizer_files(const text::Tokenizer& tokenizer,
                                                const std::string& config,
                                                std::deque<InputFile>& opened);

/// Returns the file `name` with the content `text`.
store::OutputExtra text_file(const std::string& name, const std::string& text);

/// Returns whether the tensors of `weights` are those of `saved`: as many, with the same names,
/// dtypes, shapes and bytes. Reads as far as they are equal. Throws InputError if something cannot
/// be read.
bool are_saved(const store::OutputWeights& weights, const store::Checkpoint& saved);

/// The files of a folder, by name, and the digest of each.
using FileDigests = std::vector<std::pair<std::string, std::string>>;
/// Returns the digests of `weights` and of `files`, before they are written: of tensors that of
/// store::tensors_digest, of other files the XXH3 of their bytes. Reads all of them once. Throws
/// what their sources throw, and Interrupted.
FileDigests digests_of(const store::OutputWeights& weights,
                       const std::vector<store::OutputExtra>& files);
/// Throws InputError that names the first of the files in `folder` that does not have its digest of
/// `digests`, or cannot be read; Interrupted.
void check_digests(const std::string& folder, const FileDigests& digests);

/// Returns the XXH3 of `metrics`, what a run has gathered of its steps. Throws as below.
std::string metrics_digest(const ScratchFile& metrics);
/// Returns the XXH3 of the file kMetricsName of `folder`. Throws InputError if it cannot be read,
/// and Interrupted.
std::string metrics_digest(const std::string& folder);

/// Returns what a run has gathered of its steps, as the file kMetricsName. `metrics` must stay
/// until it is written.
store::OutputExtra metrics_file(const ScratchFile& metrics);

}  // namespace masque::train
