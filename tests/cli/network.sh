#!/usr/bin/env bash
# lm-train on two machines, in network namespaces: the network cut for five seconds and for good, a process that stands still for a while, a
# full disk at a checkpoint. All processes end within a minute with one line, and the run goes on to the same bytes.
#   tests/cli/network.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: no right to make networks, or no Open MPI.
set -u
export LC_ALL=C
train=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)/lm-train
# shellcheck source=scripts/two_hosts.sh
. "$(dirname "$0")/../../scripts/two_hosts.sh"
grep -q MPI_Init "$train" || { echo "skipped: built without Open MPI"; exit 77; }
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null; close_hosts; rm -rf "$work"' EXIT
open_hosts "$work" || { echo "skipped"; exit 77; }
cd "$work" || exit 1
on_hosts "$work" true 2>none || { echo "skipped: mpirun cannot start processes: $(cat none)"; exit 77; }
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . >vocab.txt
for _ in 1 2 3 4 5 6 7 8; do printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nthe dog sits.\n'; done >text
large=(text --tokenizer vocab.txt --num-hidden-layers 3 --hidden-size 256 --num-attention-heads 4 --length 16 --batch-size 8 -j 1 -q
  --objective clm --steps 60 --checkpoint-every 10)
cat >noted <<'END'
folder=$1
shift
echo $$ >"pid.$(basename "$folder").$OMPI_COMM_WORLD_RANK"
exec "$@" -o "$folder"
END
start() { on_hosts "$work" sh noted "$@" 2>said & }
# until_saved FOLDER: waits for a checkpoint after some steps.
until_saved() { for _ in $(seq 600); do [ -s "$1/metrics.jsonl" ] && return; sleep 0.1; done; fail "$1: no checkpoint"; }
# ends NAME SECONDS CODE LINE: the run in the background ends, with this exit code (any: another one than 0) and exactly one line of ours.
ends() {
  local begin=$SECONDS code=0
  wait %% || code=$?
  [ $((SECONDS - begin)) -le "$2" ] || fail "$1: ended after $((SECONDS - begin)) s"
  if [ "$3" = any ]; then [ $code != 0 ] || fail "$1: exit code 0"; else [ $code = "$3" ] || fail "$1: exit code $code: $(cat said)"; fi
  [ -z "$4" ] || { [ "$(grep -c '^lm-train: ' said)" = 1 ] && grep -q "^lm-train: $4" said; } || fail "$1: $(cat said)"
}
# same NAME FOLDER: the bytes of an undisturbed run.
same() {
  local file
  for file in model.safetensors training.safetensors metrics.jsonl; do cmp "$2/$file" "undisturbed/$file" || fail "$1: other $file"; done
}
resume() { on_hosts "$work" "$train" "${large[@]}" -o "$2" --resume || fail "$1: resume"; same "$1" "$2"; }

on_hosts "$work" "$train" "${large[@]}" -o undisturbed || fail "undisturbed"

start cut "$train" "${large[@]}"
until_saved cut
network down; sleep 5; network up
ends "cut for 5 s" 120 0 ''
same "cut for 5 s" cut

start slow "$train" "${large[@]}"
until_saved slow
kill -STOP "$(cat pid.slow.1)"; sleep 4; kill -CONT "$(cat pid.slow.1)"
ends "stands still" 120 0 ''
same "stands still" slow

mkdir disk
if mount -t tmpfs -o size=120m tmpfs disk 2>none; then
  start disk/full "$train" "${large[@]}" 2>none
  until_saved disk/full
  head -c 100m /dev/zero >disk/fill 2>none
  ends "full disk" 60 3 'disk/full'
  rm disk/fill
  resume "full disk" disk/full
fi

start gone "$train" "${large[@]}"
until_saved gone
network down
is_there() { kill -0 "$(cat "pid.gone.$1")" 2>none; }
for _ in $(seq 600); do is_there 0 || is_there 1 || break; sleep 0.1; done
for rank in 0 1; do ! is_there $rank || fail "cut for good: process $rank goes on"; done
# mpirun itself waits until TCP gives up its connections, a quarter of an hour.
pkill -KILL -f "$work/agent"
ends "cut for good" 10 any 'process 1 on .* has not answered for 30 s'
network up
resume "cut for good" gone

[ $failures = 0 ] && echo "network: all as it should be"
[ $failures = 0 ]
