#!/usr/bin/env bash
# scripts/experiments/seq2seq, grow, depth and univae at tier smoke: all values and pictures are there; what is done is not done again, and
# what is missing is made anew to the same bytes; another setting in the same folder is refused. Verdicts follow their rule; scripts/experiments/reproduce
# writes its report.
#   tests/cli/experiments.sh BIN_DIR
set -u
MASQUE_BIN=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
export MASQUE_BIN
experiments=$(cd "$(dirname "$0")/../.." && pwd)/scripts/experiments
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

# again FOLDER FILE...: a second call of $experiment measures nothing, and after the loss of files of the folder come the same values and pictures.
again() {
  local folder=$1
  cat "$folder"/values.tsv "$folder"/*.svg >before
  "$experiment" --tier smoke -o "$folder" >second 2>log || fail "the second call of $experiment"
  [ ! -s log ] || fail "the second call of $experiment measured: $(head -n 1 log)"
  (cd "$folder" && rm -r "${@:2}") || fail "files of $folder"
  "$experiment" --tier smoke -o "$folder" >second 2>log || { cat log; fail "$experiment after losses"; }
  cat "$folder"/values.tsv "$folder"/*.svg | cmp - before || fail "other results of $experiment after losses"
}
# has FOLDER ROWS DOTS PICTURE: so many values, and dots in a picture.
has() {
  [ "$(wc -l <"$1/values.tsv")" = $(($2 + 1)) ] || fail "values of $1: $(cat "$1/values.tsv")"
  [ "$(grep -c '<circle' "$1/$4.svg")" = "$3" ] || fail "dots of $1/$4.svg"
}

experiment=$experiments/seq2seq
"$experiment" --tier smoke -o a >first 2>log || { cat log; fail "the first call"; }
has a 48 12 exact
cmp -s first a/means.tsv || fail "the means are not what was printed"
again a cells/scratch-2.tsv models/scratch-100-2 models/scratch-100-2.done cells/pretrained-1.tsv
"$experiment" --tier hour -o a >none 2>log && fail "other settings were taken"
grep -q 'other settings' log || fail "no word about other settings"
"$experiment" --tier smoke --cell nonsense -o a >none 2>log
[ $? = 2 ] && grep -q "no condition 'nonsense'" log || fail "a condition that is none: $(cat log)"

experiment=$experiments/grow
"$experiment" --tier smoke -o b >first 2>log || { cat log; fail "growth"; }
has b 128 100 loss
[ "$(cut -f 1 b/means.tsv | tail -n +2 | sort -u | tr '\n' ' ')" = "aki equal noise scratch unequal " ] || fail "conditions of growth"
# Exact copies stay copies; what differs from the start does not.
awk -F '\t' '$3 == "parted" && ($1 == "equal" && $4 != 0 || $1 ~ /noise|aki/ && $4 < 0.4) { exit 1 }' b/values.tsv || fail "pairs that parted: $(grep parted b/values.tsv)"
again b cells/aki-2.tsv models/aki-2 models/aki-2.done models/grown-aki-2 cells/unequal-1.tsv

experiment=$experiments/depth
"$experiment" --tier smoke -o c >first 2>log || { cat log; fail "depth"; }
[ "$(grep -c '	diverged	0$' c/values.tsv)" = 42 ] || fail "rows of depth: $(cat c/values.tsv)"
has c 420 42 adam
has c 420 42 loss
again c cells/pre-6-1.tsv cells/post-2-2.tsv models/post-2-2-new

experiment=$experiments/univae
"$experiment" --tier smoke -o d >first 2>log || { cat log; fail "univae"; }
[ "$(grep -c '	wer_' d/values.tsv)" = 12 ] && [ "$(grep -c '	content_edits_last	' d/values.tsv)" = 6 ] || fail "rows of univae: $(cat first)"
[ "$(grep -c '<circle' d/exact.svg)" = 12 ] || fail "dots of univae"
again d cells/kappa-32-2.tsv models/kappa-32-2 models/kappa-32-2.done cells/kappa-8-1.tsv

# The rule of verdicts, one row for each case: differences are 1, 1.1, 1.2 (a − b), 0.01, −0.01, 0.02 (c − d), 1, 1, 30 (e − f).
printf 'experiment\tclaim\tmeasure\tfirst\tsecond\tkind\tleast\tlearned\n' >claims
add() { printf 'x\tclaim\tm\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" >>claims; }
add a b more 0 -
add a b more 2 -
add b a more 0 -
add a b less 0 -
add c d more 0 -
add e f more 0 -
add a b more 0 'a m > 100'
add c d same 0.1 -
add a b same 0.1 -
add e 0 more 0 -
add a none more 0 -
add b a not_more 0 -
add a b not_more 0.5 -
add a b more 0 'both m > 9; a m < 14'
add a b more 0 'either m > 10.5'
add a b more 0 'both m > 11.5'
add g a same 9 -
add h b more 0 -
add i b more 0 'i m > 100'
add a b more 0 'a m > 11.5'
printf 'condition\tseed\tmeasure\tvalue\n' >values
printf '%s\n' a:1:11 a:2:12.1 a:3:13.2 b:1:10 b:2:11 b:3:12 c:1:1.01 c:2:0.99 c:3:1.02 d:1:1 d:2:1 d:3:1 e:1:1 e:2:1 e:3:30 f:1:0 f:2:0 f:3:0 g:1:nan g:2:inf h:1:nan h:2:12 h:3:13 i:1:20 |
  awk -F : '{ print $1 "\t" $2 "\tm\t" $3 }' >>values
awk -F '\t' -v experiment=x -f "$experiments/verdicts.awk" claims values | tail -n +2 | cut -f 9 >verdicts
printf '%s\n' reproduced 'direction only' contradicted contradicted 'not visible at this scale' 'direction only' 'not learned' reproduced \
  contradicted 'direction only' 'not run' reproduced contradicted reproduced reproduced 'not learned' 'not finite' 'not finite' 'one seed, no verdict' \
  'not learned' >expected
diff expected verdicts || fail "verdicts"
[ "$(awk -F '\t' -v experiment=x -f "$experiments/verdicts.awk" claims values | sed -n 2p | cut -f 5-8)" = "3	1.1	0.8516	1.348" ] || fail "the interval of the first row"

# Every experiment has a script, a page and claims; every claim has all columns.
"$experiments/reproduce" --list >names
cut -f 1 "$experiments/claims.tsv" | tail -n +2 | sort -u | diff - names || fail "experiments with claims and with pages differ"
while read -r name; do [ -x "$experiments/$name" ] || fail "no script $name"; done <names
awk -F '\t' 'NR > 1 && (NF != 10 || $6 !~ /^(more|less|same|not_more)$/ || $7 !~ /^[0-9.]+$/ || $9 !~ /^(before|after)$/ || $8 !~ /^(-|[^ ]+ [^ ]+ [<>] [0-9.]+(; *[^ ]+ [^ ]+ [<>] [0-9.]+)*)$/) { print; bad = 1 } END { exit bad }' \
  "$experiments/claims.tsv" || fail "rows of claims.tsv"

# The committed report has the verdicts of the committed values.
for values in "$experiments"/results/hour/*.tsv; do
  name=$(basename "$values" .tsv)
  ! grep -qx "## $name" "$experiments/results/hour/report.md" ||
    awk -F '\t' -v experiment="$name" -f "$experiments/verdicts.awk" "$experiments/claims.tsv" "$values" | awk -F '\t' -v name="$name" 'NR > 1 { print name "\t" $1 "\t" $6 "\t" $9 }'
done >verdicts
awk -F ' [|] ' '/^[|] \[/ { sub(/^.*\[/, "", $1); sub(/\].*/, "", $1); print $1 "\t" $2 "\t" $5 "\t" $8 }' "$experiments/results/hour/report.md" | diff - verdicts || fail "verdicts of the committed report"

