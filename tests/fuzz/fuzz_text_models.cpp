// A line of tokens for each model, then words: the models against plain second implementations. The
// first byte chooses the model; lines are separated by line feeds; the first of them has the
// tokens, separated by spaces.
#include <set>
#include <sstream>

#include "base/escape.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/naive_models.hpp"

namespace masque::text {
namespace {

bool utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const int bytes = decode_utf8(text.substr(at), c);
    if (bytes == 0) return false;
    at += static_cast<std::size_t>(bytes);
  }
  return true;
}

const char* wordpiece(const std::vector<std::string>& tokens, const std::string& word) {
  std::vector<std::string> all = tokens;
  all.emplace_back("[UNK]");
  const auto vocab = numbered(all);
  std::vector<Piece> got;
  make_wordpiece(vocab, {})->tokenize(word, got);
  return got == test::naive_wordpiece(vocab, {}, word) ? nullptr : "WordPiece";
}

const char* bpe(const std::vector<std::string>& tokens, const std::string& word) {
  // Characters, then every token that two earlier ones make.
  std::set<std::string> seen;
  std::vector<std::string> all;
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string& token : tokens) {
    for (const std::string& c : test::characters_of(token)) {
      if (seen.insert(c).second) all.push_back(c);
    }
  }
  for (const std::string& token : tokens) {
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::string left = token.substr(0, cut);
      const std::string right = token.substr(cut);
      if (seen.count(left) == 0 || seen.count(right) == 0 || !seen.insert(token).second) continue;
      merges.emplace_back(left, right);
      all.push_back(token);
    }
  }
  const auto vocab = numbered(all);
  std::vector<Piece> got;
  make_bpe(vocab, merges, {}, "fuzz")->tokenize(word, got);
  return got == test::naive_bpe(vocab, merges, word) ? nullptr : "BPE";
}

const char* unigram(const std::vector<std::string>& tokens, const std::string& word) {
  std::vector<ScoredPiece> pieces = {{"<unk>", -1}};
  std::set<std::string> seen = {"<unk>"};
  double least = -1;
  for (const std::string& token : tokens) {
    if (!seen.insert(token).second) continue;
    pieces.push_back({token, -static_cast<double>(token.back() & 15) / 4});
    least = std::min(least, pieces.back().score);
  }
  std::vector<Piece> got;
  make_unigram(pieces, {0}, "fuzz")->tokenize(word, got);
  if (word.find("<unk>") != std::string::npos) return nullptr;
  double score = 0;
  for (const Piece& piece : got) {
    const std::string part = word.substr(piece.begin, piece.end - piece.begin);
    score += piece.id == 0 ? (least - 10) * static_cast<double>(test::characters_of(part).size())
                           : pieces[static_cast<std::size_t>(piece.id)].score;
  }
  return score == test::naive_unigram_score(pieces, word) ? nullptr : "Unigram";
}

const char* wrong(std::string_view input) {
  const std::string text(input);
  if (text.size() < 2 || text.size() > 2000 || !utf8(text)) return nullptr;
  std::istringstream lines(text.substr(1));
  std::string line;
  std::getline(lines, line);
  std::istringstream list(line);
  std::vector<std::string> tokens;
  for (std::string token; list >> token;) tokens.push_back(token);
  for (std::string word; std::getline(lines, word);) {
    const char* result = text[0] == 'w'   ? wordpiece(tokens, word)
                         : text[0] == 'b' ? bpe(tokens, word)
                                          : unigram(tokens, word);
    if (result != nullptr) return result;
  }
  return nullptr;
}

}  // namespace
}  // namespace masque::text

MASQUE_FUZZ_TARGET(masque::text::wrong)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_lines)
