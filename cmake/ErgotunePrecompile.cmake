# Precompiled headers: a speed-up only, every file still includes what it uses (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# proves it). Only headers that never change stand here, so that no edit of ours rebuilds the world.
set(ERGOTUNE_STANDARD_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
  <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# ergotune_precompile(TARGET GROUP [header...])
# The first target of a GROUP compiles the standard headers and the given ones; the others of that GROUP use the same
# file, so they must have the same compile flags.
function(ergotune_precompile target group)
  get_property(owner GLOBAL PROPERTY ERGOTUNE_PRECOMPILED_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ERGOTUNE_STANDARD_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY ERGOTUNE_PRECOMPILED_${group} ${target})
  endif()
endfunction()
