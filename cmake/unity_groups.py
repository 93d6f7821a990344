"""unity_groups.py SOURCE...: which files may be compiled as one. Prints "GROUP FILE", groups numbered from 0.

For who builds everything once (ERGOTUNE_UNITY, cmake/ErgotuneLayers.cmake). Names of our own files' anonymous namespaces stand at the
first column; two files that define the same one, even as overloads, are kept apart, and so are files that bring in different names of others
("using"), and a file that defines what some header calls a type. Which namespaces they open does not matter. Names of GoogleTest count
as names that the file defines, except that two files may bring in the same ones.
"""

import pathlib
import re
import sys

MOST_FILES, MOST_LINES = 10, 1600
#: A definition or declaration at the first column: its name is the last word before "(", "=", "{", ":" or ";".
DEFINITION = re.compile(r"^(?=\S)(?!#|//|namespace|using namespace|return|public|private|protected|extern|})(?:[\w:<>,*&\[\]~ ]*?)(?<!::)\b(\w+)\s*(?:\(|=|\{|;|\[|:(?!:)|$)")
TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum)\s+(\w+)", re.M)
USING = re.compile(r"^(?:using namespace ([\w:]+)|using ([\w:]+::\w+);)", re.M)
WORDS = {"const", "constexpr", "struct", "class", "auto", "default", "delete", "operator", "override", "noexcept",
         "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_SUITE", "INSTANTIATE_TEST_SUITE_P", "GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST"}


def names(text):
    # the same alias may stand twice
    return {line if line.startswith("using ") else m.group(1) for line in text.splitlines() if (m := DEFINITION.match(line))} - WORDS


def brought_in(text):
    """The namespaces and names of others that a file uses as its own, and apart from them those of GoogleTest."""
    names = {"".join(found).removeprefix("::") for found in USING.findall(text)}
    of_tests = {name.removeprefix("testing::") for name in names if name.startswith("testing::")}
    return frozenset(name for name in names if not name.startswith("testing::")), of_tests


def header_types(root):
    return {name for folder in ("src", "include") for header in sorted((root / folder).rglob("*.hpp"))
            for name in TYPE.findall(header.read_text())}


def main(files):
    types = header_types(pathlib.Path(__file__).resolve().parents[1])
    groups = []  # [brought in, names, lines, files, names of GoogleTest]
    for file in files:
        text = pathlib.Path(file).read_text()
        mine, (where, of_tests), lines = names(text), brought_in(text), text.count("\n")
        alone = bool({name for name in TYPE.findall(text)} & types)
        for group in groups:
            apart = group[1] & (mine | of_tests) or group[4] & mine
            if not alone and group[0] == where and not apart and group[2] + lines <= MOST_LINES and len(group[3]) < MOST_FILES:
                group[1] |= mine
                group[4] |= of_tests
                group[2] += lines
                group[3].append(file)
                break
        else:
            groups.append([None if alone else where, mine, lines, [file], of_tests])
    for number, group in enumerate(groups):
        for file in group[3]:
            print(number, file)


if __name__ == "__main__":
    main(sys.argv[1:])
