// Text in other encodings than UTF-8, recognised by its first bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace masque {

/// The byte-order mark of UTF-8.
inline constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
/// Whether `first`, the first bytes of an input, may be the begin of a byte-order mark that is not
/// complete yet.
bool mark_is_open(std::string_view first);

/// Tells text in UTF-8 from UTF-16, UTF-32 and what is no text, by what an input begins with.
class EncodingCheck {
 public:
  /// `name` is what messages call the input.
  explicit EncodingCheck(std::string name) : name_(std::move(name)) {}
  /// Takes the next bytes of the input; empty: it has ended. Looks at the first 64 KiB. Throws
  /// InputError that names the encoding: for a byte-order mark other than that of UTF-8, and for
  /// NUL bytes, if at least an eighth of the bytes up to the end of a line after one of them (of 64
  /// or more) are control characters or no UTF-8, or of every second byte 85 % are no more than a
  /// space. (A NUL here and there is text.) The verdict does not depend on how the bytes are cut.
  void add(std::string_view bytes);
  /// Whether NUL bytes have come and the verdict has not: it needs more bytes, or the end.
  bool waits() const { return !done_ && first_.find('\0') != std::string::npos; }

 private:
  void judge(std::string_view text) const;

  std::string name_;
  std::string first_;
  bool done_ = false;
};

/// Throws InputError as EncodingCheck does for an input that begins with the bytes `first`, or is
/// all of them; `name` is what the message calls it.
void refuse_other_encoding(std::string_view first, const std::string& name);

}  // namespace masque
