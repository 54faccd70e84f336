# shellcheck shell=bash disable=SC2034  # used by those that source it
# Every command of every tool on small inputs, for tests that let each of them fail. Sourced.

# A line: KIND COMMAND, run by `sh` in a folder that make_inputs made.
#   print  prints alone
#   out    writes 'out…', all of it or nothing
#   place  changes the folder 'in', as a whole or not at all
#   run    fills the folder 'out' bit by bit
every_command='
print mask-viz list
print mask-viz model model
print mask-viz show causal -n 6
out mask-viz show causal -n 6 -o out.svg
out mask-viz show causal -n 6 -o out.png
print mask-viz report "causal & window(3)" -n 64
print mask-viz flow causal -n 8 -L 3 --predict next
print mask-viz diff causal "causal & window(3)" -n 16
print mask-viz identify mask.npy
out mask-viz convert mask.npy --from forbid --to hf -o out.npy
print attn-probe variants
print attn-probe fields
print attn-probe stats model --json < text
print attn-probe depth model < text
print attn-probe depth model --steps 2 --batch-size 2 < text
out attn-probe stats model --draw js -o out.svg < text
out attn-probe map model --text "the cat sat" -o out.html
out attn-probe map model --text "the cat sat" -o out.npy
print attn-probe check leak model < text
print attn-probe check pad model < text
print attn-probe check batch model < text
print attn-probe check order model < text
print attn-probe check sane model < text
print attn-probe consistency model < text
print attn-probe probe zero model --length 8
print attn-probe probe position model < text
print attn-probe probe token model < text
print attn-probe probe segment model --records segments.jsonl
print attn-probe probe label model --records labels.jsonl
print attn-probe probe scheme --position rope --length 8
print attn-probe ablate model < text
print attn-probe visible model < text
print attn-probe merge stats.jsonl
out embed-fix mlm-correct in -o out --verify
out embed-fix add in covid -o out
out embed-fix remove in w7 -o out
out embed-fix keep in w7 w8 -o out
out embed-fix permute in @order -o out
out embed-fix resize in 50 --multiple 64 -o out
out embed-fix rename in w7=dog -o out
out embed-fix swap-vocab in vocab.txt -o out
out embed-fix case in -o out
out embed-fix positions in 40 --how interpolate -o out
out embed-fix types in 4 -o out
out embed-fix expr in "#5 = mean(#6, #7)" -o out
out embed-fix norm in --unit -o out
out embed-fix untie in -o out
out embed-fix tie untied -o out
print embed-fix recover in
print embed-fix tables in
print embed-fix stats in
print embed-fix neighbours in w7
print embed-fix diff in other
place embed-fix norm in --unit --in-place
place embed-fix expr in "#5 = mean(#6, #7)" --in-place
print droptoken drop --rate 0.3 < ids
print droptoken mlm --mask-token 3 --vocab-size 30 < ids
print droptoken mdlm --mask-token 3 --block-size 2 < ids
print droptoken perm < ids
print droptoken electra --mask-token 3 --vocab-size 30 < ids
print droptoken mae --ratio 0.5 < ids
print droptoken bart --noise infill --mask-token 3 < ids
print droptoken noise < text
print droptoken prefix < ids
print droptoken pack --length 16 < ids
print droptoken undo < dropped
print droptoken stats < dropped
out droptoken drop --rate 0.3 --binary u16 --length 8 --input ids.bin -o out.bin
run length-gen run --task copy --train-length 1-3 --eval-lengths 3,6 --eval-examples 2 --steps 2 --seeds 1 --position rope --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 -o out
print length-gen sweep --task copy --train-length 1-3 --eval-lengths 3,6 --eval-examples 2 --steps 2 --seeds 2 -o out
run length-gen collect cells
print length-gen eval model --text text --eval-lengths 4,8
print length-gen probe model --text text --eval-lengths 4,8
print length-gen treatments
print length-gen lowrank --lengths 4 --key-sizes 1,2
print length-gen tasks --length 4
print lm-score score model < text
print lm-score score model --kind pll-word-l2r --json --per-token < text
print lm-score score causal --per-word < text
print lm-score score model --kind mdlm --draws 3 < text
print lm-score score student --kind maskless < text
print lm-score pairs model pairs.jsonl
print lm-score pairs model pairs.jsonl --per-pair
print lm-score pairs model pairs.jsonl --against model
print lm-score ppl model < text
print lm-score choose model --pattern "X the [MASK]" --labels a=cat,b=w7 --label-column 2 --calibrate labelled.tsv
print lm-score choose model --pattern "X the [MASK]" --labels a=cat,b=w7 --label-column 2 --write-records -k 1 labelled.tsv
out lm-score embed model -o out.npy < text
print lm-score sim model sts.tsv
out lm-score rescore model nbest.tsv --weight 0.3 -o out.tsv
print lm-score rescore model new.tsv --weight 0.3
print lm-score compare text right.txt --against old.txt --samples 20 --trials 20
print lm-score compare - right.txt --per-line < text
print lm-score compare long reversed --samples 20
print lm-write fill model < masked
print lm-write fill model --joint gibbs --sweeps 3 --json < masked
print lm-write correct model --edit-distance 2 < text
print lm-write correct model --json < text
print lm-write correct model --confusion vocab.sets < text
print lm-write correct soft --per-word < text
out lm-write correct model --reference text -o out.txt < text
print lm-write generate causal --max-new-tokens 4 < text
print lm-write generate causal --num-beams 2 --max-new-tokens 4 < text
print lm-write generate model --kind unilm --source text --max-new-tokens 2 < text
print lm-write generate model --kind masked --length 3 < text
print lm-write generate model --kind masked --how gibbs --length 3 --sweeps 2 --json < text
print lm-write generate model --kind masked --how mask-predict --length 3 --iterations 2 < text
print lm-write generate model --kind masked --how random --length 3 --iterations 2 < text
print lm-write latent encode latent --json < text
out lm-write latent encode latent -o out.npy < text
print lm-write latent decode latent --latents points.npy --max-new-tokens 3
print lm-write latent sample latent --count 2 --max-new-tokens 3
print lm-write latent interpolate latent --steps 3 --max-new-tokens 3 < pairs
print lm-write latent swap latent --function-words vocab.txt --max-new-tokens 3 < pairs
out lm-score dump model --what hidden_states,logits -o out.safetensors < text
print lm-score merge ppl.jsonl
run lm-train text -o out --tokenizer vocab.txt --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train tokens -o out --tokenizer in --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train tokens/ids.bin -o out --tokenizer in --format blocks --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --rate 0.5 --batch-size 2 --length 8
run lm-train text -o out --tokenizer vocab.txt --objective mdlm --block-size 2 --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train text -o out --tokenizer vocab.txt --objective univae --latent-layers 1 --latent-size 3 --steps 2 --num-hidden-layers 2 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train text -o out --tokenizer vocab.txt --norm-placement admin --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train pairs -o out --tokenizer vocab.txt --objective correct --pairs --steps 2 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 --length 8
run lm-train text -o out --init in --steps 2 --batch-size 2 --length 8
run lm-train classify labelled.tsv -o out --model in --steps 2 --batch-size 2
run lm-train classify numbers.tsv -o out --model in --problem-type regression --steps 2 --batch-size 2
run lm-train sweep text -o out --tokenizer vocab.txt --steps 2 --vary position=rope,alibi --print-slurm
print lm-train collect swept
out ckpt-grow width in -o out --how unequal
out ckpt-grow depth in -o out --layers 3
out ckpt-grow both in -o out --layers 3 --verify
print ckpt-grow check in other < text
out ckpt new in/config.json -o out --seed 5
print ckpt ls in
print ckpt stats in
print ckpt check in
print ckpt cat in bert.embeddings.LayerNorm.weight
print ckpt diff in other
print ckpt hash in --total
out ckpt convert in -o out --dtype F16
out ckpt convert in -o out.gguf
out ckpt convert in -o out.index
out ckpt convert in -o out --format torch
out ckpt convert in -o out.npz
print ckpt check torch
print ckpt diff torch in
print ckpt diff in.npz in
out ckpt rename in --map names.tsv -o out
out ckpt merge-adapter in adapter -o out
print tok info in
print tok info tokens
print tok check tokens
out tok merge tokens tokens -o out
run tok encode in --to out < text
print tok encode in < text
out tok encode in --binary u16 -o out.bin < text
print tok encode gpt --jsonl --with text,offsets,tokens < text
print tok decode in < ids
print tok count in < text
print tok diff in bytes < text
out tok train -o out --size 40 < text
out tok train -o out --size 300 --model bpe < text
'

