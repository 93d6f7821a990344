// Kernel Tuner itself on what ergotune exports, and ergotune on what Kernel Tuner records. Runs where the
// environment variable ERGOTUNE_KT_PYTHON names a Python that has kernel-tuner and jsonschema:
//   python3 -m venv kt && kt/bin/pip install kernel-tuner jsonschema && ERGOTUNE_KT_PYTHON=$PWD/kt/bin/python
//   ctest ...
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/process/process.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

TEST(KernelTunerFormats, BothReadEachOther) {
  const char* python = std::getenv("ERGOTUNE_KT_PYTHON");
  if (!python) GTEST_SKIP() << "ERGOTUNE_KT_PYTHON names no Python with kernel-tuner";
  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  ProcessOptions options;
  options.timeout = 240;
  options.folder = folder;
  const ProcessResult result =
      run_process({python, ERGOTUNE_SOURCE_DIR "/tests/integration/kernel_tuner_formats.py",
                   ERGOTUNE_BINARY_DIR "/ergotune", ERGOTUNE_TEST_DATA "/problems/vector_add.toml", folder},
                  options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

}  // namespace
}  // namespace ergotune
