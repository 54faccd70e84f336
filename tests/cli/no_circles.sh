#!/usr/bin/env bash
# No circles of includes: a header and the source of the same name are one node. Only a source may call what includes its own
# header: its definition (NAME_reference) and its loops over a row (NAME_rows).
#   no_circles.sh LIB
set -euo pipefail
cd "$1"
edges=$(grep -rn --include='*.hpp' --include='*.cpp' '^ *# *include "' . | awk -F: '
  function node(path) { sub(/^\.\//, "", path); sub(/(-inl)?\.[hc]pp$/, "", path); return path }
  {
    split($3, part, "\""); from = node($1); to = node(part[2])
    if (from != to && to != from "_reference" && to != from "_rows") print from, to
  }' | sort -u)
[ "$(wc -l <<<"$edges")" -gt 500 ] || { echo "too few includes: something has changed" >&2; exit 1; }
# tsort names the members of each circle.
if ! loops=$(tsort <<<"$edges" 2>&1 >/dev/null) || [ -n "$loops" ]; then
  sed 's/^tsort: //; s/^-: input contains a loop:/a circle:/' <<<"$loops"
  exit 1
fi
