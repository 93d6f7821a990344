#include "tune/ledger/ledger.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/problem.hpp"
#include "measure/code_restrictions.hpp"
#include "measure/metrics.hpp"
#include "tune/ledger/live_session.hpp"

namespace ergotune {
namespace {

/// s without a result after which the loop checks again whether to stop.
constexpr double kPatience = 0.1;
/// Shortest time between a disturbance and the next attempt, s.
constexpr double kRest = 2;
constexpr const char* kStopped = "stopped from the web page";

bool same_metrics(const Measurement& a, const Measurement& b) {
  return a.metrics == b.metrics && a.metric_errors == b.metric_errors && a.metric_degrees == b.metric_degrees;
}

}  // namespace

Ledger::Ledger(const SearchSpace& space, Evaluator& evaluator, LedgerOptions options)
    : space_(space), evaluator_(evaluator), options_(std::move(options)) {
  if (options_.store) {
    lock_ = std::make_unique<SessionLock>(options_.store->file(), options_.session);
    note_dead();
    load();
  } else {
    know(std::exchange(options_.known, {}));
  }
  evaluator_.set_journal(this);
}

Ledger::~Ledger() {
  try {
    drop_outstanding();
  } catch (...) {
    // An unwritable store has been reported already, or no receiver of the report is left.
  }
  evaluator_.set_journal(nullptr);
}

void Ledger::note_dead() {
  for (const Configuration& configuration : options_.store->note_deaths(options_.session)) {
    Measurement measurement;
    measurement.status = Status::runtime_error;
    measurement.message = "the session died twice while this configuration ran";
    measurement.finished_at = wall_seconds();
    options_.store->add(options_.session, configuration, measurement);
  }
}

void Ledger::load() {
  std::vector<StoredRow> rows = options_.store->rows(options_.session);
  std::vector<StoredRow> changed;
  for (StoredRow& row : rows) {
    const Measurement before = row.measurement;
    compute_metrics(row.measurement, row.configuration);
    if (!same_metrics(before, row.measurement)) changed.push_back(row);
  }
  if (!changed.empty()) options_.store->set_metrics(changed);
  std::vector<StoredRow> baselines;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(baselines),
               [](const StoredRow& row) { return row.kind == RowKind::reference; });
  know(current_rows(std::move(rows), options_.store->runs(options_.session)));
  for (const StoredRow& row : baselines)
    if (const auto index = space_.index_of(row.configuration)) add_baseline(*index, row.gpu, row.measurement);
}

void Ledger::know(std::vector<StoredRow> rows) {
  for (StoredRow& row : rows) {
    const auto index = space_.index_of(row.configuration);
    if (!index) continue;
    if (options_.retry.contains(row.measurement.status)) {
      to_retry_.push_back(*index);
      continue;
    }
    remember({*index, std::move(row.measurement), true, row.rounds, row.confirmed_for, row.certainty,
              std::move(row.searched), std::move(row.gpu), false, std::move(row.searched_for)});
    ++resumed_;
  }
}

void Ledger::add_baseline(ConfigurationIndex index, const std::string& gpu, const Measurement& baseline) {
  const ConfigurationResult* known = find(index);
  const Measurement* searched = nullptr;
  if (known && known->gpu == gpu) {
    searched = known->searched ? &*known->searched : known->rounds == 0 ? &known->measurement : nullptr;
  }
  factors_.add(gpu, index, baseline, searched);
}

void Ledger::compute_metrics(Measurement& measurement, const Configuration& configuration) const {
  if (!usable(measurement.status)) return;
  if (options_.problem) {
    // A live worker has checked this before it ran anything; simulated and replayed results are checked here.
    if (const auto broken = broken_code_restriction(*options_.problem, space_.parameters(), configuration,
                                                    options_.constants, measurement.quantities)) {
      measurement.status = Status::unsupported;
      measurement.message = *broken;
      return;
    }
  }
  if (options_.problem && !options_.problem->metrics.empty()) {
    const Measurement before = measurement;
    evaluate_metrics(measurement, options_.problem->metrics, space_.parameters(), configuration, options_.constants);
    // Keep the metrics that a recording contains beyond those of the problem.
    if (evaluator_.provenance() != Provenance::measured) {
      for (const auto& [name, value] : before.metrics) {
        if (!measurement.metrics.emplace(name, value).second || !before.metric_errors.contains(name)) continue;
        measurement.metric_errors[name] = before.metric_errors.at(name);
        if (before.degrees(name) > 0) measurement.metric_degrees[name] = before.degrees(name);
      }
    }
  }
  if (options_.further_metrics) options_.further_metrics(measurement, configuration);
}

