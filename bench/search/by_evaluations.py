"""Our strategies and Kernel Tuner's on recordings: how near to the optimum each is after 25 to 400 evaluations.

    by_evaluations.py RUNS.json CACHE... [--ours auto,random] [--theirs random_sample] [--budgets 25,50] [--repeats 20]

A cache is a Kernel Tuner cache. Every strategy is told its budget and searches again for each; a failed configuration counts as an
evaluation, a repeated one does not. RUNS.json keeps the least value of each search, and what it has is not searched again. Prints
optimum over least value in %, means over the seeds and then over the recordings of a family (a file's name up to the first underscore), with 1.96 standard errors (±)
over the seeds. `*`: the first strategy is behind this one by more than twice the difference's standard error.

Needs the Python packages ergotune and, for --theirs, kernel-tuner (compare.sh sets both up).
"""

import argparse
import json
import math
import statistics
import tempfile
from pathlib import Path

from kernel_tuner_runs import evaluated_by_kernel_tuner, prepared_cache, space_name


def value_of(entry, objective):
    value = entry.get(objective)
    return value if isinstance(value, (int, float)) and value < 1e30 else math.inf


class Recorded:
    """A recording as a search space: exactly the recorded configurations."""

    def __init__(self, path, folder):
        self.name = space_name(path)
        self.cache = prepared_cache(path, folder)
        document = json.loads(self.cache.read_text())
        self.parameters = document["tune_params"]
        self.values = {key: value_of(entry, document["objective"]) for key, entry in document["cache"].items()}
        self.optimum = min(self.values.values())
        self.space = None

    def own_space(self):
        import ergotune

        if self.space is None:
            problem = ergotune.Problem(self.name)
            for name, values in self.parameters.items():
                problem.add_parameter(name, values)
            problem.restrict(lambda configuration: self.key(configuration.values()) in self.values)
            self.space = ergotune.SearchSpace(problem)
        return self.space

    @staticmethod
    def key(values):
        return ",".join(str(value) for value in values)

    def searched_by_us(self, strategy, seed, budget):
        import ergotune

        space = self.own_space()
        search = ergotune.Strategy(strategy, space, seed=seed, budget=budget)
        found = []

        def evaluate(index, configuration):
            found.append(self.values[self.key(configuration)])
            return math.isfinite(found[-1]) and found[-1]  # False: it failed

        search.run(evaluate, budget)
        return found

    def searched_by_them(self, strategy, seed, budget):
        found = evaluated_by_kernel_tuner(self.cache, strategy, seed, {"max_fevals": min(budget, len(self.values))})
        return [math.inf if value is None else value for _, value in found]

    def least(self, tool, strategy, seed, budget):
        found = (self.searched_by_us if tool == "ours" else self.searched_by_them)(strategy, seed, budget)
        return min(found[:budget], default=math.inf)


def titles(arguments):
    """The strategies by the names in tables, each with whose it is and its name there."""
    named = {name: ("ours", name) for name in filter(None, arguments.ours.split(","))}
    return named | {f"kernel_tuner:{name}": ("theirs", name) for name in filter(None, arguments.theirs.split(","))}


def search(arguments, runs_file):
    runs = json.loads(runs_file.read_text()) if runs_file.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.caches:
            recorded = Recorded(path, folder)
            here = runs.setdefault(recorded.name, {"optimum": recorded.optimum, "least": {}})
            for title, (tool, strategy) in titles(arguments).items():
                for budget in arguments.budgets:
                    done = here["least"].setdefault(title, {}).setdefault(str(budget), [])
                    for seed in range(len(done) + 1, arguments.repeats + 1):
                        done.append(recorded.least(tool, strategy, seed, budget))
                    runs_file.write_text(json.dumps(runs))
    return runs


def mean_and_error(optimum, least):
    shares = [100 * optimum / value for value in least]  # 0 where nothing worked
    return statistics.mean(shares), statistics.stdev(shares) / math.sqrt(len(shares))


def summary(runs, strategies, budgets):
    """Family, strategy and budget: the mean over the recordings of the family and its standard error over the seeds."""
    families = {}
    for name in runs:
        families.setdefault(name.split("_")[0], []).append(name)
    families["all"] = [name for names in families.values() for name in names]
    table = {}
    for family, names in families.items():
        for strategy in strategies:
            for budget in budgets:
                each = [mean_and_error(runs[n]["optimum"], runs[n]["least"][strategy][str(budget)]) for n in names]
                error = math.sqrt(sum(e * e for _, e in each)) / len(each)
                cell = {"mean": statistics.mean(m for m, _ in each), "standard_error": error}
                table.setdefault(family, {}).setdefault(strategy, {})[str(budget)] = cell
    return table


def print_table(table, budgets):
    print("| family | strategy | " + " | ".join(map(str, budgets)) + " |\n| --- | --- |" + " --- |" * len(budgets))
    for family, strategies in table.items():
        first = next(iter(strategies.values()))
        for name, cells in strategies.items():
            texts = []
            for budget in map(str, budgets):
                mean, error = cells[budget]["mean"], cells[budget]["standard_error"]
                behind = mean - first[budget]["mean"] > 2 * math.hypot(error, first[budget]["standard_error"]) + 1e-9
                texts.append(f"{mean:.1f} ± {1.96 * error:.1f}" + (" *" if behind else ""))
            print(f"| {family} | {name.replace('kernel_tuner:', 'Kernel Tuner: ')} | " + " | ".join(texts) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("caches", type=Path, nargs="+")
    parser.add_argument("--ours", default="auto,genetic,random")
    parser.add_argument("--theirs", default="random_sample,genetic_algorithm,simulated_annealing,dual_annealing,pso,"
                                            "greedy_ils,diff_evo,bayes_opt")
    parser.add_argument("--budgets", type=lambda text: [int(b) for b in text.split(",")], default=[25, 50, 100, 200, 400])
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    runs = search(arguments, arguments.runs)
    print_table(summary(runs, titles(arguments), arguments.budgets), arguments.budgets)


if __name__ == "__main__":
    main()