# make_inputs DATA: fills the folder that it is called in.
make_inputs() {
  cp -r "$1/model/bert" in && cp -r "$1/model/gpt2" causal && cp -r "$1/surgery/adapters/bert" adapter && chmod -R u+w . || return
  rm in/expected.safetensors causal/expected.safetensors in/records.jsonl causal/records.jsonl
  { printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat; seq -f w%g 7 44; } >in/vocab.txt
  cp in/vocab.txt causal/vocab.txt && echo '{"tokenizer_class": "BertTokenizer"}' >causal/tokenizer_config.json && cp -r in model && cp in/vocab.txt vocab.txt
  ckpt new in/config.json -o other --seed 2 -q && embed-fix untie in -o untied -q >none && rm none || return
  ckpt convert in -o torch --format torch -q && ckpt convert in -o in.npz -q || return
  printf 'the cat w7\nw8 w9 the\ncat w10 w11 w12\n' >text
  printf 'the cat\ta\nw8 w9\tb\ncat\ta\nw10\tb\n' >labelled.tsv
  printf 'the [MASK] w7\n[MASK] cat [MASK]\n' >masked
  printf 'cat\tw7\nw8\tw9\tw10\n' >vocab.sets
  printf 'the cat w8\tthe cat w7\nw8 w9 w10\tw8 w9 the\n' >pairs
  echo '{"model_type": "masque", "vocab_size": 45, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "mask_token_id": 4, "detector": {}}' >soft.json
  # A model that gives a number to a text.
  printf 'the cat\t-2\nw8 w9\t1\ncat\t-1.5\nw10\t0\n' >numbers.tsv
  lm-train classify numbers.tsv --model in --problem-type regression --steps 1 --batch-size 2 -o student -q >none || return
  ckpt new soft.json -o soft -q && cp in/vocab.txt soft && rm soft.json || return
  echo '{"model_type": "masque", "vocab_size": 45, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1, "type_vocab_size": 2, "max_position_embeddings": 16, "latent": {"num_hidden_layers": 1, "size": 3}}' >latent.json
  ckpt new latent.json -o latent -q && cp in/vocab.txt latent && rm latent.json || return
  lm-write latent encode latent -o points.npy -q <text || return
  seq 44 -1 0 >order
  for i in 5 6 7 8 9 10; do echo "{\"ids\":[2,$i,3,6,3],\"seg\":[0,0,0,1,1]}"; done >segments.jsonl
  sed 's/"seg"/"labels"/' segments.jsonl >labels.jsonl
  rm -f none
  printf '5 6 7 8 9 10 11 12\n13 14 15\n' >ids
  head -c 96 /dev/zero | tr '\0' '\005' >ids.bin
  droptoken drop --rate 0.3 -q <ids | droptoken mlm --mask-token 4 --vocab-size 45 -q >dropped
  tok encode in --to tokens -q <text || return
  mask-viz show 'causal & window(3)' -n 6 -o mask.npy
  attn-probe stats model --shard 1/1 -q <text >stats.jsonl
  lm-score ppl model --shard 1/1 -q <text >ppl.jsonl
  length-gen run --cell 1/1 --task copy --train-length 1-3 --eval-lengths 3,6 --eval-examples 2 --steps 2 --seeds 1 \
    --position rope --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 -o cells -q >none
  lm-train sweep text -o swept --tokenizer vocab.txt --steps 1 --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 \
    --length 8 --vary position=rope,alibi -q | sh || return
  tok train -o gpt --size 300 --model bpe -q <text
  printf '{"good":"the cat","bad":"cat the"}\n' >pairs.jsonl
  printf '1\tthe cat\tthe w7\n2\tw8\tw8\n3\tw9\tw10 cat\n' >sts.tsv
  printf 'u\t-1\tthe cat\tthe cat\nu\t-2\tthe w7\tthe cat\n' >nbest.tsv
  printf 'u\t-1\tthe cat\nu\t-2\tthe w7\n' >new.tsv
  printf 'the cat w8\nw8 w9 the\ncat w10 w12\n' >right.txt
  printf 'the cat\nw9 the\ncat w10 w12\n' >old.txt
  printf 'bert.embeddings.LayerNorm.weight\tx\n' >names.tsv
  # More than a block of an edit distance.
  seq 200 | tr '\n' ' ' >long && seq 200 -1 1 | tr '\n' ' ' >reversed
}

