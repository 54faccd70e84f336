#include "model/checkpoint/prefix_hint.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/ascii.hpp"
#include "base/string/split.hpp"
#include "model/family.hpp"

namespace masque::model {

namespace {

/// Whether a shell and a regular expression take a character as it is, a dot escaped.
bool is_plain_character(char c) {
  return is_ascii_small(ascii_small(c)) || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// Whether a prefix is of programs that wrap a model for training, not of a family.
bool is_wrapper_prefix(std::string_view prefix) {
  constexpr auto kWrappers = std::to_array<std::string_view>(
      {"_orig_mod", "auto_model", "backbone", "base_model", "model", "module", "net", "network"});
  prefix.remove_suffix(1);  // the dot
  return std::ranges::all_of(split(prefix, '.'), [&](std::string_view part) {
    return std::ranges::find(kWrappers, part) != kWrappers.end();
  });
}

}  // namespace

std::string prefix_hint(const store::Checkpoint& checkpoint, const std::string& base,
                        std::string_view names) {
  std::string hint;
  const auto look = [&](const std::string& ending, bool is_bare) {
    for (const store::TensorInfo& info : checkpoint.tensors()) {
      if (!hint.empty() || !info.name.ends_with("." + ending)) continue;
      const std::string prefix = info.name.substr(0, info.name.size() - ending.size());
      if ((is_bare && !is_wrapper_prefix(prefix)) ||
          !std::ranges::all_of(prefix, is_plain_character))
        continue;
      std::string pattern;
      for (const char c : prefix) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
      hint = fmt::format(
          "; names begin with '{}', which \"ckpt rename {} {} OUTPUT 's/^{}//'\" removes", prefix,
          escape(checkpoint.path()), field("output"), pattern);
    }
  };
  for_spellings(names, [&](std::string_view spelling) {
    const std::string bare(spelling.starts_with('~') ? spelling.substr(1) : spelling);
    look(base + bare, base.empty());
    look(bare, true);
  });
  return hint;
}

}  // namespace masque::model
