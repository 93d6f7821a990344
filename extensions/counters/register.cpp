// Registers the observers "counters" and "perf".
#include "counters/counters_observer.hpp"
#include "counters/perf_observer.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune {

void register_counters() {
  using Type = ObserverOption::Type;
  register_observer({{"counters",
                      "Hardware counters of NVIDIA GPUs, through CUPTI: separate launches after time and energy, with "
                      "inputs restored",
                      ObserverPhase::own,
                      usual_counters(),
                      {{"metrics",
                        Type::text,
                        true,
                        "Counters by the names that papers use (ipc), or metrics of the chip as CUPTI names them; "
                        "none: the usual twenty",
                        {}}}},
                     [](const ObserverOptions& options, const ObserverContext& context) {
                       return make_counters_observer(strings_of(options, "metrics"), context.device, context.notes);
                     },
                     check_counter_names,
                     [](const std::string& quantity) { return counter_info(quantity) || is_chip_metric(quantity); }});
  std::vector<std::string> names;
  for (const PerfCounterInfo& counter : perf_counter_names()) names.emplace_back(counter.name);
  register_observer(
      {{"perf",
        "Counters of the CPU and the kernel while an iteration runs (perf_event_open), for host kernels and PoCL",
        ObserverPhase::own,
        std::move(names),
        {{"metrics",
          Type::text,
          true,
          "Counters by name, such as instructions; none: all that are available here",
          {}}}},
       [](const ObserverOptions& options, const ObserverContext& context) {
         return make_perf_observer(strings_of(options, "metrics"), context.device, context.notes);
       },
       check_perf_names});
}

}  // namespace ergotune
