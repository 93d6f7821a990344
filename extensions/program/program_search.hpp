// `ergotune program`: finds the clock or power limit at which any program needs the least energy. Command and Python.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/program_setting.hpp"

namespace ergotune {

struct ProgramSearch {
  std::vector<std::string> command;
  std::optional<std::string> control;  ///< to set clocks or limits through; default: the only usable one
  double time_limit = 3600;            ///< s that one run may take
  std::string wisdom;                  ///< folder to whose wisdom the setting is added; empty: none
  /// Options of `ergotune energy` and `ergotune clocks set` that name nodes, as "--nodes slurm": one setting is put
  /// into force on all of them, and their energies are added. Empty: this machine.
  std::vector<std::string> node_options;
  /// Of it are used sensors, precision, max_seconds, store; take_over, resume, interrupted, worker_command, announce
  /// (called when settings are changed); `notify`: called with notes, before anything runs.
  SetupOptions setup;
  SettingSearchOptions options;
};

struct ProgramFinding {
  std::vector<std::string> command, node_options;
  double max_slowdown = 0.05;
  std::string control;                  ///< id; empty: nothing could be set
  std::vector<std::string> why_not;     ///< why nothing was set, and what is missing
  std::optional<SettingChoice> choice;  ///< where something could be set
  std::optional<Measurement> measured;  ///< else: the program as it is
  std::string wisdom;                   ///< the folder to which the setting was added
  std::vector<std::string> notes;

  /// Whether a setting was chosen, or the program as it is was measured.
  bool has_answer() const { return choice ? choice->best.has_value() : usable(measured->status); }
  std::string run_with() const;               ///< the command that runs the program at the best setting
  std::vector<std::string> set_with() const;  ///< commands for root that set it for all, and back again; may be empty
};

/// Measures the program at several settings; at none, where nothing can be set or no energy be read. Settings are
/// restored when it returns. Throws UserError.
ProgramFinding search_program(ProgramSearch search);
/// The document of `ergotune program --json`.
nlohmann::ordered_json program_document(const ProgramFinding& finding);

}  // namespace ergotune
