"""unity_groups.py SOURCE...: which files may be compiled as one. Prints "GROUP FILE", groups numbered from 0.

For who builds everything once (ERGOTUNE_UNITY, cmake/ErgotuneLayers.cmake). Names of our own files' anonymous namespaces stand at the
first column; two files that define the same one, even as overloads, are kept apart, and so are a file that defines a name and one that
brings in the same name of others ("using"), files that use different namespaces as their own, and a file that defines what some header
calls a type, and a file whose unnamed namespace defines a function of a header's name and one that calls such a name.
"""

import pathlib
import re
import sys

MOST_FILES, MOST_LINES = 16, 2200
#: A definition or declaration at the first column: its name is the last word before "(", "=", "{", ":" or ";".
DEFINITION = re.compile(r"^(?=\S)(?!#|//|namespace|using namespace|return|public|private|protected|extern|})(?:[\w:<>,*&\[\]~ ]*?)(?<!::)\b(\w+)\s*(?:\(|=|\{|;|\[|:(?!:)|$)")
TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum)\s+(\w+)", re.M)
FUNCTION = re.compile(r"^(?=\S)(?!#|//|namespace|using|return|template|static_assert|struct|class|enum|})[\w:<>,*&\[\]~ ]*?\b(\w+)\s*\(", re.M)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
CALL = re.compile(r"(?<![.>:\w])(\w+)\(")
USING = re.compile(r"^using ([\w:]+::\w+);", re.M)
ALIAS = re.compile(r"^using (\w+) = (.+);", re.M)
OPENED = re.compile(r"^using namespace ([\w:]+)", re.M)
WORDS = {"const", "constexpr", "struct", "class", "auto", "default", "delete", "operator", "override", "noexcept",
         "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_SUITE", "INSTANTIATE_TEST_SUITE_P", "GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST"}


def names(text):
    return {m.group(1) for line in text.splitlines() if not line.startswith("using ") and (m := DEFINITION.match(line))} - WORDS


def brought_in(text):
    """The names of others that a file uses as its own: as they are written there, and in full. The same alias may stand twice."""
    return {name.rpartition("::")[2]: name.removeprefix("::") for name in USING.findall(text)} | dict(ALIAS.findall(text))


def header_types(root):
    return {name for folder in ("src", "include") for header in sorted((root / folder).rglob("*.hpp"))
            for name in TYPE.findall(header.read_text())}


def header_functions(root):
    return {name for folder in ("src", "include", "extensions") for header in sorted((root / folder).rglob("*.hpp"))
            for name in FUNCTION.findall(header.read_text())}


def main(files):
    root = pathlib.Path(__file__).resolve().parents[1]
    types, functions = header_types(root), header_functions(root)
    # [namespaces whose names are used as its own, defined names, names of others, lines, files, hiding functions, calls]
    groups = []
    for file in files:
        text = pathlib.Path(file).read_text()
        mine, used, lines = names(text), brought_in(text), text.count("\n")
        opened = set(OPENED.findall(text))
        hiding = {name for block in UNNAMED.findall(text) for name in FUNCTION.findall(block)} & functions
        calls = set(CALL.findall(text))
        alone = bool({name for name in TYPE.findall(text)} & types)
        for group in groups:
            apart = (group[0] != opened or group[1] & (mine | used.keys()) or group[2].keys() & mine or
                     group[5] & calls or group[6] & hiding or
                     any(group[2].get(name, full) != full for name, full in used.items()))
            if not alone and not apart and group[3] + lines <= MOST_LINES and len(group[4]) < MOST_FILES:
                group[1] |= mine
                group[2] |= used
                group[5] |= hiding
                group[6] |= calls
                group[3] += lines
                group[4].append(file)
                break
        else:
            groups.append([opened, mine, used, lines + alone * MOST_LINES, [file], hiding, calls])
    for number, group in enumerate(groups):
        for file in group[4]:
            print(number, file)


if __name__ == "__main__":
    main(sys.argv[1:])
