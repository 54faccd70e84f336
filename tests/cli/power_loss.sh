#!/usr/bin/env bash
# Whole tools when the power is lost. Their files lie on a file system that writes down every change and every sync
# (recording_disk); from its log come states that the disk may have after any moment (power_cut): what was synced, and any
# part of the rest. What a tool finds there next, after `recover` or `--resume` where that is the way, is old or new.
#   tests/cli/power_loss.sh BIN_DIR [--cuts N] [--disk files|ext4|xfs|btrfs] [--seed N] [SCENARIO…]
# --cuts N     moments for each scenario [8]; every fourth recovery loses the power, too
# --disk KIND  files: names and bytes survive each by themselves, which is less than any file system keeps [files]; else the
#              recorded file is the image of a disk, sectors of 4 KiB survive, and the file system of that kind is mounted
# Exit codes: 0 all as it should be; 1 a failure; 2 usage; 77 skipped.
# shellcheck disable=SC2015  # A && B || C where B cannot fail
set -u
export LC_ALL=C
umask 022

usage() {
  sed -n '5,9p' "$0" >&2
  exit 2
}
if [ "${1-}" != --mounted ]; then
  [ -x "${1-}/power_cut" ] || { echo "skipped: built without FUSE (libfuse3-dev)"; exit 77; }
  unshare -m true 2>/dev/null || { echo "skipped: no mounts of its own here"; exit 77; }
  exec unshare -m bash "$0" --mounted "$@"
fi
bin=$(cd "$2" && pwd)
shift 2
cuts=8 disk=files seed=1 scenarios=()
while [ $# -gt 0 ]; do
  case $1 in
    --cuts | --disk | --seed) [ $# -ge 2 ] || usage; declare "${1#--}=$2"; shift ;;
    -*) usage ;;
    *) scenarios+=("$1") ;;
  esac
  shift
done
[ ${#scenarios[@]} -gt 0 ] || scenarios=(file folder bundle ids in_place in_place_bundle training classify sweep)
export PATH=$bin:$PATH ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
fs=$work/fs  # where the file system of an image is mounted
mkdir "$work/mnt" "$fs"
recorder=
# A loop device lets go of its file a moment after its file system is gone.
unmount() {
  local i
  for ((i = 0; i < 200; ++i)); do
    umount "$1" 2>/dev/null && return
    mountpoint -q "$1" || return
    sleep 0.02
  done
  return 1
}
clean_up() {
  unmount "$fs"
  unmount "$work/mnt"
  [ -z "$recorder" ] || kill "$recorder" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}
skip() {
  echo "skipped: $*"
  exit 77
}

# --- Scenarios. NAME_start fills the folder in which it begins; NAME_run works there; NAME_again is what one does after
# the power is back. What has to be old or new then is `target`, or all of `in`; NAME_again gets to the end from anywhere
# unless it only takes back (in place).

small=(--num-hidden-layers 1 --hidden-size 8 --num-attention-heads 2 --batch-size 4 -j 1 -q)
make_inputs() {
  mkdir "$work/inputs"
  (
    cd "$work/inputs" || exit 1
    printf '{"model_type": "bert", "vocab_size": 700, "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1,
"intermediate_size": 3, "max_position_embeddings": 3, "tie_word_embeddings": true}' >bert.json
    ckpt new bert.json -o model -q && ckpt new bert.json -o other --seed 2 -q &&
      ckpt convert model -o bundle_model --format tensorflow -q || exit 1
    mkdir model/sub && echo notes | tee model/sub/notes.txt >other/notes.txt
    mkdir other/sub && echo old >other/sub/notes.txt && mv other/notes.txt model/notes.txt
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat dog dogs sat sits on mat . >vocab.txt
    for _ in 1 2 3 4; do printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nthe dog sits.\n'; done >text
    for _ in 1 2 3; do printf 'the cat sat\tyes\nthe dog sits\tno\n'; done >labels
    printf '%s\n' 'text = text' 'eval-text = text' 'tokenizer = vocab.txt' 'position = rope' 'train-length = 8' \
      'eval-lengths = 8' 'seeds = 2' 'steps = 2' 'num-hidden-layers = 1' 'hidden-size = 8' 'num-attention-heads = 2' \
      'batch-size = 4' 'quiet = true' 'threads = 1' >sweep.conf
  )
}
from() { (cd "$work/inputs" && cp -r "$1" "$OLDPWD/$2"); }

file_start() { from model/model.safetensors in.safetensors && from other/model.safetensors target; }
file_run() { embed-fix mlm-correct in.safetensors -o target --mask-token 4 -q -j 1 >/dev/null; }
file_again() { file_run; }

folder_start() { from model in && from other target; }
folder_run() { ckpt convert in -o target --force -q -j 1; }
folder_again() { folder_run; }

bundle_start() { from model/model.safetensors in.safetensors && mkdir target; }
bundle_run() { ckpt convert in.safetensors -o target/new.index -q -j 1; }
# A bundle is its index: without one, what lies there is nothing, and in nobody's way.
bundle_again() { [ -e target/new.index ] || bundle_run; }

ids_start() {
  head -c 4096 "$work/inputs/model/model.safetensors" >ids.bin && mkdir target && ids_run 2
}
ids_run() { droptoken drop --rate 0.3 --binary u16 --length 8 --input ids.bin -o target/out --seed "${1-1}" -q -j 1; }
ids_again() { ids_run; }

in_place_start() { from model in; }
in_place_run() { embed-fix mlm-correct in --in-place --tied keep --mask-token 4 -q -j 1 >/dev/null; }
in_place_again() { embed-fix recover in -q; }

in_place_bundle_start() { from bundle_model in; }
in_place_bundle_run() { in_place_run; }
in_place_bundle_again() { in_place_again; }

training_start() { from text text && from vocab.txt vocab.txt; }
training_run() {
  lm-train text --tokenizer vocab.txt --format blocks --length 8 --steps 6 --checkpoint-every 2 "${small[@]}" -o target --resume
}
training_again() { training_run; }

classify_start() { from labels labels && from vocab.txt vocab.txt; }
classify_run() {
  lm-train classify labels --tokenizer vocab.txt --length 8 --epochs 1 --seeds 2 "${small[@]}" -o target --resume >/dev/null
}
classify_again() { classify_run; }

sweep_start() { from text text && from vocab.txt vocab.txt && from sweep.conf sweep.conf; }
sweep_run() {
  length-gen run --cell 1/2 sweep.conf -o target >/dev/null && length-gen run --cell 2/2 sweep.conf -o target >/dev/null &&
    length-gen collect target >/dev/null
}
sweep_again() { sweep_run; }

in_place() { [[ $1 == in_place* ]]; }

# state_of SCENARIO FOLDER: old, new or torn.
state_of() {
  local moment what=target
  ! in_place "$1" || what=in
  for moment in old new; do
    if [ ! -e "$2/$what" ] && [ ! -e "$work/$1/$moment/$what" ]; then
      echo $moment && return
    elif diff -r -x '*.masque-tmp' "$2/$what" "$work/$1/$moment/$what" >/dev/null 2>&1; then
      echo $moment && return
    fi
  done
  # Without the file that makes the others count nobody reads them.
  case $1 in
    bundle) [ ! -e "$2/target/new.index" ] && echo old && return ;;
    ids) [ ! -e "$2/target/out" ] && echo old && return ;;
  esac
  echo torn
}