std::optional<Measurement> Ledger::corrected_measurement(const ConfigurationResult& entry) const {
  const bool guessed = screens_ && lacks_energy(entry.measurement);
  if ((factors_.revision() == 0 && !guessed) || !usable(entry.measurement.status)) return std::nullopt;
  Measurement level = entry.measurement;
  if (guessed) {
    const EnergyByTime::Guess guess = energy_by_time_.at(*level.value("time"));
    level.quantities["energy"] = {guess.energy,        guess.energy * guess.deviation, 1, "modelled by its time", {},
                                  Provenance::modelled};
  }
  // The rounds of a confirmation are compared with each other: baseline runs of the search are not about their time.
  if (!factors_.level(level, entry.gpu, entry.rounds == 0) && !guessed) return std::nullopt;
  compute_metrics(level, space_.configuration(entry.index));
  return level;
}

void Ledger::remember(ConfigurationResult entry) {
  const ConfigurationIndex index = entry.index;
  if (!entries_.contains(index)) order_.push_back(index);
  energy_by_time_.add(entry.measurement);
  entries_.insert_or_assign(index, std::move(entry));
}

const ConfigurationResult* Ledger::find(ConfigurationIndex index) const {
  const auto found = entries_.find(index);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<ConfigurationResult> Ledger::take_entries() {
  std::vector<ConfigurationResult> entries;
  for (const ConfigurationIndex index : order_) entries.push_back(std::move(entries_.at(index)));
  entries_.clear();
  order_.clear();
  return entries;
}

// Called by the evaluator's thread. Not recorded for repetitions, whose configuration is known to run, and for requests
// of resources, which run nothing.
void Ledger::about_to_run(const EvaluationRequest& request, std::size_t device) {
  if (!options_.store || request.repeat || request.resources_only) return;
  const std::lock_guard lock(mutex_);
  const auto pending = pending_.find(request.id);
  if (pending == pending_.end()) return;
  try {
    // The previous request on this device has ended, though its row may not be written yet: if this process dies now,
    // that configuration is not the cause.
    const auto before = pending_.find(std::exchange(on_device_[device], request.id));
    const bool ended = before != pending_.end() && std::exchange(before->second.noted, false);
    options_.store->record_start(options_.session, pending->second.configuration,
                                 ended ? &before->second.configuration : nullptr);
    pending->second.noted = true;
    pending->second.since = wall_seconds();
  } catch (...) {
    fault_ = std::current_exception();
  }
}

void Ledger::rethrow_fault() {
  const std::lock_guard lock(mutex_);
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
}

void Ledger::submit(const ConfigurationRequest& wanted, bool again) {
  EvaluationRequest request;
  request.id = next_id_++;
  request.index = wanted.index;
  request.configuration = wanted.resources_of ? *wanted.resources_of : space_.configuration(wanted.index);
  request.resources_only = wanted.resources_of.has_value();
  request.repeat = wanted.kind != RowKind::search;
  request.reference = wanted.kind == RowKind::reference && !wanted.gpu.empty();
  request.gpu = wanted.gpu;
  request.settle_seconds = wanted.settle_seconds;
  request.give_up_above = wanted.give_up_above;
  request.objective_quantity = wanted.objective_quantity;
  request.energy_up_to = wanted.energy_up_to;
  request.first = wanted.first;
  {
    const std::lock_guard lock(mutex_);
    pending_[request.id] = {wanted, request.configuration, false, 0, again};
  }
  evaluator_.submit(std::move(request));
}

bool Ledger::answers(const ConfigurationResult& known, const ConfigurationRequest& wanted) const {
  if (known.disturbed) return false;
  const bool screened = lacks_energy(known.measurement) && (wants_energy_ || !energy_by_time_.empty());
  return !screened || evaluator_.provenance() != Provenance::measured ||
         *known.measurement.value("time") > wanted.energy_up_to;
}

bool Ledger::hand_out(Source& source) {
  const std::size_t capacity = std::max<std::size_t>(1, evaluator_.capacity());
  if (pending_.size() >= capacity) return true;
  const std::vector<ConfigurationRequest> list = source.next(capacity - pending_.size());
  for (const ConfigurationRequest& wanted : list) {
    const bool may_be_known = wanted.kind == RowKind::search && !wanted.resources_of;
    const ConfigurationResult* known = may_be_known ? find(wanted.index) : nullptr;
    if (known && answers(*known, wanted)) {
      // A copy: what the source does may add entries.
      const Measurement measurement = known->measurement;
      source.take(wanted, measurement, false);
    } else {
      submit(wanted);
    }
  }
  return !list.empty() || !pending_.empty() || retry_disturbed();
}

bool Ledger::retry_disturbed() {
  if (disturbed_.empty()) return false;
  // Wait, if nothing else is left to measure: a disturbance lasts for some time.
  if (const double before = host_seconds(); before - disturbed_at_ < kRest) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kPatience));
    waited_ += host_seconds() - before;
    return true;
  }
  for (const ConfigurationRequest& wanted : disturbed_) submit(wanted, true);
  disturbed_.clear();
  return true;
}

