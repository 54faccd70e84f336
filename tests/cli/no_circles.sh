#!/usr/bin/env bash
# No circles of includes: a header and the source of the same name are one node. What a file shares with the parts that bear its
# name (softmax, softmax_rows) does not count.
#   no_circles.sh LIB
set -euo pipefail
cd "$1"
edges=$(grep -rn --include='*.hpp' --include='*.cpp' '^ *# *include "' . | awk -F: '
  function node(path) { sub(/^\.\//, "", path); sub(/(-inl)?\.[hc]pp$/, "", path); return path }
  { split($3, part, "\""); from = node($1); to = node(part[2]); if (index(from, to) != 1 && index(to, from) != 1) print from, to }' | sort -u)
[ "$(wc -l <<<"$edges")" -gt 500 ] || { echo "too few includes: something has changed" >&2; exit 1; }
# tsort names the members of each circle.
if ! loops=$(tsort <<<"$edges" 2>&1 >/dev/null) || [ -n "$loops" ]; then
  sed 's/^tsort: //; s/^-: input contains a loop:/a circle:/' <<<"$loops"
  exit 1
fi