# use_tools BIN_DIR WHY: the tools of BIN_DIR are first in PATH, $work is a folder that goes at the end, with all inputs in it. A build
# with a sanitizer is left out, and WHY is printed.
use_tools() {
  export LC_ALL=C
  bin=$(cd "$1" && pwd) || exit 1
  # shellcheck source=tests/cli/sanitizer.sh
  . "$(dirname "${BASH_SOURCE[0]}")/sanitizer.sh"
  if sanitized "$bin/ckpt"; then
    echo "skipped: $2"
    exit 77
  fi
  export PATH=$bin:$PATH
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  make_start "$(dirname "${BASH_SOURCE[0]}")/../data" || exit 1
}

# Folders below $work: start, where every command begins; end, where it ended without a fault; run, where it may fail.
# What a command printed is in clean.out and clean.err, then in run.out and run.err; $clean is its exit code.
make_start() { # DATA
  local data
  data=$(cd "$1" && pwd)
  mkdir "$work/start" && (cd "$work/start" && make_inputs "$data") && cp -r "$work/start" "$work/inputs"
}
clean_run() { # COMMAND
  clean=0
  rm -rf "$work/end" && cp -r "$work/start" "$work/end" || return
  (cd "$work/end" && sh -c "$1" </dev/null >"$work/clean.out" 2>"$work/clean.err") || clean=$?
  sort -u "$work/clean.err" >"$work/notes"
}

