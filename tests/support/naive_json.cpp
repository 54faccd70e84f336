#include "support/naive_json.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace masque::test {

namespace {

struct Refused {};

void require(bool good) {
  if (!good) throw Refused{};
}

class Parser {
 public:
  Parser(std::string_view text, int max_depth) : text_(text), max_depth_(max_depth) {}

  NaiveJson document() {
    NaiveJson root = value(0);
    space();
    require(at_ == text_.size());
    return root;
  }

 private:
  int peek() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }
  int next() {
    require(at_ < text_.size());
    return static_cast<unsigned char>(text_[at_++]);
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  static bool digit(int c) { return c >= '0' && c <= '9'; }

  NaiveJson value(int depth) {
    space();
    NaiveJson v;
    v.begin = at_;
    const int c = peek();
    if (c == '{' || c == '[') {
      require(depth < max_depth_);
      v.kind = static_cast<char>(next());
      c == '{' ? object(v, depth) : array(v, depth);
    } else if (c == '"') {
      v.kind = '"';
      v.text = string();
    } else if (c == '-' || digit(c)) {
      v.kind = '0';
      number();
      v.text = text_.substr(v.begin, at_ - v.begin);
      require(std::isfinite(std::strtod(v.text.c_str(), nullptr)));
    } else {
      v.text = c == 't' ? "true" : c == 'f' ? "false" : "null";
      v.kind = c == 'n' ? 'n' : 't';
      require(text_.substr(at_, v.text.size()) == v.text);
      at_ += v.text.size();
    }
    v.end = at_;
    return v;
  }

  void object(NaiveJson& v, int depth) {
    space();
    if (take('}')) return;
    do {
      space();
      require(peek() == '"');
      std::string name = string();
      require(v.find(name) == nullptr);
      space();
      require(take(':'));
      v.members.push_back({std::move(name), value(depth + 1)});
      space();
    } while (take(','));
    require(take('}'));
  }

  void array(NaiveJson& v, int depth) {
    space();
    if (take(']')) return;
    do {
      v.items.push_back(value(depth + 1));
      space();
    } while (take(','));
    require(take(']'));
  }

  void digits() {
    require(digit(next()));
    while (digit(peek())) ++at_;
  }

  void number() {
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
  }

  unsigned hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const int c = next();
      require(digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
      code = code * 16 + static_cast<unsigned>(digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const unsigned lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
    out += static_cast<char>(lead | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
  }

  void raw_utf8(std::string& out, int lead) {
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    require(lead >= 0xC2 && lead <= 0xF4);
    unsigned code = static_cast<unsigned>(lead) & (0x3FU >> more);
    for (int i = 0; i < more; ++i) {
      const int c = next();
      require((c & 0xC0) == 0x80);
      code = code << 6 | (static_cast<unsigned>(c) & 0x3F);
    }
    require(code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF));
    const std::size_t before = out.size();
    append_utf8(out, code);
    require(out.size() - before == static_cast<std::size_t>(more) + 1);  // not overlong
  }

  std::string string() {
    std::string out;
    require(take('"'));
    while (true) {
      const int c = next();
      require(c >= 0x20);
      if (c == '"') return out;
      if (c >= 0x80) {
        raw_utf8(out, c);
      } else if (c != '\\') {
        out += static_cast<char>(c);
      } else {
        escaped(out);
      }
    }
  }

  void escaped(std::string& out) {
    const int c = next();
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
    const std::size_t letter = kLetters.find(static_cast<char>(c));
    if (letter != std::string_view::npos) {
      out += kMeaning[letter];
      return;
    }
    require(c == 'u');
    unsigned code = hex4();
    if (code >= 0xD800 && code <= 0xDBFF) {
      require(take('\\') && take('u'));
      const unsigned low = hex4();
      require(low >= 0xDC00 && low <= 0xDFFF);
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      require(code < 0xDC00 || code > 0xDFFF);
    }
    append_utf8(out, code);
  }

  std::string_view text_;
  int max_depth_;
  std::size_t at_ = 0;
};

}  // namespace

const NaiveJson* NaiveJson::find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<NaiveJson> naive_json(std::string_view text, int max_depth) {
  try {
    return Parser(text, max_depth).document();
  } catch (const Refused&) {
    return std::nullopt;
  }
}

}  // namespace masque::test
