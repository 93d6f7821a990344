// The results of a session as one JSON document, described by schemas/result.schema.json. `tune --json`, `show --json`,
// the page, plans, the C++ API and Python's Result are views of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "report/ranked_results.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune {

/// The version of the document, incremented when a key is removed or changes its meaning.
inline constexpr int kResultDocumentVersion = 2;

/// JSON Schema of the document (draft 2020-12).
const char* result_schema();

/// Problem, device, objective, the best with its certainty, the default, up to `top` rows of the ranking, counts,
/// failures.
nlohmann::ordered_json results_document(const RankedResults& ranked, std::size_t top);
/// The same with the importance of the parameters, which takes seconds for large sessions.
nlohmann::ordered_json result_document(const RankedResults& ranked, std::size_t top);
/// The same of stored results, with the sessions of the store: the document of `ergotune show --json`.
nlohmann::ordered_json stored_document(const RankedResults& ranked, const std::filesystem::path& source,
                                       std::size_t top);
/// The same with what this run did and took. Of a front all rows, else the ten best.
nlohmann::ordered_json result_document(const TunedSession& tuned);
/// A comparison of plans.
nlohmann::ordered_json plans_document(const PreparedSession& prepared, const PlanComparison& comparison);

/// One row: configuration, status, quantities, metrics, objective, confirmation_repeats.
nlohmann::ordered_json row_document(const RankedResults& ranked, std::size_t row);

/// A measurement as JSON: status, quantities with value, standard_error, half_width (of the 95 % interval), n, method,
/// sensor; metrics.
nlohmann::ordered_json to_json(const Measurement& measurement);
nlohmann::ordered_json to_json(const Value& value);
/// {"name": value, ...}
nlohmann::ordered_json to_json(const Constants& values);
nlohmann::ordered_json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration);
/// A finite number, else null.
nlohmann::ordered_json number_or_null(double value);

}  // namespace ergotune
