// What the commands of lm-write latent share: points of lines, and texts of points.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"
#include "generate_options.hpp"
#include "probe/write/latent_texts.hpp"
#include "store/checkpoint.hpp"

namespace masque::lm_write {

/// A model with latent bottlenecks and its tokenizer. Throws InputError for another model.
commands::OpenedModel open_latent_model(const commands::OpenModelOptions& options,
                                        cli::Session& session);

using Words = std::set<std::string, std::less<>>;
/// The words of the file `path`, between blanks. Throws InputError if it has none, and for other
/// texts than UTF-8.
Words read_words(const std::string& path);

/// Points of the lines of a stream, in order. `take` gets the number of a line's first text: of a
/// line of `texts` texts between tabs all of them. Of `texts` 1 the line is the text.
class LatentLines {
 public:
  using Take = std::function<void(std::uint64_t id, std::vector<probe::LatentPoints>&& points)>;

  LatentLines(const commands::OpenedModel& opened, std::int64_t batch_tokens, std::size_t texts,
              Take take);
  /// Returns why the line has no points, or nothing.
  std::optional<std::string> add(std::uint64_t id, std::string_view line);
  void flush() { encoder_.flush(); }

 private:
  const commands::OpenedModel& opened_;
  std::size_t texts_;
  Take take_;
  std::vector<probe::LatentPoints> waiting_;
  probe::LatentEncoder encoder_;
};

/// Writes texts from points, some at a time, in order.
class LatentWriter {
 public:
  /// A text that was written, what stands next to it, and its points.
  struct Written {
    std::uint64_t id = 0;
    std::int64_t number = 0;  ///< what the caller counts: a step, a bottleneck
    std::int64_t sample = 0;
    double score = 0;
    double log_probability = 0;
    bool ended = false;
    std::vector<TokenId> ids;
    std::string text;
    const probe::LatentPoints* points = nullptr;  ///< until the call ends
  };
  using Take = std::function<void(const Written&)>;

  /// `options`: those of declare_text_options, with kind unilm.
  LatentWriter(const GenerateOptions& options, const commands::OpenedModel& opened, Take take);
  void add(std::uint64_t id, std::int64_t number, probe::LatentPoints points);
  void flush();

 private:
  const GenerateOptions& options_;
  const commands::OpenedModel& opened_;
  Take take_;
  probe::GenerateOptions generate_;
  TokenId begin_ = 0;
  std::vector<probe::Prompt> prompts_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> numbers_;
};

/// The points of a file, a row a text: .npy, or the tensor latents of a .safetensors.
class PointFile {
 public:
  /// Opens the file and checks all of it, so that nothing is written for a wrong one. Throws
  /// InputError for other shapes than (texts, layers · size), and for a point without a direction.
  PointFile(const std::string& path, const model::LatentDesign& latent);
  /// Calls `take` with the points of each row, brought to length 1.
  void read(const std::function<void(probe::LatentPoints&& points)>& take) const;

 private:
  std::string path_;
  const model::LatentDesign& latent_;
  store::Checkpoint file_;
  store::TensorInfo tensor_;
};
/// Points of a line as latent encode writes it: numbers between tabs, or a JSON object. Throws
/// InputError.
probe::LatentPoints parse_points(std::string_view line, const model::LatentDesign& latent);

}  // namespace masque::lm_write
