// What a call throws, as text to look into.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace masque::test {

/// The message of the E that `call` throws; "(nothing thrown)" if it returns. Others pass through.
template <class E = InputError, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "(nothing thrown)";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace masque::test
