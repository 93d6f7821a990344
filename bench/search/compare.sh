#!/bin/sh
# Kernel Tuner's strategies beside ours on the same recorded spaces, in the same scoring.
#
#   bench/search/compare.sh ERGOTUNE DATA_FOLDER [OUTPUT_FOLDER] [REPEATS]
#
# Makes a virtual environment with kernel-tuner from PyPI, runs its simulation mode, and prints one table. Everything is
# replayed. OURS and THEIRS name other strategies.
set -eu
ergotune=$1
data=$2
output=${3:-search-comparison}
repeats=${4:-20}
ours=${OURS:-auto,simulated_annealing,genetic,random}
theirs=${THEIRS:-simulated_annealing,adaptive_tabu_greywolf,genetic_algorithm,random_sample}
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$output"
if [ ! -x "$output/venv/bin/python" ]; then
  python3 -m venv "$output/venv"
  "$output/venv/bin/pip" install --quiet "kernel-tuner==1.4.0"
fi
caches=$(find "$data" -name '*.json.gz' ! -name '*.T1.*' ! -name '*.T4.*' | sort)
"$ergotune" score --data $caches --strategies brute_force --repeats 1 --json > "$output/budgets.json"
"$output/venv/bin/python" "$here/kernel_tuner_runs.py" "$output/budgets.json" "$output/kernel_tuner.json" "$theirs" \
  "$repeats" $caches
"$ergotune" score --data $caches --strategies "$ours" --repeats "$repeats" --runs "$output/kernel_tuner.json" \
  --figure "$output/convergence.svg" --json > "$output/scores.json"
"$output/venv/bin/python" "$here/table.py" "$output/scores.json"
