#!/usr/bin/env bash
# Memory runs out at an allocation of a command, once or for good: exit code 3, one line, nothing lost, no hang.
#   tests/cli/out_of_memory.sh BIN_DIR TOOL_FAULTS [--all] [PATTERN]
# TOOL_FAULTS is the library of tests/support/tool_faults.cpp; PATTERN (a regular expression) chooses commands. Three allocations of
# each command fail: any one, an early one with all after it, and one of the last ten, where outputs are written; with --all each of the first 200 and 100 later ones, both ways. Allocations
# before main are the loader's and the standard library's.
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: a sanitizer has its own allocator.
# shellcheck disable=SC2154  # every_command, clean, run: of every_command.sh
set -u

faults=$(realpath "${2:?TOOL_FAULTS, the library that lets allocations fail}")
# shellcheck source=tests/cli/every_command.sh
. "$(dirname "$0")/every_command.sh"
use_tools "${1:?BIN_DIR, the folder of the tools}" "a sanitizer has its own allocator"
all=
[ "${3-}" = --all ] && all=1 && shift
pattern=${3-.}

# with ASSIGNMENT COMMAND: runs the command with this variable, preloaded.
with() {
  local code=0
  (cd "$run" && timeout -k 1 60 sh -c "$1 LD_PRELOAD=$faults $2" </dev/null >"$work/run.out" 2>"$work/run.err") || code=$?
  return $code
}

# The allocations of a command that fail: N or N+.
chosen() { # TOTAL
  local i n
  if [ -z "$all" ]; then
    echo "$((RANDOM * 32768 % $1 + RANDOM % 100 + 1)) $((RANDOM % ($1 < 200 ? $1 : 200) + 1))+ $(($1 > 10 ? $1 - RANDOM % 10 : 1))"
    return
  fi
  for ((n = 1; n <= $1 && n <= 200; ++n)); do echo "$n $n+"; done
  for ((i = 0; $1 > 200 && i < 100; ++i)); do
    n=$((200 + (RANDOM * 32768 + RANDOM) % ($1 - 200) + 1))
    echo "$n $n+"
  done
}

RANDOM=7  # the same places every time
failures=0
printf 'allocations\truns\tsurvived\tfailures\tcommand\n'
while read -r kind command; do
  [[ -n $kind && $command =~ $pattern ]] || continue
  clean_run "$command"
  fresh "$kind"
  with "MASQUE_ALLOCATIONS=$work/count" "$command"
  total=$(cat "$work/count") || exit 1
  rm "$work/count"
  runs=0 survived=0 before=$failures
  for n in $(chosen "$total"); do
    fresh "$kind"
    code=0
    with "MASQUE_FAIL_ALLOCATION=$n" "$command" 2>/dev/null || code=$?
    runs=$((runs + 1))
    [ $code != "$clean" ] || survived=$((survived + 1))
    may_leave=
    [[ $n != *+ ]] || may_leave=1
    wrong=$(judge "$kind" "$command" $code)
    [ -z "$wrong" ] || { echo "allocation $n of $command: $wrong" | tee -a "$work/failures" && failures=$((failures + 1)); }
  done
  printf '%d\t%d\t%d\t%d\t%s\n' "$total" $runs $survived $((failures - before)) "$command"
done <<<"$every_command"
unharmed || failures=$((failures + 1))
[ ! -e "$work/failures" ] || cat "$work/failures"  # once more where a log is cut in its middle
[ $failures = 0 ]
