// ergotune tune --plan: hands over to tune/plan.hpp.
#include "cli/tune_report.hpp"
#include "ergotune/base/error.hpp"

namespace ergotune::cli {

void tune_by_plans(PreparedSession&, const std::string& names, const SessionOptions&, ProgressPrinter&,
                   bool) {
  throw UserError("plans are not built in yet (asked for: " + names + ")");
}

}  // namespace ergotune::cli
