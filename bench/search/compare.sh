#!/bin/sh
# Kernel Tuner's strategies beside ours on the same recorded spaces.
#
#   bench/search/compare.sh ERGOTUNE DATA_FOLDER [OUTPUT_FOLDER] [REPEATS]
#
# Makes a virtual environment with kernel-tuner from PyPI, runs its simulation mode, and prints two tables: scores by time (`ergotune score`,
# on recordings that say what a configuration cost), and how near to the optimum each strategy is after 25 to 400 evaluations
# (by_evaluations.py). Everything is replayed. ERGOTUNE is the command in a build folder, whose Python package is used. OURS and THEIRS
# name other strategies.
set -eu
ergotune=$1
data=$2
output=${3:-search-comparison}
repeats=${4:-20}
ours=${OURS:-auto,genetic,random}
theirs=${THEIRS:-random_sample,genetic_algorithm,simulated_annealing,dual_annealing,pso,greedy_ils,diff_evo,bayes_opt}
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$output"
python=$output/venv/bin/python
if [ ! -x "$python" ]; then
  python3 -m venv "$output/venv"
  "$output/venv/bin/pip" install --quiet "kernel-tuner==1.4.0"
fi
all=$(find "$data" -name '*.json.gz' ! -name '*.T1.*' ! -name '*.T4.*' | sort)
costed=$(for cache in $all; do ! zcat "$cache" | grep -q '"compile_time"' || echo "$cache"; done)
score() { "$ergotune" score $(printf -- '--data %s ' $costed) --json "$@"; }

score --strategies brute_force --repeats 1 > "$output/budgets.json"
"$python" "$here/kernel_tuner_runs.py" "$output/budgets.json" "$output/kernel_tuner.json" "$theirs" "$repeats" $costed
score --strategies "$ours" --repeats "$repeats" --runs "$output/kernel_tuner.json" --figure "$output/convergence.svg" > "$output/scores.json"
"$python" "$here/table.py" "$output/scores.json"
PYTHONPATH=$(dirname "$ergotune")/python "$python" "$here/by_evaluations.py" "$output/runs.json" $all --ours "$ours" --theirs "$theirs" \
  --repeats "$repeats"
