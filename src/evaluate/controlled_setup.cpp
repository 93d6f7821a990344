#include <fmt/format.h>

#include "ergotune/base/error.hpp"
#include "ergotune/evaluate/controlled.hpp"

namespace ergotune {

ControlSetup prepare_controls(Problem& problem, const DeviceInfo& device,
                              const std::vector<std::string>& control_ids, bool take_over,
                              const std::map<ParameterKind, std::vector<double>>& suggested) {
  ControlSetup setup;
  for (const auto& report : replay_stale_journals()) setup.notes.push_back(report.summary);
  if (problem.execution_parameters.empty()) return setup;
  if (control_ids.size() > 1)
    throw UserError(fmt::format("one control sets the clocks of a tuning run, not {}: give --control once",
                                control_ids.size()));
  std::string why_not;
  auto control = control_ids.empty()
                     ? control_for_device(device.uuid, device.pci_address, device.is_cpu, &why_not)
                     : usable_control(control_ids.front(), &why_not);
  if (!control) {
    setup.notes.push_back(fmt::format("tuned without clocks and limits: {}", why_not));
    problem.execution_parameters.clear();
    return setup;
  }
  auto parameters = make_execution_parameters(problem.execution_parameters, *control, suggested);
  ControlSessionOptions options;
  options.take_over = take_over;
  setup.session = ControlSession::open(std::move(control), options);
  for (auto& note : setup.session->notes()) setup.notes.push_back(std::move(note));
  problem.parameters.insert(problem.parameters.begin(), std::make_move_iterator(parameters.begin()),
                            std::make_move_iterator(parameters.end()));
  problem.execution_parameters.clear();
  return setup;
}

}  // namespace ergotune
