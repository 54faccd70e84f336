# shellcheck shell=bash
# Sourced by tests that do less, or nothing, in a build with a sanitizer.

# sanitizer_of PROGRAM: the sanitizer that it was built with, asan or tsan; nothing if it has none.
sanitizer_of() {
  local name
  for name in asan tsan; do
    ! grep -q "__${name}_init" "$1" || echo $name
  done
}

# sanitized PROGRAM: whether it was built with a sanitizer.
sanitized() { [ -n "$(sanitizer_of "$1")" ]; }
