#!/usr/bin/env bash
# A signal arrives where a command looks for one: the exit code is that of the signal, outputs are whole or absent, inputs are as
# they were, and no thread computes for 2 s between two looks.
#   tests/cli/signal_looks.sh BIN_DIR POLL_FAULTS [--all] [PATTERN]
# POLL_FAULTS is the library of tests/support/poll_faults.cpp, which makes the signal. PATTERN (a regular expression) chooses
# commands. A few looks of a third of the commands; with --all of every command the first 40, the last one, and 10 others.
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped.
# shellcheck disable=SC2154  # every_command, clean, run: of every_command.sh
set -u

looks=$(realpath "${2:?POLL_FAULTS, the library that makes the signals}")
# shellcheck source=tests/cli/every_command.sh
. "$(dirname "$0")/every_command.sh"
use_tools "${1:?BIN_DIR, the folder of the tools}" "a sanitizer has a signal handler of its own"
shift 2
all=
[ "${1-}" = --all ] && all=1 && shift
pattern=${1-.}
LD_PRELOAD=$looks MASQUE_LOOKS=$work/looks ckpt check "$work/start/in" >/dev/null 2>&1
if [ ! -s "$work/looks" ]; then
  echo "skipped: the library supports x86-64 only, and programs with symbols"
  exit 77
fi

# looking VARIABLE… COMMAND: runs it with the library; its exit code.
looking() {
  local code=0
  (cd "$run" && timeout -k 1 100 env --default-signal=INT,TERM LD_PRELOAD="$looks" "${@:1:$#-1}" sh -c "exec ${*: -1}" </dev/null \
    >"$work/run.out" 2>"$work/run.err") 2>/dev/null || code=$?
  return $code
}

# The numbers of the looks at which a signal comes, of COUNT.
chosen() { # COUNT
  local n
  if [ -z "$all" ]; then
    printf '%s\n' 1 "$1" $((1 + RANDOM % $1)) $((1 + RANDOM % $1))
  else
    for ((n = 1; n <= $1 && n <= 40; ++n)); do echo "$n"; done
    for ((n = 0; n < 10; ++n)); do echo $((1 + RANDOM % $1)); done
    echo "$1"
  fi | sort -nu
}

# What is wrong with a run that got a signal.
judge_signal() { # KIND COMMAND CODE SIGNAL
  local tool=${2%% *}
  # Work that is finished, or put off by all processes together, may end as without a signal.
  if [ "$3" = "$clean" ]; then
    judge "$1" "$2" "$3"
    return
  fi
  [ "$3" = $((128 + $4)) ] || { echo "exit $3: $(tail -n 1 "$work/run.err")" && return; }
  tail -n 1 "$work/run.err" | grep -q "^$tool: interrupted; " || echo "no word of it: $(tail -n 1 "$work/run.err")"
  if tail -n 1 "$work/run.err" | grep -q 'nothing was changed$' && [ "$1" != print ]; then
    (cd "$run" && { [ "$1" != place ] || embed-fix recover in -q; })
    differs "$work/start" "$run" >"$work/diff" || echo "says that nothing was changed, but: $(head -n 1 "$work/diff")"
  fi
  case $1 in
    print) cmp -s -n "$(stat -c %s "$work/run.out")" "$work/run.out" "$work/clean.out" || echo "other output than without the signal" ;;
    place)
      (cd "$run" && embed-fix recover in -q) || echo "recover: exit $?"
      differs "$work/start" "$run" >/dev/null || differs "$work/end" "$run" >/dev/null || echo "neither old nor new: $(ls -A "$run/in")"
      ;;
    out)
      differs "$work/start" "$run" >"$work/diff" || differs "$work/end" "$run" >/dev/null ||
        echo "neither old nor new: $(head -n 1 "$work/diff")"
      ;;
    run) diff -r "$work/start" "$run" | grep -v "^Only in $run" ;;
  esac
}

RANDOM=7  # the same places every time
failures=0
printf 'looks\truns\tms\tfailures\tcommand\n'
while read -r kind command; do
  [[ -n $kind && $command =~ $pattern ]] || continue
  [ -n "$all" ] || [ "$pattern" != . ] || [ $((RANDOM % 3)) = 0 ] || continue
  clean_run "$command"
  fresh "$kind"
  rm -f "$work/looks"
  looking MASQUE_LOOKS="$work/looks" "$command" || true
  read -r count longest <"$work/looks" || { echo "no looks counted: $command: $(tail -n 1 "$work/run.err")" && failures=$((failures + 1)) && continue; }
  runs=0 before=$failures
  if [ "$longest" -gt 2000 ]; then
    echo "$longest ms of computing between two looks: $command"
    failures=$((failures + 1))
  fi
  # What is over at once need not look.
  [ "$count" -gt 0 ] || continue
  for n in $(chosen "$count"); do
    signal=$((RANDOM % 2 ? 2 : 15))
    fresh "$kind"
    code=0
    looking MASQUE_SIGNAL_AT="$n" MASQUE_SIGNAL=$signal "$command" || code=$?
    runs=$((runs + 1))
    wrong=$(judge_signal "$kind" "$command" $code $signal)
    [ -z "$wrong" ] || { echo "signal $signal at look $n of $command: $wrong" && failures=$((failures + 1)); }
  done
  printf '%d\t%d\t%d\t%d\t%s\n' "$count" $runs "$longest" $((failures - before)) "$command"
done <<<"$every_command"
unharmed || failures=$((failures + 1))
[ $failures = 0 ]
