#!/usr/bin/env bash
# The tools on a system that fails them: every system call that a run makes fails once, and the run
# is killed at every one of them. Whatever happens, the output is the old one or the complete new
# one, the input is untouched, and what went wrong is one line on stderr with exit code 3.
#   tests/cli/fault_injection.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: strace cannot trace here.
# shellcheck disable=SC2015,SC2086  # A && B || C where B cannot fail; words split on purpose
set -u
export LC_ALL=C
umask 022

mounted=
[ "${1-}" = --mounted ] && mounted=1 && shift
bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
ckpt=$bin/ckpt
fix=$bin/embed-fix
# shellcheck source=tests/cli/sanitizer.sh
. "$(dirname "$0")/sanitizer.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0  # leaks cannot be looked for under strace

work=$(mktemp -d)
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
runs=0
failures=0

fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

# What is left of staging files and folders below a folder, and a bundle's data without an index.
data=.data-00000-of-00001
leftovers() {
  find "$1" -name '*.masque-tmp' -printf '%P '
  [ ! -e "$1/target$data" ] || [ -e "$1/target.index" ] || printf 'target%s ' "$data"
}

# refused NAME PATTERN TOOL ARGUMENT…: exit code 3 and exactly one line, which names the tool and
# matches.
refused() {
  local name=$1 pattern=$2 code=0
  shift 2
  runs=$((runs + 1))
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = 3 ] || fail "$name: exit code $code, expected 3: $(cat "$work/err")"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "$name: expected one line, found: $(cat "$work/err")"
  grep -Eq "^(ckpt|embed-fix): .*$pattern" "$work/err" ||
    fail "$name: expected /$pattern/, found: $(cat "$work/err")"
}

same() { # NAME FILE FILE
  cmp -s "$2" "$3" || fail "$1: ${2##*/} is not as it should be"
}

nothing_left() { # NAME FOLDER
  local left
  left=$(leftovers "$2")
  [ -z "$left" ] || fail "$1: left behind $left"
}

# A folder with a tiny BERT, and files of about 1 KiB and 140 KiB.
make_models() {
  printf '{"model_type": "bert", "vocab_size": 7, "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1,
"intermediate_size": 3, "max_position_embeddings": 3, "tie_word_embeddings": true}' >"$1/bert.json"
  printf '{"model_type": "gpt2", "vocab_size": 5, "n_embd": 2, "n_layer": 1, "n_head": 1, "n_positions": 3}' \
    >"$1/gpt2.json"
  sed 's/"vocab_size": 7/"vocab_size": 9000/; s/"hidden_size": 2/"hidden_size": 4/' \
    "$1/bert.json" >"$1/large.json"
  "$ckpt" new "$1/bert.json" -o "$1/model" -q && "$ckpt" new "$1/large.json" -o "$1/large" -q &&
    "$ckpt" new "$1/bert.json" -o "$1/other" --seed 2 -q || exit 1
  printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nof\n' >"$1/model/vocab.txt"
  mkdir "$1/model/sub" && echo notes >"$1/model/sub/notes.txt"
}

# --- With file systems of their own: called again in a mount namespace.

