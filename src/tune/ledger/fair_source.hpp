// Inserts baseline runs, which compare devices and times, between the configurations of a search.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/ledger/ledger.hpp"

namespace ergotune {

/// Wraps another source and adds measurements of the reference configuration. With several devices, each new device
/// measures it once. At intervals every device measures it twice in a row, so that drift can be distinguished from
/// noise. These runs take at most 5 % of the time and are at least 10 s apart, unless `every` is shorter; a session
/// shorter than that has none. Where two runs differ, some configurations that the search measured between them are
/// measured again, to locate the time of the change.
class BaselineRunSource : public Source {
 public:
  /// `reference`: the configuration to measure, known to the ledger as usable; nullopt: no baseline runs. `every`:
  /// longest time between baseline runs, s.
  BaselineRunSource(Source& search, const Ledger& ledger, std::optional<ConfigurationIndex> reference, double every);

  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  std::string stop() override { return search_.stop(); }

 private:
  /// Longest interval between two queries of the list of devices, s of host time.
  static constexpr double kLook = 1;
  struct Searched {
    ConfigurationIndex index = 0;
    std::string gpu;
    Measurement measurement;
  };
  /// State of one device. Times are those of its measurements, s since the epoch.
  struct Device {
    bool begun = false;
    double now = 0;    ///< end of its last measurement
    double since = 0;  ///< end of its last baseline run, or start of its first measurement
    double spent = 0;  ///< s that the last baseline run and the repetitions after it took
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
  std::vector<std::string> there_;         ///< devices that are not lost; an unnamed device if there is only one
  std::map<std::string, Device> devices_;  ///< by the name in ConfigurationRequest::gpu
  std::size_t under_way_ = 0;              ///< requests of the search
  bool search_ended_ = false;
};

}  // namespace ergotune
