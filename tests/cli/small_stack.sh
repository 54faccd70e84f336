#!/usr/bin/env bash
# Every command does with a stack of 64 KiB what it does with more, and no function takes 24 KiB of it.
#   tests/cli/small_stack.sh BIN_DIR OBJDUMP
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: a sanitizer, or no optimisation, takes more.
# shellcheck disable=SC2154  # every_command, clean, run: of every_command.sh
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
objdump=${2:?OBJDUMP}
# shellcheck source=tests/cli/sanitizer.sh
. "$here/sanitizer.sh"
if sanitized "$bin/ckpt"; then
  echo "skipped: this build takes more of the stack"
  exit 77
fi
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/every_command.sh
. "$here/every_command.sh"
make_start "$here/../data" || exit 1
failures=0
commands=0

while read -r kind command; do
  [ -n "$kind" ] || continue
  clean_run "$command"
  fresh "$kind"
  code=0
  (cd "$run" && ulimit -s 64 && sh -c "$command" </dev/null >"$work/run.out" 2>"$work/run.err") || code=$?
  wrong=$(judge "$kind" "$command" $code)
  [ $code = "$clean" ] || wrong="exit $code, expected $clean: $(tail -n 1 "$work/run.err")"
  [ -z "$wrong" ] || { echo "$command: $wrong" && failures=$((failures + 1)); }
  commands=$((commands + 1))
done <<<"$every_command"

# Frames: what a function takes from %rsp, in hexadecimal of five digits and more, or of four from 6000 on.
# lm-train has most layers, embed-fix the rest. Without optimisation frames are larger.
for tool in lm-train embed-fix; do
  "$objdump" -d -C --no-show-raw-insn "$bin/$tool" 2>/dev/null | awk '
    /^[0-9a-f]+ </ { name = $0 }
    /vfmadd/ { optimised = 1 }
    /sub +\$0x([1-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]?|[6-9a-f][0-9a-f][0-9a-f][0-9a-f]),%rsp/ { print name ": " $NF; found = 1 }
    END { exit found && optimised }' >"$work/frames" || { echo "$tool: large frames: $(cat "$work/frames")" && failures=$((failures + 1)); }
done
echo "$commands commands with a stack of 64 KiB, $failures failures"
[ $failures = 0 ]
