// JSON where a text may stand: recognised by its first lines, and read line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace masque {

/// What JsonDetector calls a JSON array.
inline constexpr std::string_view kJsonArray = "a JSON array";

/// Recognises JSON by the first lines of an input. JSON is an object with a member, or an
/// array of objects and strings, that ends its line; an object or an array that ends its line
/// several lines later; and a line that begins with '{', a quoted key and a colon, unless the
/// object ends within the line and a sentence follows. Before it may come blanks, "null" or "{}"
/// alone on its line, the separators of RFC 7464, a no-break space, or a line that ends with '}'
/// before one that is an object. "[CLS] a", "[1] a", "{a}", "[[a]]", "[1]", "[]" and "{}" are text.
class JsonDetector {
 public:
  /// Takes the next whole lines of the input (the last one of all may lack its line feed), and
  /// returns whether it is sure that the input is JSON. The verdict falls at the first line that
  /// shows it, however the lines are cut. Cost: that of reading the first lines, at most 64 of them
  /// and 1 MiB, or one longer line.
  bool add(std::string_view lines);
  /// Of JSON: "JSON lines", "a JSON object", "a JSON array". The text is static.
  std::string_view kind() const { return kind_; }

 private:
  void look(bool last);
  void start_again();

  std::string text_;
  bool rest_of_record_ = false;  ///< the first line may be the end of a record that was cut
  std::size_t lines_ = 0;
  std::string_view kind_;
  bool decided_ = false;
};

/// Throws InputError "`name`: JSON lines, expected a text", and then `advice`, if the input that
/// has or begins with the whole lines `text` is JSON.
void refuse_json(std::string_view text, const std::string& name, std::string_view advice = {});

/// Replaces each escape of a lone surrogate in `json` ("\ud83d" without "\udc…" after it), which
/// stands for no character, by that of U+FFFD ("\ufffd"); no other byte changes. Returns how many
/// there were. Cost O(n).
std::uint64_t replace_lone_surrogates(std::string& json);
/// Whether replace_lone_surrogates() would replace some of `json`.
bool has_lone_surrogates(std::string_view json);

/// Puts the string that is the member `field` of the object `line`, one line of JSON in UTF-8, into
/// `text`, lone surrogates as U+FFFD, and adds their number to `surrogates`. Returns what is wrong
/// with the line, or nothing.
std::optional<std::string> read_json_text(std::string_view line, std::string_view field,
                                          std::string& text, std::uint64_t& surrogates);

}  // namespace masque
