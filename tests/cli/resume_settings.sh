#!/usr/bin/env bash
# resume_settings.sh BIN: every option of lm-train that decides what a run makes is compared by --resume: given at the
# start and not when it goes on, and the other way round. Each must be refused, and the model stays as it was.
set -euo pipefail
bin=$(realpath "$1")
lm_train=$bin/lm-train
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat dog sat on mat . >vocab.txt
for _ in 1 2 3 4 5 6; do printf '%s\n' 'the cat sat on the mat .' 'the dog sat .'; done >text

failed=0
problem() {
  echo "resume_settings: $*" >&2
  failed=1
}

run() {  # FOLDER OPTION…
  local to=$1
  shift
  "$lm_train" text -o "$to" --tokenizer vocab.txt --steps 1 --length 16 --batch-size 2 -j 1 -q "$@"
}
new() {  # FOLDER OPTION…: a small model
  local to=$1
  shift
  run "$to" --num-hidden-layers 2 --hidden-size 16 "$@"
}

# START CONTEXT OPTION [GIVEN]: START is new or run; both runs have CONTEXT, one of them OPTION. GIVEN: only the second
# one, since a run that goes on keeps what the first one said.
check() {
  local start=$1 context option way ways="given missing"
  [ $# -lt 4 ] || ways=missing
  eval "context=($2)"
  eval "option=($3)"
  for way in $ways; do
    rm -rf out
    local first=("${context[@]}") then=("${context[@]}")
    if [ $way = given ]; then first+=("${option[@]}"); else then+=("${option[@]}"); fi
    if ! "$start" out "${first[@]}" 2>said; then
      problem "$2 $3: cannot start: $(cat said)"
      return
    fi
    cp -r out before
    local code=0
    "$start" out "${then[@]}" --resume 2>said || code=$?
    if [ $code -ne 3 ] || ! grep -q 'the run used ' said; then
      problem "$2 $3, $way at the start: exit code $code, $(cat said)"
    fi
    diff -r before out >changed || problem "$2 $3, $way at the start: $(cat changed)"
    rm -rf before
  done
  tested+=" ${3%% *}"
}

tested=""
# The design.
check new '' '--num-attention-heads 2'
check run '--hidden-size 16' '--num-hidden-layers 3'
check run '--num-hidden-layers 1' '--hidden-size 32'
check new '' '--head-size 8'
check new '' '--value-size 8'
check new '' '--intermediate-size 8'
check new '--layer-kind gated_attention' '--attention-key-size 8'
check new '' '--layer-kind gated_attention'
check new '' '--position alibi'
check new '--position t5' '--position-shared'
check new '--position rope' '--late-positions 1'
check new '' "--normalizer 'log_n(base=4)'"
check new '' '--norm-placement pre'
check new '--norm-placement deepnorm' '--norm-placement deepnorm_su'
check new '' '--no-input-residual'
check new '' '--norm rms'
check new '' '--hidden-act relu'
check new '' '--gated'
check new '' '--mixer synthesizer_random'
check new '--mixer synthesizer_factorized_random' '--mixer-inner-size 4'
check new '--mixer amlp' '--mixer-attention-size 4'
check new '--mixer depthwise_convolution' '--mixer-kernel-size 3'
check new '--mixer depthwise_convolution' '--mixer-dilation 2'
check new '--mixer mixed_chunk' '--mixer-chunk-size 4'
check new '' '--talking-heads both'
check new '--talking-heads both' '--softmax-heads 3'
check new '--talking-heads both' '--value-heads 2'
check new '' '--largest-keys 3'
check new '' '--previous-scores one_layer'
check new '' '--untied'
check new '' '--head-shifted'
check new '' "--mask 'window(2)'"
# Of a checkpoint: its own design, whatever it is.
"$lm_train" text -o start --tokenizer vocab.txt --steps 1 --length 16 --batch-size 2 -j 1 -q --num-hidden-layers 2 \
  --hidden-size 16 --position alibi --normalizer 'log_n(base=4)'
check run '--init start' '--normalizer softmax'
check run '--init start' "--normalizer 'log_n(base=8)'"
check run '--init start' '--position learned'
check run '--init start' '--position rope'
check run '--init start --position t5' '--position-shared'
check run '--init start' "--mask 'window(2)'"
check run '--init start --objective clm' "--mask 'causal_window(2)'"
check run '--init start' '--init-moments'
# Training.
check new '' '--optimizer lamb'
check new '' '--learning-rate 0.1'
check new '' '--warmup 1' given
check new '' '--decay constant'
check new '' '--decay-floor 0.5'
check new '' '--weight-decay 0.1'
check new '' '--beta1 0.5'
check new '' '--beta2 0.5'
check new '' '--clip 0.5'
check new '' '--dropout 0.1'
check new '' '--attention-dropout 0.1'
check new '--previous-scores one_layer' '--score-noise 0.1'
check new '--previous-scores one_layer' '--score-dropout 0.1'
check new '' '--initializer-range 0.1'
check new '' '--precision bf16'
check new '' '--train head'
check new '' '--freeze head'
check new '' '--rate-of head=2'
check new '' '--layer-decay 0.5'
check new '' '--chunk-tokens 4'
check new '' '--gradient-precision bf16'
check new '--rate 0.5' '--seed 3'
check new '' '--batch-size 3'
check new '' '--length 12'
check new '--length 8' '--policy skip'
check new '' '--format blocks'
check new '' '--diversity d1:0.1'
# Objectives.
check new '' '--objective clm'
check new '' '--rate 0.3'
check new '' '--unit word'
check new '' '--choice span'
check new '--choice span' '--span-p 0.5'
check new '--choice span' '--span-longest 3'
check new '' '--split 0.5:0.25:0.25'
check new '' '--draws 2'
check new '' '--fixed-selection'
check new '' '--drop 0.3'
check new '--drop 0.3' '--min-keep 3'
check new '--drop 0.3' '--renumber'
check new '--objective plm' '--predict 0.5'
check new '--objective plm' '--perm-size 4'
check new '--objective plm' '--alpha 3'
check new '--objective plm' '--beta 2'
check new '--objective plm' '--no-spans'
check new '--objective plm --memory 4 --perm-size 4' '--causal-blocks'
check new '--objective unilm' '--source 0.5'
check new '--objective unilm' '--mix 1:1:1:1'
check new '--objective mae-mask' '--mae-ratio 0.5'
check new '--objective mdlm' '--block-size 4'
check new '--objective clm' '--memory 4'
check new '--objective univae' '--latent-layers 1'
check new '--objective univae' '--latent-size 8'
check new '--objective univae' '--kappa 8'
check new '--objective univae' '--learned-kappa'
check new '--objective univae --learned-kappa' '--kl-weight 0.5'
check new '--objective univae --learned-kappa' '--kl-cycle 4'
check new '--objective univae --learned-kappa' '--free-nats 0.5'
check new '--objective electra' '--generator-size 0.5'
check new '--objective electra' '--discriminator-weight 5'
check new '--objective electra' '--shared-tables none'
check new '--objective electra' '--adversarial'
check new '--objective mae' '--decoder-size 0.25'
check new '--objective mae' '--decoder-layers 2'

# What is left: inputs and outputs, which are compared by their content; what changes no byte of the result; options of
# other inputs (records, pairs, lists of similar tokens), which other tests have; --switch, which a run of one step cannot
# have.
known="--output --init --init-generator --tokenizer --pairs --steps --budget --replace --streams --eval --eval-every
--eval-sequences --checkpoint-every --timing --resume --shard-optimizer --recompute --threads --quiet --experiment
--print-experiment --field --allow-leak --switch --detector-size --detector-layers --correction-weight --help --version --man
--completion"
for option in $("$lm_train" --help | grep -oE '^ +(-[a-z],)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u); do
  case " $tested $(echo $known) " in
    *" $option "*) ;;
    *) problem "$option is not tested" ;;
  esac
done
exit $failed
