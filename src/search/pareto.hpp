// Pareto sets of objective values, all to be minimised.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ergotune {

/// Whether `a` is nowhere worse than `b` and somewhere better.
bool dominates(std::span<const double> a, std::span<const double> b);

/// Positions of the points that no other point dominates, ordered by their first value; of equal points the first.
std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& points);

/// Volume dominated by the points up to a reference point (exact; points beyond the reference add nothing). O(n log n)
/// for two objectives; by slicing for more (Fonseca, Paquete and Lopez-Ibanez, 2006, in its simple form).
double hypervolume(const std::vector<std::vector<double>>& points, std::span<const double> reference);

}  // namespace ergotune
