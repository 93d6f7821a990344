// A problem file: what is tuned, and the settings of a run.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "ergotune/problem.hpp"
#include "ergotune/run_config.hpp"

namespace ergotune {

/// A problem with the run settings of its table [tune]. The command line and Python's keyword arguments take precedence
/// over these settings.
struct ProblemFile : Problem {
  ProblemFile() = default;
  ProblemFile(Problem problem) : Problem(std::move(problem)) {}
  RunConfig run;
};

/// Reads a problem: a native TOML or JSON file, T1 JSON, or the plain JSON form {"tune_params":{..},
/// "restrictions":[..],"max_threads":n}; distinguished by content. Throws UserError with file, line and column.
ProblemFile load_problem(const std::filesystem::path& file);

/// Parses the text of a problem file as if it had been read from `file`: relative paths are resolved against its
/// folder. Throws UserError as load_problem does.
ProblemFile parse_problem(const std::string& text, const std::filesystem::path& file);

/// Converts a problem to and from one self-contained JSON document (sources included), as worker processes receive it.
std::string serialise(const ProblemFile& problem);
ProblemFile deserialise(const std::string& document);

}  // namespace ergotune
