// A whole space on a simulated device, as a recording: what analyses read without a store in between.
#include <fmt/format.h>

#include "ergotune/problem_file.hpp"
#include "measure/code_restrictions.hpp"
#include "measure/metrics.hpp"
#include "store/formats/recording_builder.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

Recording record_simulated(const Problem& requested, const std::string& device) {
  if (!device.starts_with("sim:"))
    throw UserError(
        fmt::format("--device {}: only simulated devices (sim:NAME) are analysed without a recording; measure with "
                    "ergotune tune --strategy brute_force, and analyse its store",
                    device));
  SetupOptions options;
  options.run.device = device;
  options.energy = true;
  const Target target = open_target(requested, options);
  const Problem& problem = target.problem;
  const SearchSpace& space = *target.space;
  Recording recording;
  recording.name = problem.name;
  recording.device = target.device.name;
  recording.file = requested.file;
  recording.provenance = Provenance::simulated;
  recording.parameters = space.parameters();
  recording.restrictions = problem.restrictions;
  recording.restrictions_known = true;
  recording.objective = problem.objective;
  recording.metrics = problem.metrics;
  RecordingBuilder rows(space.dimensions());
  std::vector<std::uint32_t> positions(space.dimensions());
  for (ConfigurationIndex index = 0; index < space.size(); ++index) {
    EvaluationRequest request;
    request.index = index;
    request.configuration = space.configuration(index);
    target.evaluator->submit(request);
    Measurement m = target.evaluator->wait(0)->measurement;
    if (m.ok() &&
        broken_code_restriction(problem, space.parameters(), request.configuration, target.constants, m.quantities)) {
      m.status = Status::unsupported;
    } else if (m.ok()) {
      evaluate_metrics(m, problem.metrics, space.parameters(), request.configuration, target.constants);
    }
    rows.set(m);
    space.values_at(index, positions);
    rows.finish_row(positions.data(), m.status, {m.compile_seconds, m.verify_seconds, m.measure_seconds, 0, true});
  }
  rows.finish(recording);
  return recording;
}

}  // namespace ergotune
