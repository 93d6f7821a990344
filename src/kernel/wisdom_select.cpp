// Selection from wisdom; pure functions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "kernel/wisdom.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

double doublings(std::int64_t from, std::int64_t to) {
  const auto size = [](std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 1)); };
  return std::log2(size(to)) - std::log2(size(from));
}

bool both(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

/// Returns how similar the devices are, regardless of the size.
WisdomMatch device_match(const WisdomDevice& requested, const WisdomDevice& known) {
  if (both(requested.name, known.name)) return WisdomMatch::exact;
  if (both(requested.architecture, known.architecture) && requested.vendor == known.vendor)
    return WisdomMatch::architecture;
  return both(requested.vendor, known.vendor) ? WisdomMatch::vendor : WisdomMatch::none;
}

/// Returns 0 for a similar amount of memory, else 1: models of an architecture often differ in memory only.
int memory_class(const WisdomDevice& requested, const WisdomDevice& known) {
  if (requested.memory_bytes <= 0 || known.memory_bytes <= 0) return 0;
  return std::abs(doublings(requested.memory_bytes, known.memory_bytes)) <= 0.5 ? 0 : 1;
}

int provenance_rank(const std::string& provenance) {
  return provenance == "simulated" || provenance == "modelled" ? 1 : 0;
}

struct Candidate {
  const WisdomRecord* record = nullptr;
  WisdomMatch match = WisdomMatch::none;
  double distance = 0;
  std::tuple<int, int, double, int> rank() const {
    return {static_cast<int>(match), memory, distance, provenance_rank(record->provenance)};
  }
  int memory = 0;
};

/// Returns the best of equally near records: the wanted objective, the best score, the newest; ties are decided by the
/// text of the record.
const Candidate& best_of(const std::vector<Candidate>& equals, const std::string& wanted) {
  const auto newer = [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.record->tuned_at, to_json_line(*b.record)) >
           std::tuple(b.record->tuned_at, to_json_line(*a.record));
  };
  // "max gflops" is stored as "gflops" with its direction
  std::string objective = wanted.starts_with("max ") || wanted.starts_with("min ") ? wanted.substr(4) : wanted;
  bool maximise = false;
  const auto has = [&](const Candidate& c) { return c.record->objective == objective; };
  const Candidate* first = nullptr;
  for (const Candidate& c : equals)
    if (has(c) && (!first || newer(c, *first))) first = &c;
  if (!first) {
    first = &equals.front();
    for (const Candidate& c : equals)
      if (newer(c, *first)) first = &c;
    objective = first->record->objective;
  }
  maximise = first->record->maximise;
  const Candidate* best = first;
  for (const Candidate& c : equals) {
    if (!has(c) || c.record->maximise != maximise) continue;
    const auto score = [&](const Candidate& of) {
      const double value = of.record->score.value_or(NAN);
      return std::isfinite(value) ? (maximise ? -value : value) : INFINITY;
    };
    if (score(c) < score(*best) || (score(c) == score(*best) && newer(c, *best))) best = &c;
  }
  return *best;
}

std::string size_text(const std::vector<std::int64_t>& size) {
  std::string text;
  for (const std::int64_t n : size) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text.empty() ? "any size" : text;
}

std::string score_text(const WisdomRecord& record) {
  std::string text = record.objective;
  const QuantityInfo* quantity = quantity_info(record.objective);
  if (record.score)
    text += fmt::format(" {:.6g}{}{}", *record.score, quantity ? " " : "", quantity ? quantity->unit : "");
  return fmt::format("{}{}, {}", text, record.of_round ? " of a round of several kernels" : "", record.provenance);
}

std::string reason_of(const Candidate& choice, const WisdomRequest& request) {
  const WisdomRecord& record = *choice.record;
  std::string device;
  if (choice.match == WisdomMatch::architecture)
    device = fmt::format("another device of its architecture, {} ({})", record.device.name, record.device.architecture);
  else if (choice.match == WisdomMatch::vendor)
    device = fmt::format("another device of its vendor, {}", record.device.name);
  else
    device = "this device";
  const std::string size = choice.distance == 0
                               ? size_text(record.problem_size)
                               : fmt::format("{}, {:.2f} doublings from {}", size_text(record.problem_size),
                                             choice.distance, size_text(request.problem_size));
  return fmt::format("tuned on {} for {} ({})", device, size, score_text(record));
}

