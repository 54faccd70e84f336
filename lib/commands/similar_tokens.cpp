#include "commands/similar_tokens.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/table_stats.hpp"
#include "text/tokenizer.hpp"

namespace masque::commands {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
/// Ids where no vocabulary says how many there are: a list has a place for each up to its largest.
constexpr TokenId kMostIds = 2 << 20;

class TokenFinder {
 public:
  TokenFinder(const std::string& path, const TokenParser& tokens) : path_(path), tokens_(tokens) {}

  TokenId find(std::string_view word, std::uint64_t line) const {
    if (tokens_.tokenizer != nullptr) {
      if (const auto id = tokens_.tokenizer->find(word)) return *id;
    }
    const auto id = parse_unsigned(word);
    const TokenId size = tokens_.table.size > 0 ? tokens_.table.size : kMostIds;
    if (id && *id < static_cast<std::uint64_t>(size)) return static_cast<TokenId>(*id);
    throw InputError(
        path_, fmt::format("line {}: '{}' is not a token of the vocabulary", line, escape(word)));
  }

 private:
  const std::string& path_;
  const TokenParser& tokens_;
};

}  // namespace

namespace {

records::SimilarTokens nearest_in_table(const std::string& path, const TokenParser& tokens,
                                        int threads, cli::Session& session) {
  const store::Checkpoint checkpoint = store::open_decoded(path);
  const surgery::EmbeddingTable table =
      surgery::find_embedding_table(checkpoint, store::find_config(checkpoint), std::nullopt);
  const TokenId size = tokens.table.size;
  if (size > 0 && table.rows() < static_cast<std::uint64_t>(size)) {
    throw InputError(
        path, fmt::format("the embedding table has {} rows, expected at least {}, the size of "
                          "the vocabulary",
                          table.rows(), size));
  }
  surgery::SimilarRowsRequest request{
      .count = 10, .skip = tokens.table.special, .threads = threads};
  if (size > 0) {  // rows after the vocabulary are padding
    request.skip.resize(table.rows(), 0);
    std::fill(request.skip.begin() + size, request.skip.end(), 1);
  }
  request.progress = session.progress("comparing rows");
  const auto rows = surgery::similar_rows(checkpoint, *table.input, request);
  session.clear_progress();
  records::SimilarTokens similar(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) similar[i].assign(rows[i].begin(), rows[i].end());
  return similar;
}

}  // namespace

records::SimilarTokens read_similar(const std::string& path, const TokenParser& tokens, int threads,
                                    cli::Session& session) {
  if (path.ends_with(".safetensors") || is_folder(path)) {
    return nearest_in_table(path, tokens, threads, session);
  }
  const TokenFinder finder(path, tokens);
  records::SimilarTokens similar;
  std::uint64_t number = 0;
  const std::string text = read_text(path, kMostBytes);
  for_each_line(text, [&](std::string_view line) {
    ++number;
    const std::vector<std::string_view> fields = split_at_blanks(line, kBlanksOfLine);
    if (fields.empty()) return;
    const auto id = static_cast<std::size_t>(finder.find(fields.front(), number));
    if (id >= similar.size()) similar.resize(id + 1);
    for (std::size_t i = 1; i < fields.size(); ++i) {
      similar[id].push_back(finder.find(fields[i], number));
    }
  });
  if (similar.empty())
    throw InputError(path, "empty file, expected a token and its similar tokens in each line");
  return similar;
}

std::vector<double> read_weights(const std::string& path, const TokenParser& tokens) {
  const TokenFinder finder(path, tokens);
  std::vector<double> weights(static_cast<std::size_t>(std::max<TokenId>(0, tokens.table.size)));
  std::uint64_t number = 0;
  const std::string text = read_text(path, kMostBytes);
  for_each_line(text, [&](std::string_view line) {
    ++number;
    const std::vector<std::string_view> fields = split_at_blanks(line, kBlanksOfLine);
    if (fields.empty()) return;
    const auto weight = parse_number<double>(fields.back());
    if (fields.size() != 2 || !weight) {
      throw InputError(path, fmt::format("line {}: expected a token and a number", number));
    }
    const auto id = static_cast<std::size_t>(finder.find(fields.front(), number));
    if (id >= weights.size()) weights.resize(id + 1);
    weights[id] = *weight;
  });
  return weights;
}

}  // namespace masque::commands
