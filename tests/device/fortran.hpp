// Whether Fortran can be compiled here; tests that need it skip with a message otherwise.
#pragma once

#include "base/process/process.hpp"

namespace ergotune {

inline bool has_fortran() { return run_process({"/bin/sh", "-c", "${FC:-gfortran} --version"}).exit_code == 0; }

}  // namespace ergotune

#define SKIP_WITHOUT_FORTRAN() \
  if (!ergotune::has_fortran()) GTEST_SKIP() << "no Fortran compiler: install gfortran, or set FC"
