// The best candidates are measured again, side by side, before the winner is reported.
#pragma once

#include <vector>

#include "ergotune/base/random.hpp"
#include "ergotune/tune/ledger.hpp"

namespace ergotune {

/// Rounds of confirmation as a source: each candidate once a round, in an order of its own each round, so that drift of
/// the board does not favour one of them. The next round begins when the last one has ended.
class ConfirmationSource : public Source {
 public:
  struct Candidate {
    ConfigurationIndex index = 0;
    std::vector<Measurement> rounds;
  };

  ConfirmationSource(const std::vector<ConfigurationIndex>& candidates, int rounds);
  std::vector<Wanted> next(std::size_t room) override;
  void take(const Wanted& wanted, const Measurement& measurement, bool fresh) override;
  /// With all of their rounds once the ledger says that the source has finished.
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> order_;
  int rounds_left_;
  std::size_t sent_, under_way_ = 0;
  Random random_{7};
};

/// Of choosing the first of these values for the smallest: what it is expected to be above the smallest, as a share of its
/// own, by the same sampling. 0 where there is nothing to choose from.
double expected_loss(const std::vector<double>& values, const std::vector<double>& errors);

/// Probability for each value that it is the smallest, by sampling normal distributions with these errors.
std::vector<double> probability_of_being_best(const std::vector<double>& values, const std::vector<double>& errors);

}  // namespace ergotune
