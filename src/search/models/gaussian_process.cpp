#include "search/models/gaussian_process.hpp"

#include "search/models/gaussian_process_state.hpp"

namespace ergotune::search {

GaussianProcess::GaussianProcess(const SearchSpace& space) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.space = &space;
  s.features = make_features(space);
  for (const Feature& feature : s.features) {
    Table table;
    table.nominal = feature.kind == Feature::Kind::nominal;
    std::vector<float> sums{0.0f};
    for (const auto& coordinates : feature.coordinates) {
      std::vector<float> next;
      for (const float sum : sums)
        for (const float c : coordinates) next.push_back(sum + c);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end(), [](float a, float b) { return std::abs(a - b) < 1e-4f; }),
                 next.end());
      sums = std::move(next);
    }
    table.levels = std::move(sums);
    s.tables.push_back(std::move(table));
    std::vector<std::uint16_t>& level_at = s.level_at.emplace_back();
    if (feature.parameters.size() == 1)
      for (const float x : feature.coordinates.front()) level_at.push_back(s.level_of(s.tables.size() - 1, x));
    double length = 0;
    switch (feature.kind) {
      case Feature::Kind::ordinal:
        length = 1.0;
        break;
      case Feature::Kind::nominal:
        length = 1.5;
        break;
      case Feature::Kind::divisibility:
        length = 3.0;
        break;
      case Feature::Kind::product:
        length = 2.0;
        break;
    }
    // clocks and power limits act smoothly, code parameters need not
    const bool is_execution = std::all_of(feature.parameters.begin(), feature.parameters.end(), [&](std::size_t p) {
      return space.parameters()[p].kind != ParameterKind::code;
    });
    if (is_execution) length *= 2;
    s.supposed.log_length.push_back(std::log(length));
  }
  s.hyper = s.supposed;
  s.build_tables();
}
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;
GaussianProcess::~GaussianProcess() = default;

void GaussianProcess::set_pool(std::vector<ConfigurationIndex> pool) {
  State& s = *state_;
  s.pool = std::move(pool);
  s.pool_levels.assign(s.tables.size(), std::vector<std::uint16_t>(s.pool.size()));
  for (std::size_t i = 0; i < s.pool.size(); ++i) {
    const auto levels = s.levels_of(s.pool[i]);
    for (std::size_t f = 0; f < levels.size(); ++f) s.pool_levels[f][i] = levels[f];
  }
  s.rebuild();
}
const std::vector<ConfigurationIndex>& GaussianProcess::pool() const { return state_->pool; }
std::size_t GaussianProcess::observations() const { return state_->observed.size(); }

void GaussianProcess::observe(ConfigurationIndex index) {
  State& s = *state_;
  s.observed.push_back(index);
  s.levels.push_back(s.levels_of(index));
  s.extend(s.observed.size() - 1);
}

void GaussianProcess::set_values(std::span<const double> values) {
  state_->values = Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

void GaussianProcess::refit_pool() {
  if (state_->stale) state_->rebuild();
}

void GaussianProcess::predict(std::vector<float>& mean, std::vector<float>& deviation) const {
  State& s = *state_;
  const auto n = static_cast<Eigen::Index>(s.observed.size());
  const std::size_t m = s.pool.size();
  mean.assign(m, 0.0f);
  deviation.assign(m, 1.0f);
  if (n == 0 || s.values.size() != n) return;
  const auto l = s.factor.topLeftCorner(n, n).triangularView<Eigen::Lower>();
  const Eigen::VectorXd white_y = l.solve(s.values);
  const Eigen::VectorXd white_1 = l.solve(Eigen::VectorXd::Ones(n));
  const double centre = white_1.dot(white_y) / white_1.squaredNorm();
  const Eigen::VectorXd residual = white_y - centre * white_1;
  const double variance = std::max(residual.squaredNorm() / static_cast<double>(n), 1e-12);
  const Vector about = s.weighed(residual.cast<float>());
  for (std::size_t i = 0; i < m; ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    mean[i] = static_cast<float>(centre) + about[at];
    deviation[i] = static_cast<float>(std::sqrt(variance * std::max(1.0f - s.explained[at], 1e-6f)));
  }
}

}  // namespace ergotune::search
