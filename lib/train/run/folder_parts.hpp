// Parts of a model's folder besides what model/checkpoint/save.hpp writes.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::train {

/// Floats as a tensor to write; they must stay.
store::OutputTensor float_tensor(const std::string& name, const Shape& shape,
                                 std::span<const float> values);

/// The files of a tokenizer whose vocabulary is `path`, which the model's folder gets too: that
/// one, under the name that a folder has it (vocab.txt, tokenizer.json, …), and the settings that
/// its folder has, or has in its name (text/google_folder.hpp). Kept open in `opened`. None of a
/// tokenizer that is built in.
std::vector<store::OutputExtra> tokenizer_files(const std::string& path,
                                                std::deque<InputFile>& opened);

store::OutputExtra text_file(const std::string& name, const std::string& text);

}  // namespace masque::train
