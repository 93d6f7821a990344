// Baseline runs between the configurations of a search: what devices and times are compared by.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/ledger/ledger.hpp"

namespace ergotune {

/// Another source, and between its configurations the reference: where several devices measure, once on each of them
/// when it comes, and on every device twice in a row at intervals, so that drift is told from noise. The runs take 5 %
/// of the time at most and are 10 s apart or more, unless `every` wants them more often; a session that is shorter has
/// none. Where two of them differ, some of what the search measured in between is measured again, which shows when the
/// conditions changed.
class FairSource : public Source {
 public:
  /// `reference`: what is measured; a usable configuration that the ledger knows, or none. `every`: s between baseline
  /// runs at most.
  FairSource(Source& search, const Ledger& ledger, std::optional<ConfigurationIndex> reference, double every);

  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override { return search_.stop(); }

 private:
  /// s of the host between two looks at what devices there are, at most.
  static constexpr double kLook = 1;
  struct Searched {
    ConfigurationIndex index = 0;
    std::string gpu;
    Measurement measurement;
  };
  /// Of one device; its clock is that of its measurements.
  struct Device {
    bool begun = false;
    double now = 0;    ///< when its last measurement ended
    double since = 0;  ///< when the last baseline run ended, or the search began there
    double spent = 0;  ///< s that this run and what followed from it took
    int runs = 0, under_way = 0, repeated = 0;
    std::deque<Searched> rows, gap;  ///< searched since the last baseline run; between the last two
  };

  bool runs_dry() const { return search_ended_ && under_way_ == 0; }
  bool is_due(const Device& device) const;
  void ask(std::vector<ConfigurationRequest>& list, const std::string& name, ConfigurationIndex index, int times);
  void ask_for_baselines(std::vector<ConfigurationRequest>& list);
  std::optional<ConfigurationIndex> doubtful(Device& device) const;

  Source& search_;
  const Ledger& ledger_;
  std::optional<ConfigurationIndex> reference_;
  double every_;
  double looked_at_ = -1e300;
  std::vector<std::string> there_;         ///< devices that are not lost; one without a name where there is but one
  std::map<std::string, Device> devices_;  ///< by the name that is requested
  std::size_t under_way_ = 0;              ///< of the search
  bool search_ended_ = false;
};

}  // namespace ergotune
