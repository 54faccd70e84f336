// Breaks nothing: the words below are not what they look like.
#include <cstdio>

#include "base/good.hpp"

int snprintf_like(char* out) { return std::snprintf(out, 1, "%s", ""); }
