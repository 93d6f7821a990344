// How much search overhead an evaluation is worth. A model that computes for 4 ms per step loses against random search
// where an evaluation takes 1 ms, and costs nothing that matters where it takes seconds.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace ergotune::search {

/// Two accounts: for steps, and for occasional work (fits). Each evaluation credits a share of its duration to each
/// account. Computation is charged by the clock if there is one, else by counted operations at a nominal speed, so that
/// equal outcomes give equal searches. As long as the duration of evaluations is unknown, everything is affordable.
class OverheadBudget {
 public:
  enum class Account { steps, fits };

  explicit OverheadBudget(std::function<double()> clock = {}) : clock_(std::move(clock)) {}

  /// Credits an evaluation that took `seconds` of the search's time (0: unknown). `standing_still`: no improvement was
  /// found for long, so that less computation is worthwhile.
  void evaluated(double seconds, bool standing_still) {
    if (!(seconds > 0)) return;
    // the last ones count: costs drift as the search moves to where kernels are fast
    evaluation_ = evaluation_ > 0 ? evaluation_ + 0.1 * (seconds - evaluation_) : seconds;
    share_ = standing_still ? kShareStill : kShare;
    for (double& saved : saved_) saved = std::min(saved + share_ * evaluation_, std::max(kCredit, kKept * allowance()));
  }

  bool limited() const { return evaluation_ > 0; }
  bool affordable(Account account) const { return !limited() || saved_[place(account)] >= 0; }
  /// s of computation that one evaluation credits to each account; infinity while unknown.
  double allowance() const { return limited() ? share_ * evaluation_ : std::numeric_limits<double>::infinity(); }
  /// Counted operations that an evaluation pays for.
  double operations() const { return allowance() / kNominal; }

  /// Does `work`, which takes about so many operations, and charges it.
  template <class Work>
  void charge(Account account, double operations, Work&& work) {
    const double before = clock_ ? clock_() : 0;
    work();
    saved_[place(account)] -= clock_ ? clock_() - before : operations * kNominal;
  }

 private:
  static constexpr double kShare = 0.2, kShareStill = 0.08;  ///< of an evaluation's time, for each account
  static constexpr double kCredit = 0.05;                    ///< s: initial credit of each account
  static constexpr double kKept = 10;                        ///< evaluations whose share may be saved up
  static constexpr double kNominal = 0.4e-9;                 ///< s for a multiplication and addition in float

  static std::size_t place(Account account) { return account == Account::steps ? 0 : 1; }

  std::function<double()> clock_;
  double evaluation_ = 0, share_ = kShare;
  double saved_[2] = {kCredit, kCredit};
};

}  // namespace ergotune::search
