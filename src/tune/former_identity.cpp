#include "tune/former_identity.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/hash.hpp"
#include "ergotune/problem/load.hpp"

namespace ergotune {
namespace {

/// The problem without what cannot change a configuration's result, and without where its files lie.
std::string identity_document(Problem problem) {
  problem.settings = {};
  problem.objective = {};
  problem.metrics.clear();
  problem.plans.clear();
  problem.description.clear();
  problem.file.clear();
  const auto forget_place = [](Kernel& kernel) {
    for (KernelSource& source : kernel.sources) {
      source.file = source.file.filename();
      source.include_folders.clear();
    }
  };
  forget_place(problem.kernel());
  if (problem.verification.reference) {
    auto reference = std::make_shared<Kernel>(*problem.verification.reference);
    forget_place(*reference);
    problem.verification.reference = reference;
  }
  return serialise(problem);
}

}  // namespace

std::string former_identity_hash(const Target& target, const SessionIdentity& identity) {
  std::string text;
  for (const std::string& part :
       {identity.problem, identity_document(target.original), identity.device, identity.device_identity,
        target.former_conditions, to_string(identity.provenance)}) {
    text += fmt::format("{}:", part.size()) + part;
  }
  return content_hash(text);
}

}  // namespace ergotune
