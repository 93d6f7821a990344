// What a search has learnt of the parameters: which matter, which act together, which values never worked.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct Importance {
  /// One parameter, or two that act together beyond what each does alone.
  struct Share {
    std::vector<std::size_t> parameters;
    /// Of the variance of the objective's logarithm, as a model of the results has it, and its interval (95 %) as far
    /// as it comes from which results there are.
    double share = 0, low = 0, high = 0;
  };
  /// A value that was tried often and never worked, while others did.
  struct RuledOut {
    std::size_t parameter = 0;
    Value value;
    std::uint64_t tried = 0;
  };
  /// Largest first; what is below 1 % is left out. Empty where too little was measured to tell, and where the model
  /// predicts results that were held back no better than noise allows.
  std::vector<Share> shares;
  /// Share of the variance of held-back results that the model predicts, the rest being noise and what it has not
  /// learnt; nullopt where too little was measured to tell.
  std::optional<double> explained;
  /// Enough was measured, and no parameter has an effect that can be distinguished from noise.
  bool only_noise() const { return explained && shares.empty(); }
  std::vector<RuledOut> ruled_out;
};

/// A configuration and its value by the objective; nullopt: it failed.
struct Judged {
  Configuration configuration;
  std::optional<double> value;
};

/// Functional analysis of variance (Hooker, 2007; Hutter, Hoos and Leyton-Brown, 2014) of a Gaussian process over the
/// results: the variance of its prediction's mean given one parameter, and given two beyond either alone, over all
/// combinations of the values that occur. The intervals are the grouped jackknife's. Nothing is reported where
/// predictions of each group by the others do not correlate with what was measured (Student's t at 0.5 %). The same
/// results in any order, from a store or from a file, give the same numbers; `parameters` say names and order alone.
Importance importance_of(const std::vector<Parameter>& parameters, std::vector<Judged> results);

/// {"provenance": "modelled", "shares": [{parameters, share, low, high}], "explained", "ruled_out": [{parameter, value,
/// tried}]}; "explained" is null where too little was measured.
nlohmann::ordered_json importance_document(const std::vector<Parameter>& parameters, const Importance& importance);

}  // namespace ergotune
