"""Mutant schemata (Untch, Offutt and Harrold, "Mutation Analysis Using Mutant Schemata", ISSTA 1993): all changes of a file in one object, of
which one is at work (MUTANT_PLACE), so that a layer is compiled and linked once, and a mutant is only asked the tests that reach it."""

import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPERATORS = {"<": "Less", "<=": "LessEqual", ">": "Greater", ">=": "GreaterEqual", "==": "Equal", "!=": "NotEqual", "+": "Plus", "-": "Minus",
             "*": "Times", "/": "Divide"}
RAW_TEXT = re.compile(r'R"\w*\((.|\n)*?\)\w*"')
LENIENT = ["-I", str(HERE), "-O1", "-g0", "-w", "-fpermissive", "-fdiagnostics-color=never"]  # 1 + f() instead of 2 narrows here and there


def asking(old, place):
    """The text that asks at a place; None where only a compiler could say what belongs to it (what && and || join is not evaluated twice)."""
    if old in OPERATORS:
        return f" {old} mutant::{OPERATORS[old]}{{{place}}} {old} "
    if old in ("true", "false"):
        return f"mutant::flipped({place}, {old})"
    if old in ("std::min", "std::max"):
        return f"mutant::Extreme<{place}>::{old[5:]}"
    if old == "!":
        return f"mutant::unless({place}) == !"
    return f"({old} + mutant::one_more({place}))" if old.isdigit() else None


class Schema:
    """A source with all of its changes: `places` are numbered from `first`, (offset, length, replacement) each; `apart` those that it cannot hold."""

    def __init__(self, source, text, changes, first):
        self.source, self.text, self.changes = source, text, sorted(changes)
        self.numbers = {change: first + i for i, change in enumerate(self.changes)}
        raw = [match.span() for match in RAW_TEXT.finditer(text)]
        self.apart = {change for change in self.changes if asking(self.old(change), 1) is None or re.search(r"[\d'][eE]?[+-]?$", text[:change[0]][-3:])
                      and self.old(change).isdigit() or any(begin <= change[0] < end for begin, end in raw)}

    def old(self, change):
        return self.text[change[0]:change[0] + change[1]].strip()

    def line(self, change):
        return self.text.count("\n", 0, change[0]) + 1

    def instrumented(self):
        parts, at, touched = [], 0, set()
        for change in self.changes:
            if change in self.apart or change[0] < at:
                self.apart.add(change)
                continue
            parts += [self.text[at:change[0]], asking(self.old(change), self.numbers[change])]
            at = change[0] + change[1]
            touched.add(self.line(change) - 1)
        lines = ("".join(parts) + self.text[at:]).split("\n")
        for number in touched:  # what asks is no constant expression
            lines[number] = re.sub(r"^(\s*)constexpr (?!.*\) \{)", r"\1const ", lines[number])
        return '#include "mutant.hpp"\n#line 1\n' + "\n".join(lines)

    @staticmethod
    def constant_around(line, lines):
        """The lines of a table of constants that a line is in (the compiler complains of one row at a time); none where it is in none."""
        begin = next((i for i in range(line - 1, max(line - 200, -1), -1) if lines[i].startswith(("constexpr", "  constexpr", "  static constexpr"))), None)
        if begin is None:
            return range(0)
        end = next(i for i in range(begin, len(lines)) if lines[i].endswith(";") or lines[i] == "}")
        return range(begin + 1, end + 2) if end >= line - 1 else range(0)

    def compile(self, build, folder):
        """The object; what does not compile is set apart, line by line."""
        mutant, thing = folder / self.source.name, folder / f"{self.source.stem}.o"
        words, where = build.command(self.source, mutant, thing)
        for _ in range(12):
            mutant.write_text(self.instrumented())
            done = subprocess.run(words + ["-I", str(self.source.parent)] + LENIENT, cwd=where, capture_output=True, text=True)
            if done.returncode == 0:
                return thing
            name = re.escape(self.source.name)
            bad = {int(line) for line in re.findall(name + r":(\d+):\d+: error|" + name + r":(\d+):\d+:\s+required from", done.stderr) for line in line if line}
            lines, new = self.text.split("\n"), set()
            bad |= {line for one in bad for line in self.constant_around(one, lines)}
            for reach in (0, 3, 10):  # where a member's default is no constant, the compiler complains of where the class ends
                new = new or {change for change in self.changes if any(abs(self.line(change) - line) <= reach for line in bad)} - self.apart
            self.apart |= new or {change for change in self.changes if "constexpr" in lines[self.line(change) - 1]}
        raise SystemExit(f"scripts/mutants: {self.source.name} does not compile with its changes:\n{done.stderr[:2000]}")


class Reached:
    """Which tests reach which place, by a run of the sound code."""

    def __init__(self, file):
        self.milliseconds, self.by, self.always, self.impossible, self.broken = {}, {}, set(), set(), set()
        for line in file.read_text().splitlines():
            name, milliseconds, *places = line.split()
            places = set(map(int, places))
            if name == "-":
                self.always = places
            elif name == "!":
                self.impossible = places
            elif milliseconds == "-1":
                self.broken.add(name)
            else:
                self.milliseconds[name] = int(milliseconds)
                for place in places:
                    self.by.setdefault(place, []).append(name)

    def tests(self, place):
        """Quickest first."""
        return sorted(self.milliseconds if place in self.always else self.by.get(place, []), key=self.milliseconds.get)


def compile_all(schemata, build, folder, jobs):
    with ThreadPoolExecutor(jobs) as pool:
        things = list(pool.map(lambda schema: schema.compile(build, folder), schemata))
    listener = folder / "listener.o"
    test = next(Path(file) for file in build.compilers if "/tests/" in file and file.endswith("_test.cpp"))
    words, where = build.command(test, HERE / "listener.cpp", listener)
    subprocess.run(words + ["-I", str(HERE), "-w"], cwd=where, check=True)
    return [*things, listener]
