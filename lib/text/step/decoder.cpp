#include "text/step/decoder.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/text_splice.hpp"
#include "base/string/utf8.hpp"
#include "text/step/json_fields.hpp"
#include "text/step/pattern.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::text {

namespace {

/// WordPiece: pieces without "prefix" ("##") begin a word; with "cleanup" (true) spaces before
/// punctuation go.
class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean) : prefix_(std::move(prefix)), clean_(clean) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i != 0) {
        if (tokens[i].starts_with(prefix_)) {
          tokens[i].erase(0, prefix_.size());
        } else {
          tokens[i].insert(0, " ");
        }
      }
      if (clean_) clean_up_spaces(tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool clean_;
};

std::unique_ptr<Decoder> make_word_piece_decoder(const JsonValue& json, const std::string& path) {
  return std::make_unique<WordPieceDecoder>(text_field(json, "prefix", "##", path),
                                            bool_field(json, "cleanup", true, path));
}

// ByteLevel: characters that stand for bytes.

/// The byte that a character of GPT-2's alphabet stands for; −1 for other characters.
int byte_of_char(char32_t c) {
  if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF))
    return static_cast<int>(c);
  if (c < 0x100 || c > 0x143) return -1;
  const int n = static_cast<int>(c) - 0x100;
  if (n <= 0x20) return n;
  if (n <= 0x42) return n - 0x21 + 0x7F;
  return 0xAD;
}

class ByteLevelDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      const std::size_t before = bytes.size();
      std::string_view rest = token;
      while (!rest.empty()) {
        char32_t c = 0;
        const int size = decode_utf8(rest, c);
        const int byte = size == 0 ? -1 : byte_of_char(c);
        if (byte < 0) break;
        bytes += static_cast<char>(byte);
        rest.remove_prefix(static_cast<std::size_t>(size));
      }
      if (rest.empty()) continue;
      bytes.resize(before);  // a token of another alphabet stays as it is
      bytes += token;
    }
    std::string text;
    append_replacing_invalid(bytes, text);
    tokens.clear();
    tokens.push_back(std::move(text));
  }
};

// ByteFallback: tokens <0xHH> back to bytes.

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The byte of "<0xHH>"; −1 for other tokens.
int byte_of_token(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  // Rust reads "+F" as a number, too.
  const int high = token[3] == '+' ? 0 : hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void flush_bytes(std::string& bytes, std::vector<std::string>& out) {
  if (bytes.empty()) return;
  if (valid_utf8(bytes)) {
    out.push_back(bytes);
  } else {
    out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
  }
  bytes.clear();
}

class ByteFallbackDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    for (std::string& token : tokens) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush_bytes(bytes, out);
      out.push_back(std::move(token));
    }
    flush_bytes(bytes, out);
    tokens = std::move(out);
  }
};

/// Metaspace: "replacement" ("▁"), not empty, back to spaces. "prepend_scheme", else
/// "add_prefix_space" (true), says whether the first token loses it.
class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drop_first)
      : replacement_(std::move(replacement)), drop_first_(drop_first) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && drop_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drop_first_;
};

std::unique_ptr<Decoder> make_metaspace_decoder(const JsonValue& json, const std::string& path) {
  std::string replacement = text_field(json, "replacement", kSpaceMark, path);
  if (replacement.empty()) refuse_json(json, path, "'replacement' is empty, expected a character");
  const bool prefix = bool_field(json, "add_prefix_space", true, path);
  const std::string scheme = text_field(json, "prepend_scheme", prefix ? "always" : "never", path);
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), scheme != "never");
}

/// BPEDecoder: "suffix" ("</w>"), not empty, at the end of words becomes a space.
class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

std::unique_ptr<Decoder> make_bpe_decoder(const JsonValue& json, const std::string& path) {
  std::string suffix = text_field(json, "suffix", "</w>", path);
  if (suffix.empty()) refuse_json(json, path, "'suffix' is empty, expected some text");
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

/// CTC: repeated tokens are one, "pad_token" goes, "word_delimiter_token" is a space with
/// "cleanup".
class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool clean)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), clean_(clean) {}

  void decode(std::vector<std::string>& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (!clean_) continue;
      clean_up_spaces(token);
      replace_all(token, delimiter_, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool clean_;
};

std::unique_ptr<Decoder> make_ctc_decoder(const JsonValue& json, const std::string& path) {
  const auto text = [&](const char* name, std::string_view missing) {
    std::string out = text_field(json, name, missing, path);
    if (out.empty())
      refuse_json(json, path, fmt::format("'{}' is empty, expected some text", name));
    return out;
  };
  return std::make_unique<CtcDecoder>(text("pad_token", "<pad>"), text("word_delimiter_token", "|"),
                                      bool_field(json, "cleanup", true, path));
}

/// Fuse: all tokens become one.
class FuseDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.clear();
    tokens.push_back(std::move(all));
  }
};