if [ -n "$mounted" ]; then
  make_models "$work"
  mkdir "$work/mnt"
  if ! mount -t tmpfs -o size=64k none "$work/mnt" 2>"$work/err"; then
    echo "mounts: skipped: $(head -n 1 "$work/err")"
    exit 0
  fi
  cp "$work/other/model.safetensors" "$work/mnt/target.safetensors"
  for out in target.safetensors folder; do
    in=$work/large
    [ "$out" = folder ] || in=$work/large/model.safetensors
    refused "full disk, $out" 'reserving [0-9]+ bytes: No space left on device' \
      "$fix" mlm-correct "$in" -o "$work/mnt/$out" --mask-token 4
    nothing_left "full disk, $out" "$work/mnt"
  done
  # Room for the reservation of the weights, but not for what comes after it.
  head -c 40000 /dev/zero >"$work/model/rest.bin"
  head -c 20000 /dev/zero >"$work/mnt/filler"
  refused "nearly full disk" 'No space left on device' \
    "$ckpt" convert "$work/model" -o "$work/mnt/folder"
  rm "$work/model/rest.bin"
  nothing_left "nearly full disk" "$work/mnt"
  [ ! -e "$work/mnt/folder" ] || fail "full disk: a folder was left"
  same "full disk" "$work/mnt/target.safetensors" "$work/other/model.safetensors"
  mkdir "$work/bound" && cp "$work/other/model.safetensors" "$work/bound/target.safetensors"
  mount --bind "$work/bound" "$work/bound" && mount -o remount,ro,bind "$work/bound"
  refused "read-only file" 'Read-only file system' \
    "$fix" mlm-correct "$work/model/model.safetensors" -o "$work/bound/target.safetensors"
  refused "read-only folder" 'Read-only file system' "$ckpt" new "$work/gpt2.json" \
    -o "$work/bound/new"
  same "read-only file" "$work/bound/target.safetensors" "$work/other/model.safetensors"
  nothing_left "read-only" "$work/bound"
  umount "$work/bound" "$work/mnt"
  echo "mounts: full and read-only file systems: $runs runs, $failures failures"
  [ "$failures" = 0 ]
  exit
fi

strace -f -qq -o "$work/probe" -e trace=write -e inject=write:error=EIO:when=1 \
  echo probe >/dev/null 2>&1
if ! grep -q INJECTED "$work/probe" 2>/dev/null; then
  echo "faults: skipped: strace cannot trace here"
  exit 77
fi

make_models "$work"

# --- The sweep. A scenario is a folder that every run starts from, and a command in it.

calls="openat read pread64 write pwrite64 copy_file_range fallocate ftruncate fsync flock fchmod
rename renameat renameat2 mkdirat unlinkat fstat newfstatat getdents64"
# The checks of UBSan write to a pipe of their own and die where that fails.
[ "$(sanitizer_of "$ckpt")" != asan ] || calls=${calls/ write / }
traced=$(printf ',?%s' $calls)
traced=${traced#,}

scenarios="file folder force new bundle"
command_of() {
  case $1 in
    file) set -- "$fix" mlm-correct in.safetensors -o target --verify ;;
    folder) set -- "$fix" mlm-correct in -o target ;;
    force) set -- "$fix" mlm-correct in -o target --force ;;
    new) set -- "$ckpt" new in.json -o target --seed 5 ;;
    bundle) set -- "$ckpt" convert in.safetensors -o target.index ;;
  esac
  [ "$1" = "$ckpt" ] || set -- "$@" --mask-token 4
  command=("$@" -q -j 1)
}

make_scenarios() {
  local s
  for s in $scenarios; do
    mkdir -p "$work/$s/start"
    case $s in
      file)
        cp "$work/model/model.safetensors" "$work/$s/start/in.safetensors"
        cp "$work/other/model.safetensors" "$work/$s/start/target"
        ;;
      folder) cp -r "$work/model" "$work/$s/start/in" ;;
      force)
        cp -r "$work/model" "$work/$s/start/in"
        cp -r "$work/other" "$work/$s/start/target"
        ;;
      new) cp "$work/gpt2.json" "$work/$s/start/in.json" ;;
      bundle) cp "$work/model/model.safetensors" "$work/$s/start/in.safetensors" ;;
    esac
    # The complete new state, and the calls of a run from the first look at its input on.
    cp -r "$work/$s/start" "$work/$s/end"
    command_of "$s"
    (cd "$work/$s/end" &&
      strace -f -qq -o ../trace -e trace="$traced" "${command[@]}" >/dev/null) ||
      fail "$s: does not run at all"
    "$ckpt" check -q "$work/$s/end/target" >/dev/null || fail "$s: the output is no checkpoint"
    "$ckpt" hash --total "$work/$s/end/target" >/dev/null || fail "$s: the output has no hash"
    jobs_of "$s" >>"$work/jobs"
  done
}

