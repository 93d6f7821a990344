"""A property whose result is thrown away cannot fail: every rc::check in tests/ must stand inside EXPECT_TRUE(...) or
ASSERT_TRUE(...). Prints the places where it does not, and ends with 1 when there is one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent
CALL = re.compile(r"\brc::check\s*\(")
ASSERTED = re.compile(r"\b(?:EXPECT|ASSERT)_TRUE\s*\(\s*$")


def offences(text):
    """The lines of `text` on which a property is checked and its result dropped."""
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
    return [text.count("\n", 0, call.start()) + 1 for call in CALL.finditer(code) if not ASSERTED.search(code[: call.start()])]


def main():
    assert offences("  rc::check([] {});") == [1]  # it sees what it is for
    assert offences("// rc::check(\n  EXPECT_TRUE(\n      rc::check([] {}));") == []
    files = sorted(ROOT.rglob("*.[ch]pp"))
    found = [f"{file.relative_to(ROOT.parent)}:{line}" for file in files for line in offences(file.read_text())]
    for place in found:
        print(f"{place}: the result of rc::check is thrown away; write EXPECT_TRUE(rc::check(...))")
    print(f"{len(files)} files, {len(found)} properties that cannot fail")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