std::string counted(std::size_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

/// Returns why the default is used, the most likely cause first.
std::string reason_for_none(const std::vector<WisdomRecord>& records, const WisdomChoice& choice, const Candidate* far,
                            const std::string& refusal, const WisdomRequest& request) {
  std::vector<std::string> causes;
  if (records.empty()) causes.push_back("there is no wisdom of this kernel");
  if (choice.stale > 0)
    causes.push_back(fmt::format("{} stale: the source has changed since they were tuned",
                                 counted(choice.stale, "record is", "records are")));
  if (choice.refused > 0)
    causes.push_back(fmt::format("{} cannot be used here: {}", counted(choice.refused, "record", "records"), refusal));
  if (choice.simulated > 0)
    causes.push_back(fmt::format("{} simulated, and used for the simulated device alone",
                                 counted(choice.simulated, "record is", "records are")));
  if (far)
    causes.push_back(
        fmt::format("the nearest size, {} on {}, is {:.1f} doublings from {} (more than {:g} are too many)",
                    size_text(far->record->problem_size), far->record->device.name, std::ceil(far->distance * 10) / 10,
                    size_text(request.problem_size), request.reach));
  if (causes.empty())
    causes.push_back(fmt::format("none of {} is of this device ({}), its architecture ({}) or its vendor ({})",
                                 counted(records.size(), "record", "records"),
                                 request.device.name.empty() ? "no name" : request.device.name,
                                 request.device.architecture.empty() ? "not known" : request.device.architecture,
                                 request.device.vendor.empty() ? "not known" : request.device.vendor));
  std::string text = "the default";
  for (std::size_t i = 0; i < causes.size(); ++i) text += (i == 0 ? ": " : "; ") + causes[i];
  return text;
}

}  // namespace

std::string to_string(WisdomMatch match) {
  constexpr std::array kNames = {"exact", "near size", "architecture", "vendor", "default"};
  return kNames.at(static_cast<std::size_t>(match));
}

double size_distance(const std::vector<std::int64_t>& request, const std::vector<std::int64_t>& record) {
  double sum = 0;
  for (std::size_t d = 0; d < request.size(); ++d) {
    const double step = doublings(d < record.size() ? record[d] : 1, request[d]);
    sum += step * step;
  }
  return std::sqrt(sum);
}

WisdomChoice select_wisdom(const std::vector<WisdomRecord>& records, const WisdomRequest& request) {
  WisdomChoice choice;
  std::vector<Candidate> nearest;
  std::optional<Candidate> far;
  std::string refusal;  // the first one in alphabetical order, independently of the order of the records
  for (const WisdomRecord& record : records) {
    if (!request.source_hash.empty() && !record.source_hash.empty() && request.source_hash != record.source_hash) {
      ++choice.stale;
      continue;
    }
    if (const std::string why = request.refuse ? request.refuse(record) : std::string(); !why.empty()) {
      ++choice.refused;
      if (refusal.empty() || why < refusal) refusal = why;
      continue;
    }
    Candidate candidate{&record, device_match(request.device, record.device), 0,
                        memory_class(request.device, record.device)};
    if (candidate.match == WisdomMatch::none) continue;
    if (candidate.match != WisdomMatch::exact && record.provenance == "simulated") {
      ++choice.simulated;
      continue;
    }
    candidate.distance = record.problem_size.empty() ? (request.problem_size.empty() ? 0 : request.reach)
                                                     : size_distance(request.problem_size, record.problem_size);
    if (candidate.distance > request.reach) {
      if (!far || std::tuple(candidate.distance, candidate.record->device.name) <
                      std::tuple(far->distance, far->record->device.name))
        far = candidate;
      continue;
    }
    if (candidate.match == WisdomMatch::exact) {
      candidate.memory = 0;
      if (candidate.distance > 0) candidate.match = WisdomMatch::near_size;
    }
    if (!nearest.empty() && candidate.rank() < nearest.front().rank()) nearest.clear();
    if (nearest.empty() || candidate.rank() == nearest.front().rank()) nearest.push_back(candidate);
  }
  if (nearest.empty()) {
    choice.reason = reason_for_none(records, choice, far ? &*far : nullptr, refusal, request);
    return choice;
  }
  const Candidate& best = best_of(nearest, request.objective);
  choice.record = best.record;
  choice.match = best.match;
  choice.distance = best.distance;
  choice.reason = reason_of(best, request);
  if (choice.stale > 0) choice.reason += fmt::format("; {} left out as stale", choice.stale);
  return choice;
}

double quantity_of(const WisdomRecord& record, const std::string& name) {
  const auto found = record.quantities.find(name);
  return found == record.quantities.end() ? 0 : found->second.value;
}

}  // namespace ergotune
