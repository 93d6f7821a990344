// What configurations that were not measured would need, by a model of those that were.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// A modelled value, and the factor by which its 95 % interval reaches up and down.
struct PredictedValue {
  double value = 0, factor = 1;
};

/// Quantities are modelled by a Gaussian process over the logarithms of what was measured.
struct QuantityModel {
  /// A measured configuration beside what the model of all the others predicts for it.
  struct LeftOut {
    ConfigurationIndex index = 0;
    double measured = 0;
    PredictedValue predicted;
  };
  std::vector<LeftOut> left_out;  ///< every one that the model is made of, the least measured value first
  double median_error = 0;        ///< of these predictions, as a share
  double coverage = 0;            ///< share of the measured values that lie within the 95 % intervals
};

struct Prediction {
  ConfigurationIndex index = 0;
  std::map<std::string, PredictedValue> values;
  std::map<std::string, double> measured;  ///< where it was
};

/// Predicts time and energy of a space's configurations from known values: (configuration, value by quantity). Omits a
/// quantity with fewer than ten known values.
class Predictor {
 public:
  using Known = std::vector<std::pair<ConfigurationIndex, std::map<std::string, double>>>;
  Predictor(const SearchSpace& space, Known known);
  ~Predictor();
  const std::map<std::string, QuantityModel>& models() const { return models_; }
  std::vector<Prediction> at(const std::vector<ConfigurationIndex>& list) const;
  /// The least (or largest) predicted values of a quantity among those that were not measured, without values of
  /// parameters that never worked.
  std::vector<Prediction> best(const std::string& quantity, std::size_t count, bool largest = false) const;

 private:
  struct Model;
  const SearchSpace& space_;
  Known known_;
  std::map<std::string, QuantityModel> models_;
  std::map<std::string, std::unique_ptr<Model>> processes_;
};

/// A stored session, and the space that it searched.
struct PredictedSession {
  std::string problem, device, provenance, objective;
  SearchSpace space;
  Predictor::Known known;  ///< time, energy, and the objective where it is a metric
  std::string unit = {};   ///< of the objective
  bool maximises = false;

  /// Whether the largest values of a quantity are the best.
  bool is_largest(const std::string& quantity) const { return maximises && quantity == objective; }
};
/// Throws UserError for a store or session that there is not, or whose problem was not stored.
PredictedSession predicted_session(const std::filesystem::path& store, std::int64_t session);

/// What is predicted: the named configurations (JSON objects; parameters left out take their defaults), else those with
/// the best predicted `quantity` ("time", "energy", the session's objective; empty: that, else the time).
struct PredictionRequest {
  std::vector<std::string> configurations;
  std::string quantity;
  std::size_t top = 5;
};
/// The quantity by which configurations are chosen. Throws UserError if too few configurations worked to model it.
std::string quantity_of_choice(const PredictedSession& session, const Predictor& predictor, const std::string& asked);
/// Throws UserError as quantity_of_choice(), and for a configuration outside of the space.
std::vector<Prediction> chosen_predictions(const PredictedSession& session, const Predictor& predictor,
                                           const PredictionRequest& request);
/// The document of `ergotune predict --json`.
nlohmann::ordered_json prediction_document(const PredictedSession& session, const Predictor& predictor,
                                           const std::vector<Prediction>& list);

}  // namespace ergotune
