// Samples power at several clocks on a target.
#pragma once

#include <cstddef>
#include <functional>

#include "model/power_samples.hpp"
#include "tune/ledger/ledger.hpp"

namespace ergotune {

struct SamplingOptions {
  std::size_t count = 8;
  /// The first half of the clocks is evenly spaced; each further clock is where the model is least certain.
  bool adaptive = true;
  std::function<void(const PowerSample&, std::size_t done, std::size_t total)> progress;
};

/// Measures (or simulates) power at `count` clocks of a space whose only parameter with several values is the core
/// clock. Failed configurations are left out, and known results are not measured again. Returns the samples so far when
/// the user interrupts. Throws UserError if there is no core clock.
PowerSampling sample_clocks(Ledger& ledger, const SamplingOptions& options = {});
/// Adds the samples of all configurations of a space of core and memory clocks. Throttled ones are left out.
void sample_all(Ledger& ledger, const SamplingOptions& options, PowerSampling& out);

}  // namespace ergotune
