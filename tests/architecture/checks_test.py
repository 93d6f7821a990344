"""The checks of the architecture find what they are for: each runs on a small tree that offends."""
import pathlib
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
LAYERS = """ergotune_layer(base)
ergotune_layer(power USES base LIBRARIES fmt::fmt)
ergotune_layer(device USES base)
"""


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.put("src/CMakeLists.txt", LAYERS)
        self.put("extensions/extra/extension.cmake", "ergotune_extension(extra VERBS more REGISTER USES power base)\n")
        (self.root / "include/ergotune").mkdir(parents=True)

    def put(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def places(self, script):
        """FILE:LINE (or FILE) of each offence that the script prints."""
        result = subprocess.run([SCRIPTS / script, self.root], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1 if result.stdout else 0, result.stderr)
        return {line.split(": ")[0] for line in result.stdout.splitlines()}

    def test_a_tree_in_order_passes(self):
        self.put("src/power/a.cpp", '#include <fmt/format.h>\n#include "base/x.hpp"\n#include "power/a.hpp"\n')
        self.put("extensions/extra/a.cpp", '#include "power/a.hpp"\n#include "extra/b.hpp"\n')
        self.assertEqual(self.places("check-includes"), set())

    def test_an_include_of_a_layer_above_or_unnamed_is_found(self):
        self.put("src/base/a.cpp", '// a comment\n#include "power/b.hpp"\n')
        self.put("src/device/a.cpp", '#include "power/b.hpp"\n')
        self.put("extensions/extra/a.cpp", '#include "device/device.hpp"\n')
        self.assertEqual(self.places("check-includes"), {"src/base/a.cpp:2", "src/device/a.cpp:1", "extensions/extra/a.cpp:1"})

    def test_an_extension_that_the_core_includes_is_found(self):
        self.put("src/base/a.cpp", '#include "extra/a.hpp"\n')
        self.assertEqual(self.places("check-includes"), {"src/base/a.cpp:1"})

    def test_a_public_header_with_heavy_or_private_includes_is_found(self):
        self.put("include/ergotune/error.hpp", '#include <map>\n#include <nlohmann/json.hpp>\n#include "base/private.hpp"\n')
        self.assertEqual(self.places("check-includes"), {"include/ergotune/error.hpp:2", "include/ergotune/error.hpp:3"})

    def test_a_header_of_a_vendor_is_found(self):
        self.put("src/power/a.cpp", "#include <nvml.h>\n")
        self.assertEqual(self.places("check-includes"), {"src/power/a.cpp:1"})

    def test_two_types_of_one_name_are_found(self):
        self.put("src/power/a.hpp", "namespace ergotune {\nstruct Pair {};\n}\n")
        self.put("src/power/b.cpp", "namespace ergotune {\nnamespace {\nstruct Pair {};\n}\n}\n")
        self.assertEqual(self.places("check-names"), set())
        self.put("src/device/c.hpp", "namespace ergotune {\nenum class Pair { one };\n}\n")
        self.assertEqual(len(self.places("check-names")), 1)

    def test_words_that_the_glossary_replaces_are_found_in_prose_only(self):
        self.put("docs/page.md", "A GPU, `board` in code.\n\n```sh\nls board\n```\n")
        self.assertEqual(self.places("check-language"), set())
        self.put("README.md", "# Title\n\nEach board is measured.\n")
        self.put("docs/tutorials/page.md", "Somebody waits.\n")
        self.assertEqual(self.places("check-language"), {"README.md:3", "docs/tutorials/page.md:1"})


if __name__ == "__main__":
    unittest.main()
