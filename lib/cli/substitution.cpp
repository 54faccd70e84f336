#include "cli/substitution.hpp"

#include <array>
#include <csignal>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::cli {

namespace {

constexpr std::size_t kMostBytes = 1024;

UsageError wrong(const std::string& word, std::string_view why) {
  return UsageError(fmt::format("'{}': {}", escape(word), why));
}

}  // namespace

bool Substitution::is_one(const std::string& word) {
  return word.starts_with("s/") || word.starts_with("s|");
}

Substitution::Substitution(const std::string& word) : word_(word) {
  const char slash = word.at(1);
  const std::size_t middle = word.find(slash, 2);
  const std::size_t end = middle == std::string::npos ? middle : word.find(slash, middle + 1);
  if (middle == 2 || end == std::string::npos || end + 1 != word.size())
    throw wrong(word, "expected s/PATTERN/REPLACEMENT/");
  replacement_ = word.substr(middle + 1, end - middle - 1);
  try {
    pattern_ = std::regex(word.substr(2, middle - 2));
  } catch (const std::regex_error& error) {
    throw wrong(word, error.what());
  }
}

namespace {

/// A pattern may take for ever, and nothing is written yet: signals end the program meanwhile.
class SignalsKill {
 public:
  SignalsKill() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      before_[i] = {};
      if (sigaction(kSignals[i], nullptr, &before_[i]) != 0 || before_[i].sa_handler == SIG_IGN)
        continue;
      struct sigaction kill = {};
      kill.sa_handler = SIG_DFL;
      sigaction(kSignals[i], &kill, nullptr);
    }
  }
  SignalsKill(const SignalsKill&) = delete;
  SignalsKill& operator=(const SignalsKill&) = delete;
  ~SignalsKill() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

}  // namespace

std::optional<std::string> Substitution::apply(const std::string& text) const {
  if (text.size() > kMostBytes) {
    throw wrong(word_, fmt::format("a name of {} bytes, expected at most {} for a pattern",
                                   text.size(), kMostBytes));
  }
  const SignalsKill interruptible;
  try {
    if (!std::regex_search(text, pattern_)) return std::nullopt;
    return std::regex_replace(text, pattern_, replacement_);
  } catch (const std::regex_error& error) {
    throw wrong(word_, error.what());
  }
}

}  // namespace masque::cli