# "scenario call k fault", one line for every place where a run can fail.
jobs_of() {
  local call before total k fault
  sed -E 's/^[0-9]+ +//' "$work/$1/trace" >"$work/$1/calls"
  local first
  first=$(grep -n '"in[./"]' "$work/$1/calls" | head -n 1 | cut -d : -f 1)
  for call in $calls; do
    before=$(head -n "$((first - 1))" "$work/$1/calls" | grep -c "^$call(")
    total=$(grep -c "^$call(" "$work/$1/calls")
    for ((k = before + 1; k <= total; ++k)); do
      for fault in EIO SIGKILL; do echo "$1 $call $k $fault"; done
      case $call in
        write | pwrite64 | copy_file_range | fallocate | mkdirat | fsync | rename*)
          echo "$1 $call $k ENOSPC" ;;
      esac
      case $call in
        read | pread64 | write | pwrite64 | copy_file_range) echo "$1 $call $k EINTR" ;;
      esac
    done
  done
}

# Says what the target of scenario $1 in folder $2 is: old, new or torn. A bundle's data file
# without its index is nothing, and a leftover.
state_of() {
  local moment
  if [ "$1" = bundle ]; then
    if [ ! -e "$2/target.index" ]; then
      echo old
    elif cmp -s "$2/target.index" "$work/bundle/end/target.index" &&
      cmp -s "$2/target$data" "$work/bundle/end/target$data"; then
      echo new
    else
      echo torn
    fi
    return
  fi
  for moment in start end; do
    if [ -d "$2/target" ] && [ -d "$work/$1/$moment/target" ]; then
      diff -r "$2/target" "$work/$1/$moment/target" >/dev/null || continue
    elif [ -f "$2/target" ] && [ -f "$work/$1/$moment/target" ]; then
      cmp -s "$2/target" "$work/$1/$moment/target" || continue
    elif [ -e "$2/target" ] || [ -e "$work/$1/$moment/target" ]; then
      continue
    fi
    [ $moment = start ] && echo old || echo new
    return
  done
  echo torn
}

# inject SCENARIO CALL K FAULT FOLDER: prints what is wrong, a line each.
inject() {
  local scenario=$1 call=$2 k=$3 fault=$4 folder=$5 what code=0 state name left
  rm -rf "$folder" && cp -r "$work/$scenario/start" "$folder" && cd "$folder" || return
  what=error=$fault
  [ "$fault" = SIGKILL ] && what=signal=SIGKILL
  command_of "$scenario"
  name="$scenario: $call number $k: $fault"
  strace -f -qq -o "$folder.trace" -e trace="$call" -e inject="$call:$what:when=$k" \
    "${command[@]}" >/dev/null 2>"$folder.err" || code=$?
  state=$(state_of "$scenario" "$folder")
  [ "$state" != torn ] || echo "$name: the output is neither old nor new"
  for left in in in.json in.safetensors; do
    [ ! -e "$left" ] || diff -r "$left" "$work/$scenario/start/$left" >/dev/null ||
      echo "$name: the input was changed"
  done
  if [ "$fault" = SIGKILL ]; then
    [ $code = 137 ] || echo "$name: exit code $code, expected to be killed"
    if [ "$state" = old ]; then
      "${command[@]}" >/dev/null 2>"$folder.err" || echo "$name: again: $(cat "$folder.err")"
      [ "$(state_of "$scenario" "$folder")" = new ] || echo "$name: again: the output is not new"
    elif [ "$scenario" = force ] || [ "$scenario" = file ] || [ "$scenario" = bundle ]; then
      rm -f target.index  # which is never written over
      # From the complete state on, a run finds nothing in its way either.
      "${command[@]}" >/dev/null 2>"$folder.err" || echo "$name: again: $(cat "$folder.err")"
    fi
  else
    grep -q INJECTED "$folder.trace" || echo "$name: was not injected"
    case $code in
      0) [ "$state" = new ] || echo "$name: exit code 0, but the output is $state" ;;
      3)
        [ "$(wc -l <"$folder.err")" = 1 ] && grep -q "^${command[0]##*/}: " "$folder.err" ||
          echo "$name: expected one line, found: $(cat "$folder.err")"
        ;;
      *) echo "$name: exit code $code: $(cat "$folder.err")" ;;
    esac
    [ "$fault" != EINTR ] || [ $code = 0 ] || echo "$name: gave up: $(cat "$folder.err")"
  fi
  left=$(leftovers "$folder")
  if [ -n "$left" ] && [ "$state" = new ] && { [ "$fault" = EIO ] || grep -q 'the old folder is kept as' "$folder.err"; } &&
    { [ "$scenario" = force ] || [ "$scenario" = bundle ]; }; then
    # What could not be removed, or is kept, is the folder that was replaced, or one that files were renamed out
    # of: the next run removes it.
    rm -f target.index
    "${command[@]}" >/dev/null 2>&1
    left=$(leftovers "$folder")
  fi
  [ -z "$left" ] || echo "$name: left behind $left"
}

