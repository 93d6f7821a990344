// What the results of a search show about parameters: their importance, interactions, and values that never worked.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct Importance {
  /// The importance of one parameter, or of an interaction of two beyond their individual effects.
  struct Share {
    std::vector<std::size_t> parameters;
    /// Share of the variance of the objective's logarithm, according to a model of the results, and its 95 % interval,
    /// which covers the choice of results only.
    double share = 0, low = 0, high = 0;
  };
  /// A value that was tried often and always failed, while other values of the parameter worked.
  struct NeverWorkedValue {
    std::size_t parameter = 0;
    Value value;
    std::uint64_t tried = 0;
  };
  /// Largest first; shares below 1 % are left out. Empty if there are too few results, or if the model predicts
  /// held-back results no better than chance.
  std::vector<Share> shares;
  /// Share of the variance of held-back results that the model predicts; the rest is noise and unlearnt structure.
  /// nullopt: too few results.
  std::optional<double> explained;
  /// Whether there are enough results but no parameter has an effect that can be distinguished from noise.
  bool only_noise() const { return explained && shares.empty(); }
  std::vector<NeverWorkedValue> ruled_out;
};

/// A configuration and its value by the objective; nullopt: it failed.
struct Judged {
  Configuration configuration;
  std::optional<double> value;
};

/// Values that were tried often and always failed; none if nothing worked.
std::vector<Importance::NeverWorkedValue> ruled_out(const std::vector<Parameter>& parameters,
                                                    const std::vector<Judged>& results);

/// Functional analysis of variance (Hooker, 2007; Hutter, Hoos and Leyton-Brown, 2014) of a Gaussian process fitted to
/// the results: the variance of its mean prediction given one parameter, and given two parameters beyond their
/// individual variances, over all combinations of the values that occur. Intervals are from the grouped jackknife.
/// Reports nothing if predictions of each group by the others do not correlate with the measured values (Student's t at
/// 0.5 %). The outcome does not depend on the order or source of the results; only names and order are taken from
/// `parameters`.
Importance importance_of(const std::vector<Parameter>& parameters, std::vector<Judged> results);

/// {"provenance": "modelled", "shares": [{parameters, share, low, high}], "explained", "ruled_out": [{parameter, value,
/// tried}]}; "explained" is null if there are too few results.
nlohmann::ordered_json importance_document(const std::vector<Parameter>& parameters, const Importance& importance);

}  // namespace ergotune