void Ledger::accept(EvaluationResult result, Source& source) {
  Pending requested;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(result.id);
    if (found == pending_.end()) return;  // submitted before a cancel()
    requested = std::move(found->second);
    pending_.erase(found);
  }
  if (requested.wanted.resources_of) return source.take(requested.wanted, result.measurement, true);
  if (result.disturbed) {
    if (options_.store && requested.noted) {
      const std::lock_guard lock(mutex_);
      options_.store->withdraw(options_.session, requested.configuration);
    }
    disturbed_at_ = host_seconds();
    if (!requested.again) return disturbed_.push_back(std::move(requested.wanted));
  }
  StoredRow row;
  row.configuration = std::move(requested.configuration);
  row.measurement = std::move(result.measurement);
  if (row.measurement.finished_at == 0) row.measurement.finished_at = wall_seconds();
  row.kind = requested.wanted.kind;
  row.run = run_;
  row.stage = stage_;
  row.gpu = requested.wanted.gpu = std::move(result.gpu);
  compute_metrics(row.measurement, row.configuration);
  evaluator_overhead_seconds_ += row.measurement.tuner_seconds;
  if (options_.store && !result.disturbed) {
    const std::lock_guard lock(mutex_);
    options_.store->add(options_.session, row);
  }
  if (row.kind == RowKind::search) {
    const ConfigurationResult* before = find(requested.wanted.index);
    evaluated_ += before == nullptr || before->disturbed;
    ConfigurationResult entry;
    entry.index = requested.wanted.index;
    entry.measurement = row.measurement;
    entry.gpu = row.gpu;
    entry.disturbed = result.disturbed;
    remember(std::move(entry));
  } else if (row.kind == RowKind::reference) {
    add_baseline(requested.wanted.index, row.gpu, row.measurement);
  }
  source.take(requested.wanted, row.measurement, true);
}

std::string Ledger::drive(Source& source) {
  std::string why;
  while (true) {
    rethrow_fault();
    const bool hold = held();
    show(hold);
    why = interrupted() ? (stopped_ ? kStopped : "interrupted") : source.stop();
    if (!why.empty() || (!hold && !hand_out(source))) break;
    const double before = host_seconds();
    if (pending_.empty()) {
      if (!hold) continue;
      std::this_thread::sleep_for(std::chrono::duration<double>(kPatience));
      paused_ += host_seconds() - before;
      continue;
    }
    std::optional<EvaluationResult> result = evaluator_.wait(kPatience);
    waited_ += host_seconds() - before;
    // the interruption itself may have made it fail
    if (result && (usable(result->measurement.status) || !interrupted())) accept(std::move(*result), source);
  }
  drop_outstanding();
  rethrow_fault();
  return why;
}

void Ledger::drop_outstanding() {
  disturbed_.clear();
  if (pending_.empty()) return;
  evaluator_.cancel();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, pending] : pending_) {
    if (pending.noted) options_.store->withdraw(options_.session, pending.configuration);
  }
  pending_.clear();
}

void Ledger::begin_run(const RunInfo& info) {
  if (!options_.store) return;
  const std::lock_guard lock(mutex_);
  run_ = options_.store->begin_run(options_.session, info);
  objective_.reset();
  if (info.plan.empty()) objective_ = info.objective;  // stages and plans after each other share what they know
  phase_ = info.phase;
  confirmed_ = 0;
}

