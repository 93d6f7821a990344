"""docs/reproduction.md from studies/reproduction.md: {{name:format}} becomes the study's number.

A number that stands beside a paper's carries the rule by which the two are compared; where it breaks the rule the page shows
"≠" before it. Rules:

    {{name:.1f ~ 50.9}}          the same sign, and within a factor of 1.25 of 50.9
    {{name:.1f in 1035..1290}}   within an interval; either end may be left out, or be the name of another number
    {{name:.0f holds 9..11 high}} an interval from the number to that named last holds another: one sign, and counted once
    {{name:.2f sign -}}          below 0 (sign +: above 0); if there are numbers name.low and name.high, so are both of them
    {{name:.0f put in 16..16}}   "put" before any rule: the number is put in, or follows from what is: "†" after it, never counted
    {{name:.0f again in 16..16}} "again" before any rule: "‡" after it; it follows from numbers that are counted elsewhere
    {{item a.b}}                 shows nothing: the numbers from here to the next such mark belong to the item a.b
    {{agreements a.b}}           "3 of 5": of the numbers with a rule that belong to a.b, or to a.b.c, and are counted, those that meet it
    {{breaks a.b}}               "2 of 4": of those that are not counted, those that break theirs; "none" for either where there are none
"""

import re

FACTOR = 1.25
DIFFERS = "≠ "
#: rules of numbers that are not counted, and their marks
UNCOUNTED = {"put": "†", "again": "‡"}
SCORES = ("agreements", "breaks")
NUMBER = re.compile(r"\{\{([^{}]+)\}\}")
PAPERS = re.compile(r".*\b(paper|thesis|Table II|K20X)\b")
OURS = re.compile(r".*\b(ours|ergotune|measured)\b")
#: what a cell of ours says that nothing can be compared with
NOT_COMPARED = ("not compared",)


def agrees(name, rule, numbers):
    """Whether the number meets its rule, given as its words."""
    kind, value = rule[0], numbers[name]
    if kind in UNCOUNTED:
        return agrees(name, rule[1:], numbers)
    if kind == "~":
        paper = float(rule[1])
        return value * paper > 0 and 1 / FACTOR <= value / paper <= FACTOR
    if kind == "in":
        low, high = (end and (numbers[end] if end in numbers else float(end)) for end in rule[1].split(".."))
        return (low == "" or value >= low) and (high == "" or value <= high)
    if kind == "holds":
        low, high = map(float, rule[1].split(".."))
        return value <= low and high <= numbers[rule[2]]
    if kind == "sign":
        sign = {"+": 1, "-": -1}[rule[1]]
        return all(sign * numbers.get(each, value) > 0 for each in (name, f"{name}.low", f"{name}.high"))
    raise ValueError(f"{{{{{name} {' '.join(rule)}}}}}: there is no rule {kind!r}")


def parts(text):
    """Name, format and rule's words of a number in the template."""
    shown, *rule = text.split()
    name, _, form = shown.partition(":")
    return name, form, rule


def compared(template):
    """Name and rule of every number that is compared."""
    for _, name, rule in compared_by_item(template):
        yield name, rule


def compared_by_item(template):
    """Item, name and rule of every number that is compared."""
    item = ""
    for match in NUMBER.finditer(template):
        name, _, rule = parts(match[1])
        if name == "item":
            item = rule[0]
        elif rule and name not in SCORES:
            yield item, name, rule


def of_item(template, of, counted):
    """Name and rule of the numbers of an item, and of items within it, that are counted, or that are not."""
    return [(name, rule) for item, name, rule in compared_by_item(template)
            if f"{item}.".startswith(f"{of}.") and (rule[0] not in UNCOUNTED) == counted]


def scored_elsewhere_or_twice(template):
    """Items that not exactly one row of each score that they need, beside the whole document's, holds."""
    for score in SCORES:
        rows = [rule[0] for name, _, rule in (parts(match[1]) for match in NUMBER.finditer(template)) if name == score]
        for item in sorted({item for item, _, rule in compared_by_item(template) if (rule[0] in UNCOUNTED) == (score == "breaks")}):
            if (rows.count(item), rows.count(item.split(".")[0])) != (1, 1):
                yield f"studies/reproduction.md: the numbers of {item or 'no item'} need one row with {{{{{score} {item}}}}}, and one of their document"


def render(template, numbers):
    def value(match):
        name, form, rule = parts(match[1])
        if name == "item":
            return ""
        if name in SCORES:
            of = [agrees(*each, numbers) for each in of_item(template, rule[0], counted=name == "agreements")]
            return f"{sum(met == (name == 'agreements') for met in of)} of {len(of)}" if of else "none"
        shown = format(numbers[name], form) + (UNCOUNTED.get(rule[0], "") if rule else "")
        return ("" if not rule or agrees(name, rule, numbers) else DIFFERS) + shown

    return NUMBER.sub(value, template)


def cells_of_ours(template):
    """Place, text, and whether it is to be compared with a paper's number, of all cells of ours ("ours", "ergotune", "measured"): where
    such a number is in the same table and the column's heading does not say that nothing is compared."""
    ours = []
    for place, line in enumerate(template.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            ours = []
        elif not ours:
            ours = [bool(OURS.match(cell)) for cell in cells]
            papers = any(PAPERS.match(cell) for cell in cells)
            comparing = [papers and not any(words in cell for words in NOT_COMPARED) for cell in cells]
        else:
            yield from ((place, cell, compared) for mine, cell, compared in zip(ours, cells, comparing) if mine)


def numbers_by_hand(template):
    """Cells of ours that hold a digit which no study gave."""
    for place, cell, _ in cells_of_ours(template):
        if re.search(r"\d", NUMBER.sub("", re.sub(r"`[^`]*`|<!--.*?-->|\b[A-Z]+\d+[A-Za-z]?\b", "", cell))):
            yield f"studies/reproduction.md:{place}: \"{cell}\" holds a number that no study gave"


def numbers_without_rule(template):
    """Cells of ours beside a paper's whose numbers are not compared, and that do not say so."""
    for place, cell, comparing in cells_of_ours(template):
        found = [parts(match[1]) for match in NUMBER.finditer(cell)]
        if comparing and found and not any(rule for _, _, rule in found) and not any(words in cell for words in NOT_COMPARED):
            yield f"studies/reproduction.md:{place}: \"{cell}\" is compared with nothing: give a rule, or say \"not compared\" and why"
