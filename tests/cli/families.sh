#!/usr/bin/env bash
# What each family can do, tried with a small model of each: the table of apps/families.md.
#   families.sh BIN DATA PAGE [--update]   BIN: the folder of the tools, DATA: tests/data
# Exits with 1 where the page has another table; with --update the page gets this one.
set -euo pipefail
bin=$(cd "$1" && pwd) data=$(cd "$2" && pwd) page=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
update=${4:-}
PATH=$bin:$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# One token for each id of the small models; [MASK] is the one that most of them have.
{ printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' '<s>'; seq 6 60 | sed s/^/w/; } > all
for i in 1 2 3 4 5 6; do echo "w$((i + 6)) w$((2 * i + 7)) w$((20 - i)) w9"; done > lines
for i in 1 2 3 4; do printf 'w%s w9\tw8 w7\n' $((i + 6)); done > pairs
echo '{"ids":[6,17,36,8,31,22,9]}' > ids.jsonl

# yes or no; reason: why ckpt-grow refuses.
can() { if "$@" > out 2> err; then echo yes; else echo no; fi; }
reason() { tail -n 1 err | sed -n 's/.*cannot make this model [a-z]*: //p' | sed 's/[;,] .*//'; }

row() {
  local family=${1/:/\`, \`} model=$data/model/$2 kind=$3 file=${4:-} vocabulary objective runs trains writes edits deeper wider new gguf format
  vocabulary=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$model/config.json" | head -n 1)
  head -n "$vocabulary" all > words
  case $kind in mlm) objective=mlm ;; pairs) objective=seq2seq ;; tta) objective=tta ;; plm) objective=plm ;; *) objective=clm ;; esac
  rm -rf t d w r n
  runs=$(can lm-score dump "$model" --what hidden_states --records ids.jsonl -o d.safetensors); rm -f d.safetensors
  format=lines; [ $kind != pairs ] || format=pairs
  trains=$(can lm-train $format --init "$model" -o t --tokenizer whitespace:words --objective $objective --format $format --steps 1 --length 6 --batch-size 2 -q)
  if [ $kind = clm ] || [ $kind = pairs ]; then
    writes=$(echo 'w7 w8' | can lm-write generate "$model" --tokenizer whitespace:words --max-new-tokens 2)
  else
    writes=$(echo 'w7 [MASK] w8' | can lm-write fill "$model" --tokenizer whitespace:words)
  fi
  edits=$(can embed-fix norm "$model" -o n --unit)
  new=$(can ckpt new "$model/config.json" -o r)
  deeper=$(can ckpt-grow depth "$model" -o d --layers 6 --how zero)
  [ $deeper = yes ] || deeper="no: $(reason)"
  wider=$(can ckpt-grow width "$model" -o w --factor 2)
  [ $wider = yes ] || wider="no: $(reason)"
  gguf=no
  [ -z "$file" ] || gguf=$(can lm-score dump "$data/gguf_model/$file.gguf" --what hidden_states --records ids.jsonl -o d.safetensors); rm -f d.safetensors
  echo "| \`$family\` | $runs | $trains | $writes | $edits | $new | $deeper | $wider | $gguf |"
}

{
  echo '| family | runs | trains | writes | edits | new | deeper | wider | GGUF |'
  echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
  while read -r family model kind file; do row "$family" "$model" "$kind" "$file"; done <<'LIST'
albert albert mlm
bart ../encoder_decoder/bart pairs
bert bert mlm bert
big_bird big_bird mlm
bloom bloom clm
cohere cohere clm
deberta_v2 deberta_v3 mlm
distilbert distilbert mlm
dream dream mlm
electra electra_generator mlm
esm esm mlm
eurobert eurobert mlm
falcon falcon_groups clm
fnet fnet mlm
gau_alpha gau_alpha mlm
gemma gemma2 clm gemma2
gpt2 gpt2 clm gpt2
gpt_neo gpt_neo clm
gpt_neox gpt_neox clm
gpt_oss gpt_oss clm gpt-oss
gptj gptj clm
granite granite clm
llada llada mlm
llama llama clm llama
longformer longformer mlm
mistral mistral clm llama
mistral:mixtral mixtral clm mixtral
modernbert modernbert mlm
mpnet mpnet mlm
mpt mpt clm
neobert neobert mlm
nomic_bert nomic_bert mlm nomic-bert
olmo olmo2 clm olmo2
olmo:olmoe olmoe clm olmoe
opt opt clm
phi phi clm
phi3 phi3 clm phi3
qwen qwen3 clm qwen3
qwen:qwen2_moe qwen2_moe clm qwen2moe
qwen:qwen3_moe qwen3_moe clm qwen3moe
roberta roberta mlm
roformer roformer mlm
smollm3 smollm3 clm
stablelm stablelm clm
starcoder2 starcoder2 clm starcoder2
t5 ../encoder_decoder/t5 pairs t5
tta tta tta
xlnet xlnet plm
LIST
} > table
awk -v table=table '
  /^\| family \| runs/ { while ((getline line < table) > 0) print line; skip = 1 }
  skip && !/^\|/ { skip = 0 }
  !skip { print }' "$page" > new_page
if [ "$update" = --update ]; then
  cp new_page "$page"
elif ! diff "$page" new_page; then
  echo "families: $page has another table; families.sh … --update writes this one" >&2
  exit 1
fi