"$experiments/reproduce" --tier smoke --only heads -o r >first 2>log || { cat log; fail "reproduce"; }
[ "$(wc -l <first)" = "$(grep -c '^heads	' "$experiments/claims.tsv")" ] && ! grep -q 'not run' first || fail "rows of heads: $(cat first)"
if command -v cmark-gfm >none; then grep -q '<h2 id="heads">' r/report/report.html || fail "the report as HTML"; fi
grep -q '^| many |' r/report/report.md && grep -q '^lm-train DIR' r/report/report.md || fail "the report"
grep -q '14 of 14 models measured in' r/report/report.md || fail "where the values were measured: $(grep measured r/report/report.md)"
rm r/heads/cells/many-2.tsv
"$experiments/reproduce" --tier smoke --only heads -o r >second 2>log || fail "reproduce after losses"
cmp first second || fail "other verdicts after losses"
"$experiments/reproduce" --tier hour --only heads -o r >none 2>log && fail "another tier was taken"
"$experiments/reproduce" --only nonsense >none 2>log
[ $? = 2 ] && grep -q "no experiment 'nonsense'" log || fail "a name that is none: $(cat log)"
# Known values are taken, what is measured in the folder stays, and their commands are in the report.
if command -v bible >none; then
  mkdir -p k/heads/cells
  printf 'loss\t7\nrank\t1\n' >k/heads/cells/many-2.tsv
  "$experiments/reproduce" --tier hour --known --only heads -o k >none 2>log || { cat log; fail "known values"; }
  [ "$(cat k/heads/cells/many-2.tsv)" = "$(printf 'loss\t7\nrank\t1')" ] && ! grep -q 'seed' log || fail "known values were measured: $(cat log)"
  grep -q '^# many' k/heads/commands && grep -q '^lm-train DIR/train.txt' k/report/report.md || fail "the commands of known values"
fi
"$experiments/reproduce" --tier hour --known --text log --eval-text log -o q >none 2>log
[ $? = 2 ] && grep -q 'default text' log || fail "known values of another text: $(cat log)"
exit $((failures > 0))
