#include "store/convert/converted_folder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "store/config.hpp"
#include "store/markers.hpp"
#include "store/sharding.hpp"
#include "store/tensorflow/bundle_place.hpp"

namespace masque::store {

namespace {

OutputExtra text_file(std::string name, std::string text, unsigned mode) {
  const std::uint64_t size = text.size();
  return {std::move(name), Literal{std::move(text)}, size, mode};
}

}  // namespace

ConvertedFolder::ConvertedFolder(const Checkpoint& checkpoint,
                                 const std::optional<ConvertedConfig>& config,
                                 std::optional<DType> dtype, const Metadata& markers,
                                 bool follow_links)
    : checkpoint_(checkpoint),
      config_(config),
      dtype_(dtype),
      markers_(markers),
      follow_links_(follow_links) {}

/// The name of the output's config.
std::string ConvertedFolder::config_file() const {
  return config_ ? config_->name : config_name(checkpoint_.folder());
}

/// The text of the output's config; nothing if it is the input's file.
std::optional<std::string> ConvertedFolder::new_config() const {
  const auto before = config_ ? ModelConfig::parse(config_->text, config_->name)
                              : ModelConfig::find(checkpoint_.folder());
  if (!before) return std::nullopt;
  std::string text = with_markers(dtype_ ? with_dtype(*before, *dtype_) : before->text(), markers_);
  const bool same = !config_ && text == before->text();
  return same ? std::nullopt : std::optional(std::move(text));
}

std::vector<OutputExtra> ConvertedFolder::copies(std::vector<std::string>& notes) {
  std::vector<std::string> except = {checkpoint_.index_name()};
  for (const WeightsWriter* writer : weights_writers()) {
    if (!writer->shard.empty()) except.push_back(index_name(*writer));
  }
  for (const WeightsFile& file : checkpoint_.files()) {
    except.push_back(file.name);
    except.push_back(side_path(weights_name(checkpoint_, file)));
  }
  auto config = new_config();
  const std::string before = config_name(checkpoint_.folder());
  if (config) {
    except.push_back(before);
    except.push_back(config_file());
  }
  auto extras = other_files(checkpoint_.folder(), except, opened_, follow_links_, notes);
  if (config) {
    const auto mode = InputFile::open(join(checkpoint_.folder(), before)).mode() & 0777U;
    extras.push_back(text_file(config_file(), *std::move(config), mode));
  }
  return extras;
}

std::vector<OutputExtra> ConvertedFolder::files(const std::vector<OutputWeights>& shards,
                                                std::vector<std::string>& notes) {
  std::vector<OutputExtra> extras;
  if (checkpoint_.is_folder()) extras = copies(notes);
  const WeightsWriter& writer = weights_writer(shards.front().writer);
  // Another bundle would be a choice; a graph and a list would lead to what is not there any more.
  const std::string prefix =
      checkpoint_.index_name().substr(0, checkpoint_.index_name().rfind('.'));
  const bool one_of_many = !other_bundle_files(checkpoint_).empty();
  const auto stale = [&](const std::string& name) {
    if (!checkpoint_.bundle() || !is_bundle_file(name)) return false;
    if (name == "checkpoint" && one_of_many) return true;
    return writer.data.empty() || (name != prefix + ".meta" && name != "checkpoint");
  };
  std::size_t left_out = 0;
  std::erase_if(extras, [&](const OutputExtra& extra) {
    const auto takes = [&](const OutputWeights& shard) {
      return extra.name == shard.name ||
             (!writer.data.empty() && extra.name == data_name(writer, shard.name));
    };
    const bool taken = std::ranges::any_of(shards, takes);
    const bool first = is_opened_before(extra.name, std::string(writer.single)) ||
                       (shards.size() > 1 && extra.name == writer.single);
    if (!taken && !first) {
      const bool left = stale(extra.name);
      left_out += left ? 1 : 0;
      return left;
    }
    notes.push_back(fmt::format("'{}' of the input is left out", escape(extra.name)));
    return true;
  });
  if (left_out > 0)
    notes.push_back(fmt::format("{} other files of TensorFlow checkpoints are left out", left_out));
  if (shards.size() > 1) extras.push_back(index_extra(shards));
  const bool config = std::ranges::find(extras, config_file(), &OutputExtra::name) != extras.end();
  if (!markers_.empty() && !config) {
    for (const OutputWeights& shard : shards)
      extras.push_back(text_file(side_path(shard.name), side_file_text(markers_), 0644));
  }
  return extras;
}

}  // namespace masque::store