# Before anything is done again, what a reader finds is old, new or, of the long ones, a state on the way: one that
# `again` goes on from. In place, a reader is told to recover.
readable() {
  case $1 in
    file | folder | bundle | ids) [ "$(state_of "$1" .)" != torn ] ;;
    in_place*) return 0 ;;
    training) [ ! -e target ] || ckpt check target -q >/dev/null ;;
    classify | sweep) return 0 ;;
  esac
}

names() { find . -mindepth 1 -printf '%P '; }

# --- Recording, and cuts.

# recorded FOLDER LOG COMMAND…: runs the command in the folder, or in the file system of its image. What comes after the
# command, as the unmounting, is behind a file `.done`.
recorded() {
  local folder=$1 log=$2 code=0 i
  shift 2
  recording_disk "$folder" "$work/mnt" "$log" &
  recorder=$!
  for ((i = 0; i < 200; ++i)); do
    mountpoint -q "$work/mnt" && break
    kill -0 "$recorder" 2>/dev/null || return 125
    sleep 0.02
  done
  if [ "$disk" = files ]; then
    (cd "$work/mnt" && "$@") || code=$?
    touch "$work/mnt/.done"
  else
    mounted "$work/mnt" "$@" || code=$?
  fi
  unmount "$work/mnt"
  wait "$recorder"
  recorder=
  return $code
}

# mounted FOLDER COMMAND…: the same in the file system whose image lies in the folder.
mounted() {
  local folder=$1 code=0
  shift
  mount -o loop "$folder/disk.img" "$fs" || return 125
  (cd "$fs" && "$@") || code=$?
  [ -z "$recorder" ] || touch "$folder/.done"
  unmount "$fs" || return 125
  return $code
}

# within FOLDER COMMAND…: the same without a record.
within() {
  local folder=$1
  shift
  if [ "$disk" = files ]; then
    (cd "$folder" && "$@")
  else
    mounted "$folder" "$@"
  fi
}

make_disk() { # FOLDER
  mkdir -p "$1"
  case $disk in
    files) return ;;
    ext4) truncate -s 8M "$1/disk.img" && mkfs.ext4 -q "$1/disk.img" ;;
    # Small ones, as the tests of these file systems themselves make them.
    xfs) truncate -s 32M "$1/disk.img" && TEST_DIR=1 TEST_DEV=1 QA_CHECK_FS=1 mkfs.xfs -q "$1/disk.img" ;;
    btrfs) truncate -s 16M "$1/disk.img" && mkfs.btrfs -q -M -m single "$1/disk.img" ;;
    *) usage ;;
  esac
}