/// Replace: "content" for what "pattern" finds, as make_pattern reads it, in every token.
class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void decode(std::vector<std::string>& tokens) const override {
    std::vector<Stretch> found;
    std::size_t before = 0;
    std::size_t after = 0;
    for (std::string& token : tokens) {
      found.clear();
      pattern_->find(token, found);
      if (found.empty()) continue;
      before += token.size();
      std::string out;
      std::size_t at = 0;
      for (const Stretch& match : found) {
        out.append(token, at, match.begin - at);
        out += content_;
        at = match.end;
        check_growth(before, after + out.size());
      }
      token = out.append(token, at);
      after += token.size();
    }
  }

 private:
  /// A file may have steps that double a text again and again.
  static void check_growth(std::size_t before, std::size_t after) {
    constexpr std::size_t kMost = 16 << 20;
    if (after <= before || after <= kMost) return;
    throw InputError(
        fmt::format("the tokenizer's decoder makes {} bytes from {}, expected at most {}", after,
                    before, kMost));
  }

  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

std::unique_ptr<Decoder> make_replace_decoder(const JsonValue& json, const std::string& path) {
  const PartFields fields(json, "decoder", path);
  return std::make_unique<ReplaceDecoder>(make_pattern(fields), fields.text("content"));
}

/// Strip: up to "start" and "stop" of the character "content" off the ends of every token.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::int32_t start, std::int32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (std::int32_t i = 0; i < start_ && token.starts_with(content_); ++i)
        token.erase(0, content_.size());
      for (std::int32_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int32_t start_;
  std::int32_t stop_;
};

std::unique_ptr<Decoder> make_strip_decoder(const JsonValue& json, const std::string& path) {
  const JsonValue& content = get_field(json, "content", JsonKind::kString, path);
  if (count_code_points(content.text) != 1)
    refuse_json(content, path, "'content' is not one character, expected one");
  return std::make_unique<StripDecoder>(content.text, id_field(json, "start", path),
                                        id_field(json, "stop", path));
}

/// Sequence: one of "decoders" after another.
class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps)
      : steps_(std::move(steps)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->decode(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

std::unique_ptr<Decoder> make_sequence_decoder(const JsonValue& json, const std::string& path) {
  std::vector<std::unique_ptr<Decoder>> steps;
  for (const JsonValue& item : get_field(json, "decoders", JsonKind::kArray, path).items)
    steps.push_back(make_decoder(item, path));
  return std::make_unique<SequenceDecoder>(std::move(steps));
}

template <class T>
std::unique_ptr<Decoder> make_plain(const JsonValue& /*json*/, const std::string& /*path*/) {
  return std::make_unique<T>();
}

/// A type of decoder.
struct DecoderKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of its object in the file `path`.
  std::unique_ptr<Decoder> (*make)(const JsonValue& json, const std::string& path);
};

// By name.
constexpr DecoderKind kDecoders[] = {
    {"BPEDecoder", make_bpe_decoder},
    {"ByteFallback", make_plain<ByteFallbackDecoder>},
    {"ByteLevel", make_plain<ByteLevelDecoder>},
    {"CTC", make_ctc_decoder},
    {"Fuse", make_plain<FuseDecoder>},
    {"Metaspace", make_metaspace_decoder},
    {"Replace", make_replace_decoder},
    {"Sequence", make_sequence_decoder},
    {"Strip", make_strip_decoder},
    {"WordPiece", make_word_piece_decoder},
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path) {
  return kind_of_type<DecoderKind>(kDecoders, json, "decoder", path).make(json, path);
}

void clean_up_spaces(std::string& text, CleanUp how) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kRules{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
  if (how == CleanUp::kTokenizers) replace_all(text, " do not", " don't");
}

}  // namespace masque::text
