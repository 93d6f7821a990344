#include "kernel/cached_compiler.hpp"

namespace ergotune {

CachedCompiler::CachedCompiler(std::unique_ptr<Compiler> compiler, std::filesystem::path cache_folder)
    : compiler_(std::move(compiler)), identity_(compiler_->identity()), cache_(std::move(cache_folder)) {}

CachedCompiler::Outcome CachedCompiler::compile(const CompileJob& job) {
  const std::string key = CompileCache::key(job, identity_);
  if (auto known = cache_.find(key)) return {std::move(*known), true};
  Outcome outcome{compiler_->compile(job), false};
  cache_.store(key, outcome.binary);
  return outcome;
}

}  // namespace ergotune