sweep() {
  local workers i line
  workers=$(nproc)
  [ "$workers" -le 4 ] || workers=4
  for ((i = 0; i < workers; ++i)); do
    awk -v n="$workers" -v i="$i" 'NR % n == i' "$work/jobs" |
      while read -r scenario call k fault; do
        inject "$scenario" "$call" "$k" "$fault" "$work/run$i"
      done >"$work/wrong$i" 2>"$work/noise$i" &
  done
  wait
  local s n
  for s in $scenarios; do
    n=$(grep -c "^$s " "$work/jobs")
    runs=$((runs + n))
    [ "$n" -gt 60 ] || fail "$s: only $n places to fail found"
    local before=$failures
    while read -r line; do fail "$line"; done < <(cat "$work"/wrong? | grep "^$s: ")
    echo "sweep of '$s': $n faults, $((failures - before)) failures"
  done
}

# --- Single parts.

part() {
  echo "$1: $((runs - part_runs)) runs, $((failures - part_failures)) failures"
  part_runs=$runs part_failures=$failures
}

full_stdout() {
  local d=$work/stdout
  cp -r "$work/file/start" "$d"
  run_full() { "$@" >/dev/full; }
  local arguments
  for arguments in "ls $work/model" "hash $work/model" "stats $work/model" \
    "cat $work/model cls.predictions.bias" "check $work/model" "diff -q $work/model $work/other"; do
    refused "full stdout: ckpt $arguments" 'standard output: writing: No space left on device' \
      run_full "$ckpt" $arguments
  done
  refused "full stdout: correction" 'standard output: writing: No space left on device' \
    run_full "$fix" mlm-correct "$d/in.safetensors" -o "$d/target" --mask-token 4 -q
  same "full stdout" "$d/target" "$work/file/end/target"
  nothing_left "full stdout" "$d"
  part "full stdout"
}

cache() {
  local d=$work/cache hash
  hash=$(printf 'x' | sha256sum | cut -d ' ' -f 1)
  mkdir -p "$d/blobs" "$d/snapshots/main"
  cp "$work/model/model.safetensors" "$d/blobs/$hash"
  cp "$work/model/vocab.txt" "$d/snapshots/main"
  ln -s "../../blobs/$hash" "$d/snapshots/main/model.safetensors"
  local in
  for in in "$work/other/model.safetensors" "$d/snapshots/main/model.safetensors"; do
    refused "a link into a cache" "is a symbolic link to '.*/blobs/$hash' in a hash-named cache" \
      "$fix" mlm-correct "$in" -o "$d/snapshots/main/model.safetensors" --mask-token 4
    refused "an entry of a cache" 'is an entry of a hash-named cache, expected another output' \
      "$fix" mlm-correct "$in" -o "$d/blobs/$hash" --mask-token 4
  done
  same "cache" "$d/blobs/$hash" "$work/model/model.safetensors"
  [ "$(readlink "$d/snapshots/main/model.safetensors")" = "../../blobs/$hash" ] ||
    fail "cache: the link was changed"
  # Read through the link, written next to the cache: the usual way.
  runs=$((runs + 1))
  "$fix" mlm-correct "$d/snapshots/main" -o "$d/out" -q >/dev/null || fail "cache: not readable"
  [ -f "$d/out/model.safetensors" ] && [ ! -L "$d/out/model.safetensors" ] ||
    fail "cache: the output is no plain file"
  nothing_left "cache" "$d"
  part "hash-named cache"
}

