"""Reads as much Markdown as our documents use: fenced blocks, tables, links, headings, and the comments that mark blocks."""

import re
from dataclasses import dataclass, field

LANGUAGES = {"sh", "toml", "ini", "json", "python", "c", "cpp", "cuda", "cmake", "text"}
MARKER = re.compile(r"^\s*<!-- test: (.*?) -->\s*$")
FENCE = re.compile(r"^```(\w*)\s*$")
# folders of the repository: a path in a text that begins with one of them must exist
FOLDERS = "bench|cmake|docs|examples|fuzz|include|packaging|profiles|python|scripts|src|tests"


@dataclass
class Block:
    language: str
    line: int  # of its first line of content, from 1
    text: str = ""
    marker: str = ""
    rows: list = field(default_factory=list)  # of a table: its cells, the head left out


def blocks(text):
    """Fenced blocks but those of plain text, and the tables that a comment marks."""
    found, marker, inside = [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        fence, mark = FENCE.match(line), MARKER.match(line)
        if inside:
            if fence:
                found.append(inside)
                inside = None
            elif inside.language == "table" and not line.startswith("|"):
                found.append(inside)
                inside = None
            elif inside.language == "table":
                inside.rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))])
            else:
                inside.text += line + "\n"
        elif mark:
            marker = mark.group(1)
        elif fence:
            inside, marker = Block(fence.group(1), number + 1, marker=marker), ""
        elif marker and line.startswith("|"):
            inside, marker = Block("table", number + 2, marker=marker), ""
    if inside:
        found.append(inside)
    for block in found:
        block.rows = [row for row in block.rows if not set(row[0]) <= set("-: ")]
    return [block for block in found if block.language != "text"]


def faults(text):
    """Code that no test can see: blocks of no language, and indented ones."""
    outside, before = True, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence:
            if outside and fence.group(1) not in LANGUAGES:
                yield number, f"the block's language is one of {', '.join(sorted(LANGUAGES))}"
            outside = not outside
        elif outside and line.startswith("    ") and not before.strip():
            yield number, "indented code is run by no test; put it between ```LANGUAGE and ```"
        before = line
    if not outside:
        yield number, "a block is not closed"


def anchors(text):
    """What a link to a heading of this text may say, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(root, file, text):
    """Relative links, and paths of the repository named in the text, that lead nowhere."""
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.S | re.M)
    place = lambda match: prose.count("\n", 0, match.start()) + 1
    for link in re.finditer(r"\]\(([^)\s]+)\)", prose):
        target, _, anchor = link.group(1).partition("#")
        if re.match(r"\w+:", target):
            continue
        path = file.parent / target if target else file
        if not path.exists():
            yield place(link), f"the link to {target} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
            yield place(link), f"{target} has no heading #{anchor}"
    for named in re.finditer(rf"(?<![\w/.\-])((?:{FOLDERS})/[\w./\-]*\w)(?![\w*{{<\[])", prose):
        path = named.group(1)
        if not (root / path).exists() and not list(root.glob(path + ".*")):
            yield place(named), f"there is no {path} in the repository"
