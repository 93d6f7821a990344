// OpenCL programs: source to binary in the compiling process, binary to program in the running one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/opencl/opencl_platform.hpp"

namespace ergotune::opencl {

/// What travels in Binary::bytes: the device's code, and the source with its options for drivers that will
/// not take their own binaries back.
struct PortableProgram {
  std::string source, options;
  std::vector<std::string> include_folders;
  std::string code;
  std::string pack() const;
  /// Throws DeviceError(compile) when `bytes` is none of ours.
  static PortableProgram unpack(const std::string& bytes);
};

/// A built program; released with the object.
class Program {
 public:
  /// Throws DeviceError(compile) with the build log.
  static Program from_source(const Context& context, cl_device_id device, const PortableProgram& program);
  /// From its binary where the driver accepts that, else from source.
  static Program from_portable(const Context& context, cl_device_id device, const PortableProgram& program);
  Program(Program&& other) noexcept;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();
  cl_program get() const { return program_; }
  /// The device's code; empty when the driver gives none.
  std::string binary() const;
  std::string log(cl_device_id device) const;

 private:
  explicit Program(cl_program program) : program_(program) {}
  cl_program program_ = nullptr;
};

/// Programs that a compiler has built in the process that runs them, so that they need not be built there once more: by
/// what would be loaded (Binary::bytes), until it is.
class BuiltPrograms {
 public:
  void keep(const std::string& bytes, Program program);
  /// Null where there is none.
  std::shared_ptr<const Program> take(const std::string& bytes);

 private:
  static constexpr std::size_t kMost = 16;  ///< what is compiled and never loaded does not pile up
  std::map<std::string, std::shared_ptr<const Program>> programs_;
};

/// A compiler that works in the context of a device, which lives longer, and leaves there what it has built.
std::unique_ptr<Compiler> make_compiler_beside(const DeviceEntry& entry, const Context& context,
                                               std::shared_ptr<BuiltPrograms> built);

/// The job as a program without code. Its macros stand in front of the source, as text rather than as -D
/// options: every driver quotes those its own way. Line numbers stay those of the user's file.
PortableProgram program_of(const CompileJob& job);

}  // namespace ergotune::opencl
