// Samples of power over clock, taken from a target.
#pragma once

#include <cstddef>
#include <functional>

#include "model/power_samples.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

struct SamplingOptions {
  std::size_t count = 8;
  /// After half of the clocks, spaced evenly, each next one is where the model is least sure.
  bool adaptive = true;
  std::function<void(const PowerSample&, std::size_t done, std::size_t total)> progress;
};

/// Measures (or simulates) power at `count` clocks of a space whose only parameter with several values is the
/// core clock; configurations that fail are left out. What the ledger knows is not measured again. Ends early, with
/// what there is, when the user interrupts. Throws UserError when there is no core clock.
PowerSampling sample_clocks(Ledger& ledger, const SamplingOptions& options = {});

}  // namespace ergotune