bool Ledger::is_of_other_objective(ConfigurationIndex index) const {
  const std::optional<ObjectiveSpec>& of = find(index)->searched_for;
  return of && objective_ && *of != *objective_;
}

void Ledger::set_phase(const std::string& phase) {
  phase_ = phase;
  if (!options_.store || run_ == 0) return;
  const std::lock_guard lock(mutex_);
  options_.store->set_phase(run_, phase);
}

void Ledger::confirm(ConfigurationIndex index, Measurement mean, int rounds, const ObjectiveSpec& objective,
                     const std::string& gpu) {
  StoredRow row;
  row.gpu = gpu;
  row.configuration = space_.configuration(index);
  row.measurement = std::move(mean);
  row.kind = RowKind::confirmed;
  row.run = run_;
  row.stage = stage_;
  // Metrics of the mean, not the mean of the metrics: the values of a configuration are then consistent.
  compute_metrics(row.measurement, row.configuration);
  ConfigurationResult& entry = entries_.at(index);
  if (!entry.searched) entry.searched = std::move(entry.measurement);
  entry.measurement = row.measurement;
  entry.rounds = rounds;
  entry.gpu = gpu;
  entry.confirmed_for = objective;
  entry.certainty.reset();
  if (!options_.store || run_ == 0) return;
  const std::lock_guard lock(mutex_);
  if (rounds > confirmed_) options_.store->set_confirmed(run_, rounds);
  confirmed_ = std::max(confirmed_, rounds);
  options_.store->add(options_.session, row);
}

void Ledger::conclude(ConfigurationIndex winner, const Certainty& certainty) {
  entries_.at(winner).certainty = certainty;
  if (!options_.store || run_ == 0) return;
  const std::lock_guard lock(mutex_);
  options_.store->set_certainty(run_, certainty);
}

void Ledger::end_run(const std::string& why) {
  if (!options_.store || run_ == 0) return;
  const std::lock_guard lock(mutex_);
  options_.store->end_run(run_, why);
  options_.store->flush();
}

std::vector<ConfigurationRequest> ListSource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  while (!ended_ && at_ < list_.size() && list.size() < room) {
    ConfigurationRequest wanted;
    wanted.index = list_[at_++];
    wanted.objective_quantity = quantity_;
    wanted.settle_seconds = settle_seconds_;
    list.push_back(std::move(wanted));
  }
  return list;
}

void ListSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  if (each_ && !ended_ && !each_(wanted, measurement, fresh)) ended_ = true;
}

// The part of the ledger that publishes the session to web pages and carries out their requests.
bool Ledger::held() {
  const std::uint32_t requested = options_.live ? options_.live->requested() : 0;
  if (requested & kStopAfterCurrent) {
    const std::lock_guard lock(mutex_);
    if (!last_) {
      last_.emplace();
      for (const auto& [id, pending] : pending_)
        if (pending.noted) last_->insert(id);
    }
    std::erase_if(*last_, [&](std::uint64_t id) { return !pending_.contains(id); });
    stopped_ = last_->empty();
  }
  return (requested & (kStopAfterCurrent | kPause)) != 0;
}

bool Ledger::take_confirm_request() const {
  if (!options_.live || !(options_.live->requested() & kConfirmNow)) return false;
  options_.live->take_back(kConfirmNow);
  return true;
}

void Ledger::report(const SessionProgress& progress) {
  if (options_.live) options_.live->set_progress(progress);
}

void Ledger::show(bool held) {
  if (!options_.live || !options_.live->due()) return;
  LiveSession::Now now;
  now.phase = phase_;
  now.stage = stage_;
  now.evaluated = evaluated_;
  now.known = resumed_;
  const std::lock_guard lock(mutex_);
  now.under_way = pending_.size();
  for (const auto& [device, id] : on_device_) {
    const auto pending = pending_.find(id);
    if (pending == pending_.end() || !pending->second.noted) continue;
    now.slots.push_back({device, describe(space_.parameters(), pending->second.configuration), pending->second.since});
  }
  const bool stopping = options_.live->requested() & kStopAfterCurrent;
  now.state = !held ? "running" : stopping ? "stopping" : pending_.empty() ? "paused" : "pausing";
  options_.live->show(now);
}

}  // namespace ergotune
