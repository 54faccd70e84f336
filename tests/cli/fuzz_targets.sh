#!/usr/bin/env bash
# Every fuzz target has a committed corpus, a line in tests/CMakeLists.txt and a place in the table of its page, and nothing
# else has: fuzz_targets.sh TESTS
set -euo pipefail
tests=$1
status=0
compare() {
  local other
  other=$(diff <(printf '%s\n' "$targets") <(printf '%s\n' "$2") | sed -n 's/^[<>] //p' | tr '\n' ' ') || true
  if [ -n "$other" ]; then
    echo "$1: differs from tests/fuzz/fuzz_*.cpp in $other"
    status=1
  fi
}
targets=$(cd "$tests/fuzz" && printf '%s\n' fuzz_*.cpp | sed 's/^fuzz_//; s/\.cpp$//' | sort)
compare "tests/fuzz/corpus" "$(cd "$tests/fuzz/corpus" && printf '%s\n' * | sed 's/\.tar\.gz$//' | sort)"
compare "tests/CMakeLists.txt" "$(sed -n 's/^masque_add_fuzz_target(\([a-z_0-9]*\) .*/\1/p' "$tests/CMakeLists.txt" | sort)"
compare "tests/fuzz/README.md" "$(sed -n '/^| target /,$p' "$tests/fuzz/README.md" | sed -n 's/^| \(`[^|]*\) |.*/\1/p' | tr ',' '\n' | tr -d '` ' | sort)"
exit "$status"
