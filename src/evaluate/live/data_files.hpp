// Passes large arrays that were given in memory (by Python) to workers as files. As part of the setup message they
// would be sent to every worker, compilers included.
#pragma once

#include <vector>

namespace ergotune {

struct Problem;

class DataFiles {
 public:
  DataFiles() = default;
  DataFiles(const DataFiles&) = delete;
  DataFiles& operator=(const DataFiles&) = delete;
  ~DataFiles();
  /// Returns the problem with its large arrays replaced by files. The files are in this process's memory and exist as
  /// long as this object.
  Problem lay_out(Problem problem);

 private:
  std::vector<int> descriptors_;
};

}  // namespace ergotune
