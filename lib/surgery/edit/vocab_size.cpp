#include "surgery/edit/vocab_size.hpp"

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque::surgery {

std::vector<std::string> vocab_size_fields(const model::FamilyNames* family) {
  if (family != nullptr && !family->vocab_fields.empty()) return family->vocab_fields;
  return {"vocab_size"};
}

bool match_vocab_size(CheckpointEdit& edit, const model::FamilyNames* family, std::uint64_t rows,
                      std::vector<std::string>* notes) {
  if (!edit.checkpoint().is_folder()) return true;
  const std::string file = store::config_name(edit.checkpoint().folder());
  const auto text = edit.file_text(file);
  if (!text) return true;
  const store::ModelConfig config = store::ModelConfig::parse(*text, file);
  bool found = false;
  for (const std::string& name : vocab_size_fields(family)) {
    if (!config.has(name)) continue;
    found = true;
    const auto size = config.size(name);
    if (size == rows) continue;
    edit.set_config(name, fmt::format("{}", rows));
    if (notes == nullptr || !size) continue;
    notes->push_back(fmt::format("{}: {} was {}, but the table has {} rows: corrected", file,
                                 escape(name), *size, rows));
  }
  return found;
}

void match_vocab_size(CheckpointEdit& edit, const std::optional<store::ModelConfig>& config,
                      std::vector<std::string>& notes) {
  if (!config || !edit.checkpoint().is_folder()) return;
  std::optional<EmbeddingTable> table;
  const auto none = input_error_message(
      [&] { table = find_embedding_table(edit.checkpoint(), config, std::nullopt); });
  if (!none && table) match_vocab_size(edit, table->family, table->rows(), &notes);
}

}  // namespace masque::surgery
