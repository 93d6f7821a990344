// What `ergotune capture` leaves beside a problem file, and `ergotune run` looks for.
#pragma once

namespace ergotune::cli {

/// JSON: kernel, source_hash, options of the program's own kernel.
inline constexpr const char* kCaptureRecord = "capture.json";

}  // namespace ergotune::cli
