"""Prints the JSON document of `ergotune score` as a Markdown table."""

import json
import sys

document = json.load(open(sys.argv[1]))
strategies = document["strategies"]
spaces = list(next(iter(strategies.values()))["spaces"])
print("| strategy | mean | to 5 % | to 1 % | " + " | ".join(s.replace("_", " ") for s in spaces) + " |")
print("| --- |" + " --- |" * (3 + len(spaces)))
for name, score in strategies.items():
    cells = [f"{score['spaces'][s]['score']:.2f} ({score['spaces'][s]['evaluations_to_1_percent']:.0f})" for s in spaces]
    print(f"| {name} | {score['mean']:.3f} | {score['evaluations_to_5_percent']:.0f} | "
          f"{score['evaluations_to_1_percent']:.0f} | " + " | ".join(cells) + " |")
