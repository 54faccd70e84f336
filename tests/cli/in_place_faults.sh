#!/usr/bin/env bash
# `embed-fix mlm-correct --in-place` on a system that fails it: every system call fails once, and the run
# is killed at every one of them; then `embed-fix recover` runs, whole, or failing once itself. What
# there is then is the checkpoint as it was or as it should become.
#   tests/cli/in_place_faults.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: strace cannot trace here.
# shellcheck disable=SC2015,SC2086  # A && B || C where B cannot fail; words split on purpose
set -u
export LC_ALL=C
umask 022

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
fix=$bin/embed-fix
# shellcheck source=tests/cli/sanitizer.sh
. "$(dirname "$0")/sanitizer.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0  # leaks cannot be looked for under strace
work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

strace -f -qq -o "$work/probe" -e trace=write -e inject=write:error=EIO:when=1 \
  echo probe >/dev/null 2>&1
if ! grep -q INJECTED "$work/probe" 2>/dev/null; then
  echo "faults in place: skipped: strace cannot trace here"
  exit 77
fi

printf '{"model_type": "bert", "vocab_size": 700, "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1,
"intermediate_size": 3, "max_position_embeddings": 3, "tie_word_embeddings": true}' >"$work/bert.json"
"$bin/ckpt" new "$work/bert.json" -o "$work/model" -q || exit 1
"$bin/ckpt" convert "$work/model" -o "$work/bundle_model" --format tensorflow -q || exit 1

calls="openat read pread64 write pwrite64 ftruncate fsync flock fchmod renameat2 unlinkat fstat
newfstatat getdents64"
# The checks of UBSan write to a pipe of their own and die where that fails.
[ "$(sanitizer_of "$fix")" != asan ] || calls=${calls/ write / }
traced=$(printf ',?%s' $calls)
traced=${traced#,}

# A scenario is a folder that every run starts from, and a checkpoint in it.
scenarios="folder file bundle"
target_of() { [ "$1" = file ] && echo in/model.safetensors || echo in; }
# The file of the folder that the journal is called after.
first_of() { [ "$1" = bundle ] && echo bert_model.ckpt.data-00000-of-00001 || echo model.safetensors; }
command_of() {
  command=("$fix" mlm-correct "$(target_of "$1")" --in-place --tied keep --mask-token 4 -q -j 1)
}

# Says what there is: old, new or torn, and what lies about.
state_of() { # SCENARIO FOLDER
  local moment
  for moment in start end; do
    diff -r "$2/in" "$work/$1/$moment/in" >/dev/null && echo $moment && return
  done
  echo torn
}

# jobs: "scenario call k fault", for every place where a run can fail.
for s in $scenarios; do
  model=model
  [ "$s" = bundle ] && model=bundle_model
  mkdir -p "$work/$s/start" && cp -r "$work/$model" "$work/$s/start/in"
  cp -r "$work/$s/start" "$work/$s/end"
  command_of "$s"
  (cd "$work/$s/end" && strace -f -qq -o ../trace -e trace="$traced" "${command[@]}" >/dev/null) ||
    fail "$s: does not run at all"
  [ "$(state_of "$s" "$work/$s/start")" = start ] || fail "$s: nothing to compare"
  diff -r "$work/$s/start" "$work/$s/end" >/dev/null && fail "$s: nothing changed"
  sed -E 's/^[0-9]+ +//' "$work/$s/trace" >"$work/$s/calls"
  first=$(grep -n '"in[/"]' "$work/$s/calls" | head -n 1 | cut -d : -f 1)
  for call in $calls; do
    before=$(head -n "$((first - 1))" "$work/$s/calls" | grep -c "^$call(")
    total=$(grep -c "^$call(" "$work/$s/calls")
    for ((k = before + 1; k <= total; ++k)); do
      for fault in EIO SIGKILL; do echo "$s $call $k $fault"; done
      case $call in write | pwrite64 | fsync | renameat2) echo "$s $call $k ENOSPC" ;; esac
      case $call in read | pread64 | write | pwrite64) echo "$s $call $k EINTR" ;; esac
    done
  done >>"$work/jobs"
  [ "$(grep -c "^$s " "$work/jobs")" -gt 60 ] || fail "$s: only few places to fail found"
done

# recovered NAME SCENARIO FOLDER: recovers twice; prints what is wrong, a line each.
recovered() {
  local state said
  "$fix" recover "$(target_of "$2")" -q 2>"$3.err" || echo "$1: recover: $(cat "$3.err")"
  state=$(state_of "$2" "$3")
  [ "$state" != torn ] || echo "$1: recovered, but neither old nor new: $(ls -A "$3/in")"
  said=$("$fix" recover "$(target_of "$2")" 2>&1)
  [ "$said" = "embed-fix: nothing to roll back" ] || echo "$1: the second recovery says: $said"
  [ "$(state_of "$2" "$3")" = "$state" ] || echo "$1: the second recovery changed something"
}

