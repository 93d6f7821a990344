// OpenCL programs: from source to binary in the compiling process, from binary to program in the running one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/opencl/opencl_platform.hpp"

namespace ergotune::opencl {

/// Contents of Binary::bytes: the device's code, and the source with its options for drivers that do not accept their
/// own binaries.
struct PortableProgram {
  std::string source, options;
  std::vector<std::string> include_folders;
  std::string code;
  std::string pack() const;
  /// Throws DeviceError(compile) if `bytes` was not created by pack().
  static PortableProgram unpack(const std::string& bytes);
};

/// A built program; released with the object.
class Program {
 public:
  /// Throws DeviceError(compile) with the build log.
  static Program from_source(const Context& context, cl_device_id device, const PortableProgram& program);
  /// From the binary if the driver accepts it, else from source.
  static Program from_portable(const Context& context, cl_device_id device, const PortableProgram& program);
  Program(Program&& other) noexcept;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();
  cl_program get() const { return program_; }
  /// Returns the device's code; empty if the driver returns none.
  std::string binary() const;
  std::string log(cl_device_id device) const;

 private:
  explicit Program(cl_program program) : program_(program) {}
  cl_program program_ = nullptr;
};

/// Programs that a compiler has built in the process that runs them, so that they are not built again. Keyed by the
/// Binary::bytes that would be loaded; an entry is removed when it is taken.
class BuiltPrograms {
 public:
  void keep(const std::string& bytes, Program program);
  /// Returns null if there is none.
  std::shared_ptr<const Program> take(const std::string& bytes);

 private:
  static constexpr std::size_t kMost = 16;  ///< bound for programs that are compiled but never loaded
  std::map<std::string, std::shared_ptr<const Program>> programs_;
};

/// Returns a compiler that uses the context of a device, which must outlive it, and keeps its programs in `built`.
std::unique_ptr<Compiler> make_compiler_beside(const DeviceEntry& entry, const Context& context,
                                               std::shared_ptr<BuiltPrograms> built);

/// Converts a job to a program without code. Its macros precede the source as text, since drivers differ in how they
/// quote -D options. Line numbers remain those of the user's file.
PortableProgram program_of(const CompileJob& job);

}  // namespace ergotune::opencl
