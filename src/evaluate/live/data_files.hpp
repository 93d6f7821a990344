// Large arrays given in memory (Python's), for workers to read as files: as text in a worker's setup they would travel
// to each of them, compilers too.
#pragma once

#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

class DataFiles {
 public:
  DataFiles() = default;
  DataFiles(const DataFiles&) = delete;
  DataFiles& operator=(const DataFiles&) = delete;
  ~DataFiles();
  /// The problem with files in the place of its large arrays. The files are memory of this process, and end with this
  /// object.
  Problem lay_out(Problem problem);

 private:
  std::vector<int> descriptors_;
};

}  // namespace ergotune
