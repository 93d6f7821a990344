// ergotune doctor: reports what works on this machine, what does not, and how to correct it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/diagnosis.hpp"
#include "base/process/process.hpp"
#include "cli/command.hpp"
#include "cli/output/table.hpp"

namespace ergotune::cli {
namespace {

Style style_of(Finding::State state) {
  switch (state) {
    case Finding::State::ok:
      return Style::good;
    case Finding::State::failed:
      return Style::error;
    default:
      return Style::warning;
  }
}

/// The command that comes next, for a source that the best of the devices runs.
std::string next_command(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings)
    if (finding.area == "kernels" && finding.state == Finding::State::ok)
      return fmt::format("ergotune init KERNEL.{}", finding.subject.starts_with("cuda")     ? "cu"
                                                    : finding.subject.starts_with("hip")    ? "hip"
                                                    : finding.subject.starts_with("opencl") ? "cl"
                                                                                            : "c");
  return {};
}

}  // namespace

void add_doctor_command(Verb app) {
  auto json = std::make_shared<bool>(false);
  Verb verb = app.add_verb("doctor", "Check what works on this machine, and name the remedy where something does not");
  add_json_option(verb, *json);
  verb.footer(
      "Compiles and runs a small kernel on every device; changes no setting. Ends with 1 where none works.\n"
      "Example:\n  ergotune doctor\n"
      "In Python: ergotune.doctor()");
  verb.callback([json] {
    const Diagnosis diagnosis = diagnose(own_program());
    if (*json) {
      print_json(diagnosis_document(diagnosis));
    } else {
      std::string area;
      for (const Finding& finding : diagnosis.findings) {
        if (finding.area != area) fmt::print("{}{}\n", area.empty() ? "" : "\n", area = finding.area);
        fmt::print("  {} {}: {}\n", styled(fmt::format("{:<8}", to_string(finding.state)), style_of(finding.state)),
                   finding.subject, finding.message);
        if (!finding.remedy.empty()) fmt::print("           -> {}\n", finding.remedy);
      }
      fmt::print("\n{}\n", diagnosis.can_tune() ? "Kernels can be tuned here. Next: " + next_command(diagnosis)
                                                : "No device here runs kernels.");
    }
    if (!diagnosis.can_tune()) throw Exit{kNoAnswer};
  });
}

}  // namespace ergotune::cli
