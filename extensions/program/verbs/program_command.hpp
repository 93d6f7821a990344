// Results of `ergotune program`, and their output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/program_setting.hpp"

namespace ergotune::cli {

struct ProgramFinding {
  std::vector<std::string> command;
  std::vector<std::string> node_options;  ///< "--nodes slurm", where it runs on nodes
  double max_slowdown = 0.05;
  std::string control;                  ///< id; empty: nothing could be set
  std::vector<std::string> why_not;     ///< why nothing was set, and what is missing
  std::optional<SettingChoice> choice;  ///< where something could be set
  std::optional<Measurement> measured;  ///< else: the program as it is
  std::string wisdom;                   ///< the folder to which the setting was added
  std::vector<std::string> notes;
};

nlohmann::ordered_json document_of(const ProgramFinding& finding);
void print_finding(const ProgramFinding& finding);

/// The option of `ergotune clocks set` for a quantity: "--core-clock".
std::string option_of(const std::string& parameter);
/// Commands for root that apply the setting without ergotune, if there is a common tool for the control; may be empty.
std::vector<std::string> setting_commands(const std::string& control, const std::string& parameter, double setting);

}  // namespace ergotune::cli