file_size_limit() {
  local d=$work/fsize
  mkdir "$d" && cp "$work/other/model.safetensors" "$d/target.safetensors"
  limited() { (ulimit -f 64 && "$@"); }  # 64 KiB; the output has about 290
  refused "file size limit, file" '(reserving [0-9]+ bytes|writing): File too large' \
    limited "$fix" mlm-correct "$work/large/model.safetensors" -o "$d/target.safetensors" \
    --mask-token 4
  refused "file size limit, folder" '(reserving [0-9]+ bytes|writing): File too large' \
    limited "$ckpt" convert "$work/large" -o "$d/folder"
  same "file size limit" "$d/target.safetensors" "$work/other/model.safetensors"
  nothing_left "file size limit" "$d"
  part "file size limit"
}

little_memory() {
  if sanitized "$ckpt"; then
    echo "little memory: skipped: a sanitizer takes terabytes of addresses"
    return
  fi
  local d=$work/memory count code=0
  mkdir "$d"
  # The most layers, of 20 tensors each.
  printf '{"model_type": "deberta-v2", "vocab_size": 2, "hidden_size": 1, "num_hidden_layers": 1000,
"num_attention_heads": 1, "intermediate_size": 1, "max_position_embeddings": 1,
"relative_attention": true, "pos_att_type": "p2c|c2p"}' >"$d/many.json"
  "$ckpt" new "$d/many.json" -o "$d/many" -q
  runs=$((runs + 1))
  (ulimit -v 262144 && "$ckpt" ls --no-header "$d/many" >"$d/ls" 2>"$d/err") || code=$?
  count=$(wc -l <"$d/ls")
  [ $code = 0 ] && [ "$count" = 20010 ] ||
    fail "little memory: code $code, $count of 20010 tensors: $(cat "$d/err")"
  # Sizes that are possible one by one and add up to more than any file can have.
  printf '{"model_type": "bert", "vocab_size": 5, "hidden_size": 67108864, "num_hidden_layers": 10,
"num_attention_heads": 1, "intermediate_size": 2147483647, "max_position_embeddings": 1}' >"$d/huge.json"
  limited_memory() { (ulimit -v 1048576 && timeout 60 "$@"); }
  refused "sizes beyond any file" '(too large|No space left|more than (a file can|2\^64))' \
    limited_memory "$ckpt" new "$d/huge.json" -o "$d/huge" -j 1
  nothing_left "little memory" "$d"
  part "little memory"
}

two_writers() {
  local s first pid i
  for s in file folder force; do
    local d=$work/two-$s
    cp -r "$work/$s/start" "$d"
    command_of "$s"
    # The first stops when all is written but nothing committed.
    (cd "$d" && exec strace -f -qq -o ../two.trace -e trace=fchmod \
      -e inject=fchmod:signal=SIGSTOP:when=1 "${command[@]}" >/dev/null 2>../two.err) &
    first=$!
    for ((i = 0; i < 500; ++i)); do
      grep -q 'stopped by SIGSTOP' "$work/two.trace" 2>/dev/null && break
      sleep 0.02
    done
    pid=$(sed -nE 's/^([0-9]+) .*stopped by SIGSTOP.*/\1/p' "$work/two.trace" | head -n 1)
    if [ -z "$pid" ]; then
      fail "two writers, $s: the first was not stopped"
      kill "$first"
      continue
    fi
    refused "two writers, $s" 'target: is being written by another process' \
      env -C "$d" "${command[@]}"
    [ "$(state_of "$s" "$d")" = old ] || fail "two writers, $s: the second changed the output"
    kill -CONT "$pid"
    wait "$first" || fail "two writers, $s: the first failed: $(cat "$work/two.err")"
    [ "$(state_of "$s" "$d")" = new ] || fail "two writers, $s: the output is not that of the first"
    nothing_left "two writers, $s" "$d"
    rm "$work/two.trace"
  done
  part "two writers"
}

