// A change in place of two files, a text and a new file, for the tests of what can go wrong.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/file/in_place.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {

/// Files "a" and "b" and the text "text" in a folder; the change makes "made", too.
class InPlaceExample {
 public:
  enum class State { kOld, kNew, kMixed };

  explicit InPlaceExample(const TempFolder& folder) : folder_(&folder) { prepare(); }

  /// The state before the change, whatever there is. "a" and "b" keep their inodes.
  void prepare() const {
    write_file(*folder_ / "a", old_a());
    write_file(*folder_ / "b", old_b());
    write_file(*folder_ / "text", kOldText);
    for (const char* name : {"made", ".a.undo", "..a.undo.masque-tmp", ".a.masque-tmp",
                             ".b.masque-tmp", ".text.masque-tmp", ".made.masque-tmp"})
      std::filesystem::remove(*folder_ / name);
  }

  void change(const std::function<void()>& check = {}) const {
    const LockedFiles locked(folder_->path(), {"a", "b"}, 0);
    InPlaceChange change(locked);
    change.write(0, 1000, as_bytes(std::string(200, 'A')));
    change.write(0, 1500, as_bytes(std::string(100, 'C')));
    change.write(1, 0, as_bytes(std::string(700, 'B')));
    change.set_text("text", kNewText);
    change.set_text("made", "made");
    change.commit(check);
  }

  /// What the folder shows.
  State state() const {
    const auto is = [&](const std::string& a, const std::string& b, const char* text,
                        const char* made) {
      return content("a") == a && content("b") == b && content("text") == text &&
             content("made") == made;
    };
    if (is(old_a(), old_b(), kOldText, "")) return State::kOld;
    std::string a = old_a();
    a.replace(1000, 200, std::string(200, 'A')).replace(1500, 100, std::string(100, 'C'));
    if (is(a, old_b().replace(0, 700, std::string(700, 'B')), kNewText, "made")) return State::kNew;
    return State::kMixed;
  }

  static std::string old_a() { return std::string(2000, 'a'); }
  static std::string old_b() { return std::string(900, 'b'); }

 private:
  static constexpr const char* kOldText = "old text";
  static constexpr const char* kNewText = "a new text, longer than the old one";

  std::string content(const char* name) const {
    const std::string path = *folder_ / name;
    return std::filesystem::exists(path) ? read_file(path) : "";
  }

  const TempFolder* folder_;
};

}  // namespace masque::test
