// A strict reader of the XML that we write: enough to say whether it is well-formed.
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/escape.hpp"

namespace masque::draw {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< directly in it, entities resolved
};

/// Reads one document without declarations, comments and CDATA. What is wrong with it goes to
/// `fault`; the elements come in the order of their start.
class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : text_(text) { read(); }
  std::string fault;
  std::vector<XmlElement> elements;

 private:
  bool fail(const char* why) {
    if (fault.empty()) fault = std::string(why) + " at byte " + std::to_string(at_);
    return false;
  }
  bool skip(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '-' || text_[at_] == ':')) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Characters up to one of `ends`, which stays.
  bool characters(std::string_view ends, std::string& out) {
    while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos) {
      if (text_[at_] == '<') return fail("a bare <");
      if (text_[at_] == '&') {
        bool is_known = false;
        for (const auto& [entity, character] : std::map<std::string_view, char>{
                 {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}) {
          if (!skip(entity)) continue;
          out += character;
          is_known = true;
          break;
        }
        if (!is_known) return fail("an unknown entity");
        continue;
      }
      if (text_.substr(at_).starts_with("]]>")) return fail("]]>");
      char32_t c = 0;
      const int length = decode_utf8(text_.substr(at_), c);
      const bool is_char =
          length > 0 && (c >= 0x20 || c == '\n' || c == '\t') && c != 0xFFFE && c != 0xFFFF;
      if (!is_char) return fail("not a character of XML");
      out += text_.substr(at_, static_cast<std::size_t>(length));
      at_ += static_cast<std::size_t>(length);
    }
    return at_ < text_.size() || fail("the end");
  }

  bool element() {
    if (!skip("<")) return fail("no element");
    XmlElement start{.name = name()};
    if (start.name.empty()) return fail("no name");
    while (skip(" ")) {
      const std::string attribute = name();
      std::string value;
      if (attribute.empty() || !skip("=\"")) return fail("no attribute");
      if (!characters("\"", value) || !skip("\"")) return fail("no value");
      if (!start.attributes.emplace(attribute, value).second) return fail("an attribute twice");
    }
    const std::size_t index = elements.size();
    elements.push_back(start);
    if (skip("/>")) return true;
    if (!skip(">")) return fail("no >");
    while (true) {
      if (!characters("<", elements[index].text)) return false;
      if (skip("</")) return (name() == start.name && skip(">")) || fail("the wrong end");
      if (!element()) return false;
    }
  }

  void read() {
    if (!element()) return;
    skip("\n");
    if (at_ != text_.size()) fail("more than one element");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace masque::draw
