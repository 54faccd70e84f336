#!/usr/bin/env bash
# Every command under Valgrind's memcheck: no invalid read or write, no decision by a value that was never set, nothing leaked for good.
#   tests/cli/memcheck.sh BIN_DIR [PATTERN]
# PATTERN (a regular expression) chooses commands. Valgrind emulates AVX2 at most: the kernels of later sets are not seen.
# Exit codes: 0 no finding; 1 findings; 77 skipped: there is no Valgrind, or the build has a sanitizer.
# shellcheck disable=SC2154  # every_command: of every_command.sh
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
pattern=${2-.}
# shellcheck source=tests/cli/sanitizer.sh
. "$here/sanitizer.sh"
if ! command -v valgrind >/dev/null || sanitized "$bin/ckpt"; then
  echo "skipped: no Valgrind, or a sanitizer's build"
  exit 77
fi
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/every_command.sh
. "$here/every_command.sh"
make_start "$here/../data" || exit 1

# In front of each tool a script of its name, which starts it under Valgrind.
mkdir "$work/under"
for tool in $(sed -nE 's/^[a-z]+ ([a-z-]+) .*/\1/p' <<<"$every_command" | sort -u); do
  printf '#!/bin/sh\nexec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --num-callers=20 %s "$@"\n' \
    "$bin/$tool" >"$work/under/$tool"
  chmod +x "$work/under/$tool"
done

commands=0
findings=0
while read -r kind command; do
  [[ -n $kind && $command =~ $pattern ]] || continue
  clean_run "$command"
  rm -rf "$work/run" && cp -r "$work/start" "$work/run"
  code=0
  (cd "$work/run" && PATH=$work/under:$PATH sh -c "$command" </dev/null >"$work/run.out" 2>"$work/run.err") || code=$?
  commands=$((commands + 1))
  [ $code = "$clean" ] && continue
  findings=$((findings + 1))
  echo "exit $code: $command"
  grep -E '^==' "$work/run.err" | head -n 30
done <<<"$every_command"
echo "$commands commands, $findings with findings"
[ $findings = 0 ]