second_faults=
for j in pwrite64:1 pwrite64:2 fsync:1 fsync:2 fsync:3 unlinkat:1 unlinkat:2 renameat2:1 fchmod:1; do
  for fault in error=EIO signal=SIGKILL; do
    second_faults+=" ${j%:*}:$fault:when=${j#*:}"
  done
done
turn=0

# inject SCENARIO CALL K FAULT FOLDER: prints what is wrong, a line each.
inject() {
  local s=$1 call=$2 k=$3 fault=$4 folder=$5 what code=0 name
  rm -rf "$folder" && cp -r "$work/$s/start" "$folder" && cd "$folder" || return
  what=error=$fault
  [ "$fault" = SIGKILL ] && what=signal=SIGKILL
  command_of "$s"
  name="$s: $call number $k: $fault"
  strace -f -qq -o "$folder.trace" -e trace="$call" -e inject="$call:$what:when=$k" \
    "${command[@]}" >/dev/null 2>"$folder.err" || code=$?
  if [ "$fault" != SIGKILL ]; then
    grep -q INJECTED "$folder.trace" || echo "$name: was not injected"
    case $code in
      0)
        # What could not be removed is the temporary of the new bytes: the next run does it.
        [ "$call" != unlinkat ] || "$fix" recover "$(target_of "$s")" -q
        [ "$(state_of "$s" "$folder")" = end ] || echo "$name: exit code 0, but not new"
        ;;
      3)
        [ "$(wc -l <"$folder.err")" = 1 ] && grep -q '^embed-fix: ' "$folder.err" ||
          echo "$name: expected one line, found: $(cat "$folder.err")"
        # Put right at once, without anybody's help, unless its temporary could not be removed.
        [ "$call" = unlinkat ] || [ "$(state_of "$s" "$folder")" != torn ] ||
          echo "$name: neither old nor new: $(ls -A in)"
        ;;
      *) echo "$name: exit code $code: $(cat "$folder.err")" ;;
    esac
    [ "$fault" != EINTR ] || [ $code = 0 ] || echo "$name: gave up: $(cat "$folder.err")"
    recovered "$name" "$s" "$folder"
    return
  fi
  [ $code = 137 ] || echo "$name: exit code $code, expected to be killed"
  local first journal
  first=$(first_of "$s")
  journal=in/.$first.undo
  if [ -e "$journal" ] && ! "$bin/ckpt" ls in >/dev/null 2>"$folder.err"; then
    # A complete journal: readers are told, in one line, what to do.
    [ "$(wc -l <"$folder.err")" = 1 ] && grep -qF "embed-fix recover in/$first" "$folder.err" ||
      echo "$name: a reader says: $(cat "$folder.err")"
    echo "$name" >>"$work/unfinished$worker"
    # The recovery fails once, or is killed, too: another way every time.
    set -- $second_faults
    shift $((turn++ % $#))
    strace -f -qq -o "$folder.trace" -e trace="${1%%:*}" -e inject="$1" \
      "$fix" recover "$(target_of "$s")" >/dev/null 2>&1
    [ "$(state_of "$s" "$folder")" != torn ] || [ -e "$journal" ] ||
      echo "$name: recovery with $1: torn, and no journal"
  fi
  recovered "$name" "$s" "$folder"
  if [ "$(state_of "$s" "$folder")" = start ]; then
    "${command[@]}" >/dev/null 2>"$folder.err" || echo "$name: again: $(cat "$folder.err")"
    [ "$(state_of "$s" "$folder")" = end ] || echo "$name: again: not new"
  fi
}

workers=$(nproc)
[ "$workers" -le 4 ] || workers=4
for ((worker = 0; worker < workers; ++worker)); do
  awk -v n="$workers" -v i="$worker" 'NR % n == i' "$work/jobs" >"$work/jobs$worker"
  while read -r s call k fault; do
    inject "$s" "$call" "$k" "$fault" "$work/run$worker"
  done <"$work/jobs$worker" >"$work/wrong$worker" 2>"$work/noise$worker" &
done
wait
for s in $scenarios; do
  before=$failures
  while read -r line; do fail "$line"; done < <(cat "$work"/wrong? | grep "^$s: ")
  n=$(grep -c "^$s " "$work/jobs")
  unfinished=$(cat "$work"/unfinished? 2>/dev/null | grep -c "^$s: ")
  [ "$unfinished" -ge 4 ] || fail "$s: only $unfinished kills left something to take back"
  echo "in place, '$s': $n faults, $unfinished times taken back, $((failures - before)) failures"
done
[ "$failures" = 0 ]
