#!/usr/bin/env bash
# No control character of a file, and none that changes the order of text, reaches stdout or stderr as it is: every command on inputs
# that have them in texts, tokens and names. What is text for others stays as it is: the lines of tok decode, droptoken noise and
# lm-write.
#   tests/cli/controls.sh BIN_DIR [PATTERN]
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped.
# shellcheck disable=SC2154  # every_command, work: of every_command.sh
set -u

# shellcheck source=tests/cli/every_command.sh
. "$(dirname "$0")/every_command.sh"
use_tools "${1:?BIN_DIR, the folder of the tools}" "it looks at texts, not at memory"
pattern=${2-.}
failures=0
# BEL, ESC, DEL, CSI of C1, right-to-left override.
hostile=$(printf 'w\007\033[31m\177\302\2331m\342\200\2568')
in_json='w\\u0007\\u001b[31m\\u007f\\u009b1m\\u202e8'
cd "$work/start" || exit 1
for file in text labelled.tsv numbers.tsv masked vocab.sets vocab.txt pairs sts.tsv nbest.tsv new.tsv right.txt old.txt names.tsv; do
  hostile=$hostile perl -pi -e 's/\bw8\b/$ENV{hostile}/g; s/\tx$/\t$ENV{hostile}/' $file
done
find . -name vocab.txt -exec env hostile="$hostile" perl -pi -e 's/^w8$/$ENV{hostile}/' {} +
sed -i "s/\"the cat\"/\"the cat $in_json\"/" pairs.jsonl
mkdir "$hostile" && cp -r in/. "$hostile"

# raw FILE: the lines of it that have what a terminal obeys.
raw() { LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf' "$1"; }
# look KIND COMMAND
look() {
  fresh "$1"
  (cd "$run" && timeout -k 1 100 sh -c "$2" </dev/null >"$work/run.out" 2>"$work/run.err")
  case $2 in
    'tok decode '* | 'droptoken noise '* | 'droptoken undo '* | *' -o out'* | 'ckpt cat '*) ;;
    'lm-write '*--json*) ! raw "$work/run.out" || { echo "stdout of $2" && failures=$((failures + 1)); } ;;
    'lm-write correct '* | 'lm-write generate '* | 'lm-write latent '*) ;;
    *) ! raw "$work/run.out" | head -n 3 | cat -v | grep . || { echo "stdout of $2" && failures=$((failures + 1)); } ;;
  esac
  ! raw "$work/run.err" | head -n 3 | cat -v | grep . || { echo "stderr of $2" && failures=$((failures + 1)); }
}
runs=0
while read -r kind command; do
  [[ -n $kind && $command =~ $pattern ]] || continue
  look "$kind" "$command"
  # The same with a folder of a hostile name, and with one that is not there.
  case " $command " in
    *' in '*) look "$kind" "${command/ in/ \"$hostile\"}" ;;
    *' model '*) look "$kind" "${command/ model/ \"no$hostile\"}" ;;
  esac
  case $command in *' < text') look "$kind" "${command% < text} --json < text" ;; esac
  runs=$((runs + 1))
done <<<"$every_command"

# Tables that are damaged.
look run 'mkdir bad; printf "cell\tk\033[31m\tseed\nx\033\007\342\200\256\tv\033\t0\n" >bad/sweep.tsv; lm-train collect bad'
look run 'mkdir bad; printf "cell\tk\033[31m\tseed\nx\033\007\342\200\256\tv\033\t0\n" >bad/sweep.tsv; lm-train collect bad --json'
look run 'printf "cell\tk\033[31m\tseed\nx\033\007\342\200\256\tv\033\t0\n" >swept/sweep.tsv; lm-train sweep text -o swept --tokenizer vocab.txt'
look run 'printf "\033[31m\007\tx\n" >cells/cells/$(ls cells/cells); length-gen run --cell 1/1 --task copy --train-length 1-3 --eval-lengths 3,6 --eval-examples 2 --steps 2 --seeds 1 --position rope --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 -o cells'
for field in design task position seed; do
  look run "for f in cells/parts/*; do sed -i '/^#/d; s/$field/$field'\$(printf '\\033')'/; 2s/rope/ro'\$(printf '\\033')'pe/' \$f; done; length-gen collect cells"
done
echo "$runs commands"
[ $failures = 0 ]
