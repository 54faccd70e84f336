#!/usr/bin/env bash
# scripts/experiments/seq2seq, grow, depth and univae, --smoke: all rows and curves are there; what is done is not done again, and what is
# missing is made anew to the same bytes; another setting in the same folder is refused. Verdicts follow their rule; scripts/experiments/reproduce
# writes its report.
#   tests/cli/experiments.sh BIN_DIR
set -u
MASQUE_BIN=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
export MASQUE_BIN
experiments=$(cd "$(dirname "$0")/../.." && pwd)/scripts/experiments
experiment=$experiments/seq2seq
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

"$experiment" --smoke -o a >first 2>log || { cat log; fail "the first call"; }
[ "$(cut -f 1,2 a/summary.tsv | tail -n +2 | tr '\t\n' ': ')" = "pretrained:50 pretrained:200 scratch:50 scratch:200 " ] || fail "rows of the summary"
[ "$(wc -l <a/results.tsv)" = 9 ] || fail "rows of the results"
[ "$(grep -c '<circle' a/curves.svg)" = 8 ] || fail "dots of the picture"
cmp -s first a/summary.tsv || fail "the summary is not what was printed"

"$experiment" --smoke -o a >second 2>log || fail "the second call"
[ ! -s log ] || fail "the second call trained: $(head -n 1 log)"
cmp first second || fail "other results at the second call"

cp a/curves.svg before.svg
rm -r a/scratch-2-200* a/pretrained-1-50.done a/pretrained-1-50.tsv
"$experiment" --smoke -o a >third 2>log || fail "a call after losses"
cmp first third || fail "other results after losses"
cmp before.svg a/curves.svg || fail "another picture after losses"

"$experiment" --smoke --pretrain 7 -o a >none 2>log && fail "other settings were taken"
grep -q 'other settings' log || fail "no word about other settings"

experiment=$experiments/grow
"$experiment" --smoke -o b >first 2>log || { cat log; fail "growth"; }
[ "$(cut -f 1 b/summary.tsv | tail -n +2 | tr '\n' ' ')" = "scratch equal unequal noise aki " ] || fail "rows of growth"
[ "$(wc -l <b/results.tsv)" = 101 ] || fail "evaluations of growth"
[ "$(grep -c '<circle' b/curves.svg)" = 100 ] || fail "dots of growth"
# Exact copies stay copies; what differs from the start does not.
awk -F '\t' '$1 == "equal" && $7 != 0 || $1 ~ /noise|aki/ && $7 < 0.4 { exit 1 }' b/summary.tsv || fail "pairs that parted: $(cut -f 1,7 b/summary.tsv | paste -sd ' ')"
rm -r b/grown-aki-2 b/aki-2* b/unequal-1.parted
"$experiment" --smoke -o b >second 2>log || fail "growth after losses"
cmp first second || fail "other results of growth after losses"

experiment=$experiments/depth
"$experiment" --smoke -o c >first 2>log || { cat log; fail "depth"; }
[ "$(cut -f 1-4 c/summary.tsv | tail -n +2 | grep -c '	2	0$')" = 14 ] || fail "rows of depth: $(cat c/summary.tsv)"
[ "$(grep -c '<circle' c/adam.svg)" = 28 ] && [ "$(grep -c '<circle' c/loss.svg)" = 28 ] || fail "dots of depth"
rm -r c/pre-6-1.adam c/post-2-2.done c/deepnorm-2-1.change
"$experiment" --smoke -o c >second 2>log || fail "depth after losses"
cmp first second || fail "other results of depth after losses"

experiment=$experiments/univae
"$experiment" --smoke -o d >first 2>log || { cat log; fail "univae"; }
[ "$(wc -l <d/summary.tsv)" = 7 ] && [ "$(wc -l <d/results.tsv)" = 13 ] && [ "$(wc -l <d/swaps.tsv)" = 7 ] || fail "rows of univae: $(cat first)"
[ "$(grep -c '<circle' d/exact.svg)" = 12 ] || fail "dots of univae"
rm -r d/k32-2* d/k8-1.texts d/k128-1.swaps
"$experiment" --smoke -o d >second 2>log || fail "univae after losses"
cmp first second || fail "other results of univae after losses"

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
add a b more 0 'both m > 10.5; a m < 13'
add a b more 0 'either m > 11.5'
add a b more 0 'both m > 11.5'
add g a same 9 -
printf 'condition\tseed\tmeasure\tvalue\n' >values
printf '%s\n' a:1:11 a:2:12.1 a:3:13.2 b:1:10 b:2:11 b:3:12 c:1:1.01 c:2:0.99 c:3:1.02 d:1:1 d:2:1 d:3:1 e:1:1 e:2:1 e:3:30 f:1:0 f:2:0 f:3:0 g:1:nan g:2:inf |
  awk -F : '{ print $1 "\t" $2 "\tm\t" $3 }' >>values
awk -F '\t' -v experiment=x -f "$experiments/verdicts.awk" claims values | tail -n +2 | cut -f 9 >verdicts
printf '%s\n' reproduced 'direction only' contradicted contradicted 'not visible at this scale' 'direction only' 'not visible at this scale' reproduced \
  contradicted 'direction only' 'not run' reproduced contradicted reproduced reproduced 'not visible at this scale' 'not run' >expected
diff expected verdicts || fail "verdicts"
[ "$(awk -F '\t' -v experiment=x -f "$experiments/verdicts.awk" claims values | sed -n 2p | cut -f 5-8)" = "3	1.1	0.8516	1.348" ] || fail "the interval of the first row"

# Every experiment has a script, a page and claims; every claim has all columns.
"$experiments/reproduce" --list >names
cut -f 1 "$experiments/claims.tsv" | tail -n +2 | sort -u | diff - names || fail "experiments with claims and with pages differ"
while read -r name; do [ -x "$experiments/$name" ] || fail "no script $name"; done <names
awk -F '\t' 'NR > 1 && (NF != 8 || $6 !~ /^(more|less|same|not_more)$/ || $7 !~ /^[0-9.]+$/ || $8 !~ /^(-|[^ ]+ [^ ]+ [<>] [0-9.]+(; *[^ ]+ [^ ]+ [<>] [0-9.]+)*)$/) { print; bad = 1 } END { exit bad }' \
  "$experiments/claims.tsv" || fail "rows of claims.tsv"

"$experiments/reproduce" --tier smoke --only heads -o r >first 2>log || { cat log; fail "reproduce"; }
[ "$(wc -l <first)" = "$(grep -c '^heads	' "$experiments/claims.tsv")" ] && ! grep -q 'not run' first || fail "rows of heads: $(cat first)"
if command -v cmark-gfm >none; then grep -q '<h2 id="heads">' r/report/report.html || fail "the report as HTML"; fi
grep -q '^| many |' r/report/report.md && grep -q '^lm-train DIR' r/report/report.md || fail "the report"
rm r/heads/cells/many-2.tsv
"$experiments/reproduce" --tier smoke --only heads -o r >second 2>log || fail "reproduce after losses"
cmp first second || fail "other verdicts after losses"
"$experiments/reproduce" --tier hour --only heads -o r >none 2>log && fail "another tier was taken"
"$experiments/reproduce" --only nonsense >none 2>log
[ $? = 2 ] && grep -q "no experiment 'nonsense'" log || fail "a name that is none: $(cat log)"
exit $((failures > 0))
