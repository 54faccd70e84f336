// Parts of a model's folder besides what model/checkpoint/save.hpp writes.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/scratch_file.hpp"
#include "store/checkpoint_writer.hpp"
#include "text/tokenizer.hpp"

namespace masque::train {

inline constexpr const char* kMetricsName = "metrics.jsonl";

/// Floats as a tensor to write; they must stay.
store::OutputTensor float_tensor(const std::string& name, const Shape& shape,
                                 std::span<const float> values);

/// The files of a tokenizer, which the model's folder gets too: its vocabulary, under the name that
/// a folder has it (vocab.txt, tokenizer.json, …), and the settings that its folder has, or has in
/// its name (text/google_folder.hpp), with a tokenizer_class if it would be read in another way
/// next to the text `config` as config.json. Kept open in `opened`. None of a tokenizer that is
/// built in.
std::vector<store::OutputExtra> tokenizer_files(const text::Tokenizer& tokenizer,
                                                const std::string& config,
                                                std::deque<InputFile>& opened);

store::OutputExtra text_file(const std::string& name, const std::string& text);

/// What a run has gathered of its steps, as metrics.jsonl. `metrics` must stay.
store::OutputExtra metrics_file(const ScratchFile& metrics);

}  // namespace masque::train
