#include "tune/ledger/fair_source.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace ergotune {
namespace {

/// Shortest time between baseline runs, s, and their largest share of the time.
constexpr double kShortest = 10, kShare = 0.05;
/// Measurements of the search are repeated if the uncertainty of the drift exceeds this multiple of the noise; at most
/// kRepeated after each run.
constexpr double kDoubt = 3;
constexpr int kRepeated = 8;
constexpr int kTogether = 2;

double cost(const Measurement& measurement) { return measurement.verify_seconds + measurement.measure_seconds; }

}  // namespace

BaselineRunSource::BaselineRunSource(Source& search, const Ledger& ledger, std::optional<ConfigurationIndex> reference,
                                     double every)
    : search_(search), ledger_(ledger), reference_(reference), every_(every) {
  const bool measured = ledger.evaluator().provenance() == Provenance::measured;
  if (!measured && ledger.evaluator().gpus().empty()) reference_.reset();
}

bool BaselineRunSource::is_due(const Device& device) const {
  if (device.rows.empty()) return false;
  if (device.runs > 0 && runs_dry()) return true;
  const double run = device.runs > 0 ? device.spent : kTogether * cost(ledger_.find(*reference_)->measurement);
  return device.now - device.since >= std::min(every_, std::max(kShortest, run / kShare));
}

void BaselineRunSource::ask(std::vector<ConfigurationRequest>& list, const std::string& name, ConfigurationIndex index,
                            int times) {
  ConfigurationRequest wanted;
  wanted.index = index;
  wanted.kind = RowKind::reference;
  wanted.gpu = name;
  list.insert(list.end(), static_cast<std::size_t>(times), wanted);
  devices_[name].under_way += times;
}

/// The configuration searched between the last two runs whose drift is most uncertain; nullopt if all are certain
/// enough.
std::optional<ConfigurationIndex> BaselineRunSource::doubtful(Device& device) const {
  if (device.repeated == kRepeated) device.gap.clear();
  double most = kDoubt;
  auto found = device.gap.end();
  for (auto row = device.gap.begin(); row != device.gap.end(); ++row) {
    const double doubt = ledger_.factors().doubt(row->measurement, row->gpu);
    if (doubt > most) {
      most = doubt;
      found = row;
    }
  }
  if (found == device.gap.end()) {
    device.gap.clear();
    return std::nullopt;
  }
  const ConfigurationIndex index = found->index;
  device.gap.erase(found);
  return index;
}

void BaselineRunSource::ask_for_baselines(std::vector<ConfigurationRequest>& list) {
  if (const double now = host_seconds(); now - looked_at_ >= std::min(kLook, every_ / 4)) {
    looked_at_ = now;
    const std::vector<DeviceShare> shares = ledger_.evaluator().gpus();
    there_.clear();
    for (const DeviceShare& share : shares)
      if (!share.lost) there_.push_back(share.gpu);
    if (shares.empty()) there_.emplace_back();
  }
  for (const std::string& name : there_) {
    Device& device = devices_[name];
    if (device.under_way > 0) continue;
    if (!name.empty() && !device.begun) {
      ask(list, name, *reference_, 1);
    } else if (is_due(device)) {
      ++device.runs;
      device.spent = 0;
      device.repeated = 0;
      ask(list, name, *reference_, kTogether);
    } else if (const auto index = doubtful(device)) {
      ++device.repeated;
      ask(list, name, *index, 1);
    }
    device.begun = true;
  }
}

std::vector<ConfigurationRequest> BaselineRunSource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  search_ended_ = false;
  if (reference_) ask_for_baselines(list);
  if (list.size() >= room) return list;
  std::vector<ConfigurationRequest> searched = search_.next(room - list.size());
  search_ended_ = searched.empty();
  under_way_ += searched.size();
  for (ConfigurationRequest& wanted : searched) list.push_back(std::move(wanted));
  if (list.empty() && reference_ && runs_dry()) ask_for_baselines(list);
  return list;
}

void BaselineRunSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  const bool several = devices_.contains(wanted.gpu);
  Device& device = devices_[several ? wanted.gpu : std::string()];
  if (fresh) {
    if (device.since == 0) device.since = measurement.finished_at - measurement.measure_seconds;
    device.now = measurement.finished_at;
  }
  if (wanted.kind != RowKind::reference) {
    --under_way_;
    if (fresh && reference_ && usable(measurement.status) && wanted.kind == RowKind::search && !wanted.resources_of)
      device.rows.push_back({wanted.index, wanted.gpu, measurement});
    return search_.take(wanted, measurement, fresh);
  }
  device.under_way = std::max(0, device.under_way - 1);  // of a device that was lost, another may have run it
  device.spent += cost(measurement);
  device.since = device.now;
  if (wanted.index != *reference_ || device.under_way > 0) return;
  device.gap = std::exchange(device.rows, {});
}

}  // namespace ergotune