# judged SCENARIO WANTED: in the folder after a cut; prints what is wrong. WANTED: old, new or any.
judged() {
  local state before found left
  readable "$1" || echo "what a reader finds is no state of it: $(names)"
  before=$(state_of "$1" .)
  found=$(diff -rq target "$work/$1/new/target" 2>&1 | tr '\n' ' ')
  "$1_again" 2>"$work/said" || echo "again: $(cat "$work/said")"
  state=$(state_of "$1" .)
  if in_place "$1"; then
    [ "$state" != torn ] || echo "recovered, but neither old nor new: $(names)"
    [ "$2" = any ] || [ "$state" = "$2" ] || echo "recovered to $state, expected $2"
    echo "$state" >"$work/state"
  else
    [ "$state" = new ] || echo "done again, but not new: $(diff -rq target "$work/$1/new/target" 2>&1 | tr '\n' ' ')"
    [ "$2" = any ] || [ "$before" = "$2" ] || echo "found $before, expected $2: $found"
    echo "$before" >"$work/state"
    "$1_again" 2>"$work/said" || echo "the second time: $(cat "$work/said")"
  fi
  for left in in in.safetensors ids.bin text labels; do
    in_place "$1" || [ ! -e $left ] || diff -r $left "$work/$1/old/$left" >/dev/null || echo "the input $left was changed"
  done
  # What a run does not write again is not looked after again.
  case $1.$before in bundle.new | training.new | classify.* | sweep.*) return ;; esac
  left=$(find . -name '*.masque-tmp' -printf '%P ')
  [ -z "$left" ] || echo "left behind: $left"
}

# cut NAME SCENARIO LOG EVENT SEED WANTED: loses the power once, and judges what there is then. In the folder that was
# recorded: files keep their inodes, as on a disk.
cut() {
  local name=$1 line
  power_cut "$3" "$4" "$5" "$work/disk" "$sector" || { fail "$name: power_cut"; return; }
  within "$work/disk" judged "$2" "$6" >"$work/wrong" 2>&1 || echo "cannot be looked at" >>"$work/wrong"
  while read -r line; do fail "$name: $line"; done <"$work/wrong"
}

# The recovery from a cut loses the power itself, anywhere.
cut_again() { # NAME SCENARIO LOG EVENT SEED
  local count
  power_cut "$3" "$4" "$5" "$work/disk" "$sector" || { fail "$1: power_cut"; return; }
  recorded "$work/disk" "$work/log2" "$2_again" >/dev/null 2>"$work/said"
  [ $? != 125 ] || fail "$1: the second disk cannot be mounted: $(cat "$work/said")"
  count=$(power_cut "$work/log2")
  second=$((second + 1))
  cut "$1, and again after $(($5 * 7919 % (count + 1))) of $count" "$2" "$work/log2" $(($5 * 7919 % (count + 1))) "$5" any
}

sector=4096  # torn at 512 bytes, ext4's own superblock would not hold
case $disk in
  files) sector=512 ;;
  ext4 | xfs | btrfs)
    command -v mkfs.$disk >/dev/null || skip "no mkfs.$disk"
    make_disk "$work/probe" >/dev/null 2>&1 && mounted "$work/probe" true 2>/dev/null || skip "an image of $disk cannot be mounted here"
    rm -r "$work/probe"
    ;;
  *) usage ;;
esac
mkdir "$work/probe"
recorded "$work/probe" "$work/log" true >/dev/null 2>&1 || [ "$disk" != files ] || skip "FUSE cannot mount here"
make_inputs || { echo "failed: no inputs"; exit 1; }

for s in "${scenarios[@]}"; do
  declare -F "${s}_run" >/dev/null || usage
  before=$failures second=0 old=0 new=0 SECONDS=0
  mkdir -p "$work/$s/old" "$work/$s/new"
  (cd "$work/$s/old" && "${s}_start") && (cd "$work/$s/new" && "${s}_start" && "${s}_run") || { fail "$s: does not run at all"; continue; }
  make_disk "$work/disk" >"$work/said" 2>&1 && within "$work/disk" "${s}_start" && recorded "$work/disk" "$work/log" "${s}_run" ||
    { fail "$s: does not run on the recorded disk: $(cat "$work/said")"; continue; }
  events=$(power_cut "$work/log")
  within "$work/disk" state_of "$s" . >"$work/state"
  [ "$(cat "$work/state")" = new ] || fail "$s: on the recorded disk it is $(cat "$work/state")"
  for ((i = 0; i < cuts; ++i)); do
    # The first one before anything, the last two after everything.
    event=$((i * events / (cuts > 2 ? cuts - 2 : 1)))
    wanted=any
    [ "$event" -lt "$events" ] || event=$events wanted=new
    [ "$event" -gt 0 ] || wanted=old
    name="$s, seed $((seed + i)), power lost after $event of $events"
    cut "$name" "$s" "$work/log" "$event" $((seed + i)) $wanted
    [ "$(cat "$work/state")" = new ] && new=$((new + 1)) || old=$((old + 1))
    [ $((i % 4)) != 1 ] || cut_again "$name" "$s" "$work/log" "$event" $((seed + i))
  done
  rm -rf "$work/disk"
  echo "$s on $disk: $events events, $cuts cuts ($new new, $old old), $second in the recovery too, $((failures - before)) failures, $SECONDS s"
done
[ "$failures" = 0 ]
