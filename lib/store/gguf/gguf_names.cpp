#include "store/gguf/gguf_names.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/gguf/gguf_metadata.hpp"

namespace masque::store {

namespace {

/// Models that end with hidden states.
constexpr std::array<std::string_view, 12> kEncoders{
    "bert",     "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert",
    "neo-bert", "eurobert",   "t5encoder",      "llama-embed",  "clip",         "gemma-embedding"};

const std::string* architecture_of(const Checkpoint& checkpoint) {
  for (const WeightsFile& file : checkpoint.files()) {
    if (const auto* name = find_metadata(file.content.metadata, kGgufArchitecture)) return name;
  }
  return nullptr;
}

/// Which part a file alone is; nothing for a whole model, split or not.
std::optional<GgufPart> part_of(const Checkpoint& checkpoint) {
  if (checkpoint.files().size() > 1) return std::nullopt;
  return gguf_part(checkpoint.files().front().content.typed);
}

}  // namespace

bool has_gguf_names(const Checkpoint& checkpoint) {
  const std::string name(kGgufTokenTable);
  const bool there = checkpoint.find(name) != nullptr || checkpoint.find_opaque(name) != nullptr;
  return there && std::ranges::all_of(checkpoint.files(), [](const WeightsFile& file) {
           return file.content.writer == "gguf";
         });
}

std::string gguf_problem(const Checkpoint& checkpoint) {
  if (!has_gguf_names(checkpoint)) return {};
  return fmt::format(
      "a model of llama.cpp, which runs, but is not trained or grown, expected a folder with "
      "config.json; 'ckpt ls {} -v' prints what is in the file, and embed-fix changes its "
      "vocabulary",
      escape(checkpoint.path()));
}

GgufHead gguf_head(const Checkpoint& checkpoint) {
  const std::string* name = architecture_of(checkpoint);
  if (name == nullptr || part_of(checkpoint)) return GgufHead::kUnknown;
  const bool encoder = std::ranges::find(kEncoders, *name) != kEncoders.end();
  return encoder ? GgufHead::kNone : GgufHead::kTied;
}

std::optional<std::uint64_t> gguf_file_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0;
    case DType::kF16: return 1;
    case DType::kBF16: return 32;
    default: return std::nullopt;
  }
}

void check_whole_gguf(const Checkpoint& checkpoint) {
  const auto part = part_of(checkpoint);
  if (!part) return;
  throw InputError(checkpoint.path(),
                   fmt::format("part {} of {} of a split model, expected all of them, named "
                               "NAME-{:05}-of-{:05}.gguf and so on",
                               part->number + 1, part->count, 1, part->count));
}

void check_one_gguf(const Checkpoint& checkpoint) {
  check_whole_gguf(checkpoint);
  if (checkpoint.files().size() == 1 || !gguf_part(checkpoint.files().front().content.typed))
    return;
  throw InputError(checkpoint.path(),
                   fmt::format("a model split into {} files, expected one file ('ckpt convert' "
                               "with a file as output joins them)",
                               checkpoint.files().size()));
}

const TypedValue* find_gguf_value(const Checkpoint& checkpoint, std::string_view key) {
  for (const WeightsFile& file : checkpoint.files()) {
    if (const TypedValue* value = find_typed(file.content.typed, key)) return value;
  }
  return nullptr;
}

const TypedValue* find_gguf_size(const Checkpoint& checkpoint, std::string_view name) {
  const std::string* architecture = architecture_of(checkpoint);
  if (architecture == nullptr) return nullptr;
  return find_gguf_value(checkpoint, fmt::format("{}.{}", *architecture, name));
}

}  // namespace masque::store