# A fresh folder to fail in; a command that only prints needs none, its inputs are compared by unharmed.
fresh() { # KIND
  run=$work/start
  [ "$1" != print ] || return 0
  run=$work/run
  rm -rf "$run" && cp -r "$work/start" "$run"
}

# Temporaries that stay because a call that removes them failed, or because there is no memory to list a folder with, are
# found and reused by the next run: no difference where $may_leave is set.
differs() {
  if [ -n "${may_leave-}" ]; then diff -r -x '.*.masque-tmp' "$1" "$2"; else diff -r "$1" "$2"; fi
}

# judge KIND COMMAND CODE: prints what is wrong with the run, if anything.
judge() {
  local tool=${2%% *} lines
  case $3 in
    "$clean")
      [ "$1" = run ] || cmp -s "$work/clean.out" "$work/run.out" || echo "exit $3, but other output"
      case $1 in out | place) differs "$work/end" "$run" >"$work/diff" || echo "exit $3, but: $(head -n 1 "$work/diff")" ;; esac
      return
      ;;
    3) ;;
    *) echo "exit $3: $(tail -n 1 "$work/run.err")" && return ;;
  esac
  # Notes that the run without a fault has, too, may stand before the message.
  lines=$(grep -vxFf "$work/notes" "$work/run.err" | grep -c .)
  { [ "$lines" = 1 ] || [ "$1" = run ]; } && tail -n 1 "$work/run.err" | grep -q "^$tool: " ||
    echo "expected one line of $tool, found $lines: $(tail -n 1 "$work/run.err")"
  case $1 in
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

# Whether the inputs of commands that only print are as they were; to be called once, at the end.
unharmed() {
  diff -r "$work/start" "$work/inputs" && return
  echo "inputs were changed"
  return 1
}
