// The files of a converted folder next to its weights.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::store {

/// A config that takes the place of the input's.
struct ConvertedConfig {
  std::string name;  ///< of its file
  std::string text;  ///< its content, a JSON object
};

/// Keeps the files open that it copies: must live until they are written.
class ConvertedFolder {
 public:
  /// `checkpoint` is the input. `config`: instead of the input's; nothing: that one. `dtype` is the
  /// new floating-point type; nothing: that of the input. `markers` are those that the weights have
  /// no place for. `follow_links` as in WriteOptions. What is referred to must outlive it.
  ConvertedFolder(const Checkpoint& checkpoint, const std::optional<ConvertedConfig>& config,
                  std::optional<DType> dtype, const Metadata& markers, bool follow_links);

  /// The index of `shards`, the weights of the output, at least one; the config with its new dtype
  /// and markers, and, if the input is a folder, copies of its other files. Left out, with a note
  /// in `notes`, are files whose name the weights take and weights that would be opened instead of
  /// the new ones. Called once. Throws InputError.
  std::vector<OutputExtra> files(const std::vector<OutputWeights>& shards,
                                 std::vector<std::string>& notes);

 private:
  std::vector<OutputExtra> copies(std::vector<std::string>& notes);
  std::optional<std::string> new_config() const;
  std::string config_file() const;

  const Checkpoint& checkpoint_;
  const std::optional<ConvertedConfig>& config_;
  std::optional<DType> dtype_;
  const Metadata& markers_;
  bool follow_links_;
  std::deque<InputFile> opened_;
};

}  // namespace masque::store
