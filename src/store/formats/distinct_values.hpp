// Parameters of formats that list no values: they are found in the rows.
#pragma once

#include <map>
#include <vector>

#include "store/formats/recording.hpp"
#include "store/formats/recording_builder.hpp"

namespace ergotune {

/// Collects rows whose parameters' values are not known beforehand. Values are numbered in the order met and
/// sorted in the end, so that the recording does not depend on the order of the rows.
class DistinctValues {
 public:
  explicit DistinctValues(std::size_t dimensions) : lists_(dimensions), positions_(dimensions) {}
  /// Positions for this configuration; valid until the next call.
  const std::uint32_t* positions(const Configuration& configuration);
  /// Fills in the parameters' values, and makes the recording's positions those of the sorted values. Values
  /// already in a parameter keep their order and stand first.
  void finish(Recording& recording) const;

 private:
  std::vector<std::vector<Value>> lists_;
  std::vector<std::map<Value, std::uint32_t>> by_value_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace ergotune
