// Several boards: before and during a search the reference is measured on each of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/ledger/ledger.hpp"

namespace ergotune {

/// Another source, and between its configurations the reference on every board: at the start, on boards that come
/// later, and again every so many seconds. With one board it is that other source.
class FairSource : public Source {
 public:
  /// `reference`: what is measured; a usable configuration that the ledger knows, or none.
  FairSource(Source& search, const Ledger& ledger, std::optional<ConfigurationIndex> reference, double every)
      : search_(search), ledger_(ledger), reference_(reference), every_(every) {}

  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override { return search_.stop(); }

 private:
  /// s between two looks at what boards there are, at most.
  static constexpr double kLook = 1;

  Source& search_;
  const Ledger& ledger_;
  std::optional<ConfigurationIndex> reference_;
  double every_;
  double looked_at_ = -1e300;
  std::map<std::string, double> measured_at_;  ///< host_seconds() by board; when it was asked for
};

}  // namespace ergotune
