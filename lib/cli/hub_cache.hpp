// Models of the local Hugging Face cache by their names: hf:OWNER/NAME.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::cli {

/// Whether `value` is meant as the name of a model in the cache: it begins with "hf:".
bool is_hub_name(std::string_view value);

/// Returns the folder of the cache, as huggingface_hub finds it: HF_HUB_CACHE of the environment,
/// else HUGGINGFACE_HUB_CACHE, else hub/ in HF_HOME, else in huggingface/ of XDG_CACHE_HOME, else
/// in ~/.cache/huggingface. A variable that is empty does not count.
std::string hub_cache_folder();

/// Returns the names of the models in the folder `cache`, sorted: "hf:gpt2", "hf:Qwen/Qwen3-0.6B".
/// Empty if it cannot be read.
std::vector<std::string> hub_names(const std::string& cache);

/// Returns the folder of the model `name`, "hf:OWNER/NAME" or "hf:OWNER/NAME@REVISION", in the
/// folder `cache`: that of the commit in refs/REVISION (refs/main without a revision), else of the
/// commit REVISION. Reads names and one line, and downloads nothing. Throws UsageError for a name
/// that is none, and InputError for a model or revision that is not there, with what is.
std::string hub_snapshot(std::string_view name, const std::string& cache);

}  // namespace masque::cli
