#include "ergotune/energy_region.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/region_monitor.hpp"

namespace ergotune {

struct EnergyMonitor::State {
  explicit State(const std::vector<std::string>& ids) : monitor(ids) {
    // `ergotune govern` counts finished regions (docs/production.md)
    if (const std::string file = environment_variable("ERGOTUNE_PROGRESS"); !file.empty())
      progress = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  }
  ~State() {
    if (progress >= 0) ::close(progress);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void ended(const std::string& name, const TimeSpan& span) {
    if (!monitor.is_here()) return;  // a region of the parent process
    const std::lock_guard lock(mutex);
    auto [place, added] = spans.try_emplace(name);
    if (added) order.push_back(name);
    place->second.push_back(span);
    if (progress >= 0) (void)!::write(progress, ".", 1);
  }

  RegionMonitor monitor;
  int progress = -1;
  std::mutex mutex;  ///< protects the members below
  std::map<std::string, std::vector<TimeSpan>> spans;
  std::vector<std::string> order;
};

EnergyMonitor::EnergyMonitor(const std::vector<std::string>& sensors) : state_(std::make_shared<State>(sensors)) {}
std::vector<std::string> EnergyMonitor::sensors() const { return state_->monitor.sensors(); }
void EnergyMonitor::measure_idle(double seconds) { state_->monitor.measure_idle(seconds); }
void EnergyMonitor::set_idle_power(const std::vector<double>& watts) { state_->monitor.set_idle_power(watts); }

std::vector<RegionEnergy> EnergyMonitor::totals() const {
  state_->monitor.require_here();
  std::vector<std::pair<std::string, std::vector<TimeSpan>>> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (const std::string& name : state_->order) all.emplace_back(name, state_->spans.at(name));
  }
  std::vector<RegionEnergy> out;
  for (const auto& [name, spans] : all) out.push_back(state_->monitor.energy(name, spans));
  return out;
}

EnergyRegion::EnergyRegion(const EnergyMonitor& monitor, std::string name)
    : state_(monitor.state_), name_(std::move(name)) {
  state_->monitor.require_here();
  from_ = host_seconds();
}
EnergyRegion::EnergyRegion(EnergyRegion&&) noexcept = default;
EnergyRegion& EnergyRegion::operator=(EnergyRegion&& other) noexcept {
  if (this != &other) {
    end();
    state_ = std::move(other.state_);
    name_ = std::move(other.name_);
    from_ = other.from_;
    to_ = other.to_;
    ended_ = other.ended_;
  }
  return *this;
}
EnergyRegion::~EnergyRegion() { end(); }

void EnergyRegion::end() {
  if (!state_ || ended_) return;
  to_ = host_seconds();
  ended_ = true;
  state_->ended(name_, {from_, to_});
}

RegionEnergy EnergyRegion::energy() {
  if (!state_) throw UserError("this energy region was moved to another one, which has its energy");
  end();
  return state_->monitor.energy(name_, {{from_, to_}});
}

std::string RegionEnergy::json() const {
  using Json = nlohmann::ordered_json;
  const auto value = [](const std::optional<double>& number) { return number ? Json(*number) : Json(); };
  Json document{{"name", name}, {"regions", regions}, {"seconds", seconds}, {"joules", value(joules)}};
  document["half_width"] = joules ? Json(half_width) : Json();
  document["at_most"] = value(at_most);
  document["above_idle"] = value(above_idle);
  document["above_idle_half_width"] = above_idle ? Json(above_idle_half_width) : Json();
  document["watts"] = joules && seconds > 0 ? Json(*joules / seconds) : Json();
  document["sensors"] = Json::array();
  for (const SensorEnergy& one : sensors)
    document["sensors"].push_back({{"sensor", one.sensor},
                                   {"joules", value(one.joules)},
                                   {"half_width", one.joules ? Json(one.half_width) : Json()},
                                   {"at_most", value(one.at_most)},
                                   {"above_idle", value(one.above_idle)},
                                   {"above_idle_half_width", one.above_idle ? Json(one.above_idle_half_width) : Json()},
                                   {"why_not", one.why_not.empty() ? Json() : Json(one.why_not)}});
  return json_text(document);
}

}  // namespace ergotune