interrupts() {
  local s signal call code d=$work/interrupt
  for s in $scenarios; do
    for signal in INT TERM HUP; do
      # In the middle of the writing, and when all is written but read back again.
      for call in pwrite64 copy_file_range; do
        grep -q "^$call(" "$work/$s/calls" || continue
        rm -rf "$d" && cp -r "$work/$s/start" "$d"
        command_of "$s"
        runs=$((runs + 1))
        code=0
        { # around the shell's own word about a child that a signal ended
          (cd "$d" && exec env --default-signal=INT,TERM,HUP strace -f -qq -o ../interrupt.trace \
            -e trace="$call" -e inject="$call:signal=SIG$signal:when=1" "${command[@]}" \
            >/dev/null 2>"$work/err") || code=$?
        } 2>/dev/null
        [ "$code" = $((128 + $(kill -l "$signal"))) ] ||
          fail "SIG$signal at $call of '$s': exit code $code"
        [ "$(cat "$work/err")" = "${command[0]##*/}: interrupted; nothing was changed" ] ||
          fail "SIG$signal at $call of '$s': $(cat "$work/err")"
        [ "$(state_of "$s" "$d")" = old ] || fail "SIG$signal at $call of '$s': the output changed"
        nothing_left "SIG$signal at $call of '$s'" "$d"
      done
    done
  done
  part "interrupts"
}

# Folders without permission need a user whom permissions bind.
permissions() {
  local d=$work/permissions as=()
  if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    if ! "${as[@]}" test -x "$ckpt" 2>/dev/null; then
      echo "permissions: skipped: no other user can run the tools"
      return
    fi
  fi
  chmod 755 "$work"
  mkdir "$d" "$d/closed" "$d/open" && cp -r "$work/model" "$d/in" && chmod 777 "$d/open"
  chmod 555 "$d/closed"
  refused "a closed folder, folder" 'Permission denied' \
    "${as[@]}" "$ckpt" new "$work/gpt2.json" -o "$d/closed/new"
  refused "a closed folder, file" 'Permission denied' \
    "${as[@]}" "$fix" mlm-correct "$d/in/model.safetensors" -o "$d/closed/new.safetensors"
  chmod 000 "$d/in/sub"
  refused "a sub-folder that cannot be read" 'in/sub: .*Permission denied' \
    "${as[@]}" "$ckpt" convert "$d/in" -o "$d/open/new"
  chmod 755 "$d/in/sub" && chmod 000 "$d/in/vocab.txt"
  refused "a file that cannot be read" 'in/vocab.txt: opening: Permission denied' \
    "${as[@]}" "$ckpt" convert "$d/in" -o "$d/open/new2"
  [ ! -e "$d/open/new2" ] && [ ! -e "$d/open/new" ] || fail "permissions: an output was left"
  nothing_left "permissions" "$d"
  part "permissions"
}

mounts() {
  local how line code=0
  for how in "-m" "-rm"; do
    unshare $how true 2>/dev/null || continue
    unshare $how bash "$0" --mounted "$bin" >"$work/mounts" || code=$?
    while read -r line; do
      case $line in
        failed:*) fail "${line#failed: }" ;;
        *) echo "$line" ;;
      esac
    done <"$work/mounts"
    runs=$((runs + $(sed -nE 's/^mounts: .* ([0-9]+) runs.*/\1/p' "$work/mounts" || true) + 0))
    [ $code -le 1 ] || fail "mounts: ended with $code"
    return
  done
  echo "mounts: skipped: no mount namespace here"
}

make_scenarios
sweep
part_runs=$runs part_failures=$failures
full_stdout
cache
file_size_limit
little_memory
two_writers
interrupts
permissions
mounts
echo "faults: $runs runs, $failures failures"
[ "$failures" = 0 ]
