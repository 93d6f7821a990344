#include <cstdio>
#include <ergotune/ergotune.hpp>

// Tunes any callable by ask and tell: here a synthetic cost that is least at block_size 128, unroll 4.
double cost(const ergotune::Configuration& c) {
  const double block = c[0].as_real(), unroll = c[1].as_real();
  return (block - 128) * (block - 128) / 1e4 + (unroll - 4) * (unroll - 4);
}

int main() {
  std::vector<ergotune::Parameter> parameters(2);
  parameters[0].name = "block_size";
  for (int size = 32; size <= 1024; size += 32) parameters[0].values.emplace_back(size);
  parameters[1].name = "unroll";
  for (int unroll : {1, 2, 4, 8}) parameters[1].values.emplace_back(unroll);
  ergotune::Restriction restriction;
  restriction.expression = ergotune::Expression::parse("block_size * unroll <= 2048");
  const auto space = ergotune::SearchSpace::build(parameters, {restriction});

  ergotune::StrategyContext context;
  context.space = &space;
  context.budget = 40;
  const auto strategy = ergotune::make_strategy("auto", context);
  ergotune::ConfigurationIndex best = 0;
  for (int evaluated = 0; evaluated < 40;) {
    const auto requested = strategy->ask(1);
    if (requested.empty()) break;
    for (const auto index : requested) {
      strategy->tell(index, {true, {cost(space.configuration(index))}, {}});
      if (evaluated++ == 0 || cost(space.configuration(index)) < cost(space.configuration(best))) best = index;
    }
  }
  const auto found = space.configuration(best);
  std::printf("best of %llu: block_size %lld, unroll %lld\n", static_cast<unsigned long long>(space.size()),
              static_cast<long long>(found[0].as_real()), static_cast<long long>(found[1].as_real()));
}
