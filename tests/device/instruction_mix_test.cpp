// Static counts of instructions, from texts as the tools write them.
#include "device/cuda/instruction_mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/process/environment.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"

namespace ergotune::device {
namespace {

constexpr const char* kPtx = R"(.version 8.8
.target sm_90
	// .globl	other
.visible .entry other(
	.param .u64 other_param_0
)
{
	ret;
}
	// .globl	work
.visible .entry work(
	.param .u64 work_param_0,
	.param .u32 work_param_1
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<3>;
	.shared .align 4 .b8 tile[1024];
	ld.param.u64 	%rd1, [work_param_0];
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	ld.f32 	%f5, [%rd1+16];
	st.shared.f32 	[tile], %f1;
	bar.sync 	0;
$L__BB0_2:
	ld.shared.f32 	%f6, [tile+4];
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];
	fma.rn.f32 	%f7, %f6, %f5, %f7;
	mad.lo.s32 	%r5, %r6, %r7, %r8;
	mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f1};
	cp.async.cg.shared.global [%r1], [%rd1], 16;
	@%p1 bra 	$L__BB0_2;
	st.local.f32 	[%rd3], %f7;
	@!%p2 st.global.f32 	[%rd1], %f7;
	atom.global.add.f32 	%f8, [%rd1], %f7;
	ret;

}
)";

TEST(InstructionMix, OfPtxIsThatOfOneFunction) {
  const auto mix = mix_of_ptx(kPtx, "work");
  EXPECT_EQ(mix.at("static_instructions"), 16);
  EXPECT_EQ(mix.at("static_fma"), 1) << "an integer mad is none";
  EXPECT_EQ(mix.at("static_tensor"), 1);
  EXPECT_EQ(mix.at("static_global_loads"), 3) << "plain, through an unknown space, and asynchronous; no parameters";
  EXPECT_EQ(mix.at("static_global_stores"), 2);
  EXPECT_EQ(mix.at("static_shared_loads"), 2);
  EXPECT_EQ(mix.at("static_shared_stores"), 2);
  EXPECT_EQ(mix.at("static_spills"), 1);
  EXPECT_EQ(mix.at("static_branches"), 1);
  EXPECT_EQ(mix.at("static_barriers"), 1);
  EXPECT_EQ(mix_of_ptx(kPtx, "other").at("static_instructions"), 1);
  EXPECT_TRUE(mix_of_ptx(kPtx, "wor").empty());
  EXPECT_TRUE(mix_of_ptx("", "work").empty());
}

constexpr const char* kSass = R"(	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
	.section	.text.work,"ax",@progbits
	.align	128
.text.work:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   LDGSTS.E.128 [R9], desc[UR4][R2.64] ;
        /*0030*/                   STS [R5], R4 ;
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0050*/                   LDS.128 R8, [R5] ;
        /*0060*/                   FFMA R7, R4, R5, R7 ;
        /*0070*/                   HMMA.1688.F32.TF32 R4, R8, R2, R4 ;
        /*0080*/                   STL [R1], R3 ;
        /*0090*/               @P1 BRA `(.L_x_0) ;
        /*00a0*/                   STG.E desc[UR4][R2.64], R7 ;
        /*00b0*/                   EXIT ;
        /*00c0*/                   NOP ;
	.section	.nv.shared.work,"aw",@nobits
        /*00d0*/                   FFMA R7, R4, R5, R7 ;
)";

TEST(InstructionMix, OfSassIsThatOfOneFunction) {
  const auto mix = mix_of_sass(kSass, "work");
  EXPECT_EQ(mix.at("static_instructions"), 12);
  EXPECT_EQ(mix.at("static_fma"), 1);
  EXPECT_EQ(mix.at("static_tensor"), 1);
  EXPECT_EQ(mix.at("static_global_loads"), 2);
  EXPECT_EQ(mix.at("static_shared_stores"), 2);
  EXPECT_EQ(mix.at("static_shared_loads"), 1);
  EXPECT_EQ(mix.at("static_spills"), 1);
  EXPECT_EQ(mix.at("static_branches"), 1);
  EXPECT_EQ(mix.at("static_barriers"), 1);
  EXPECT_EQ(mix.at("static_global_stores"), 1);
  EXPECT_TRUE(mix_of_sass(kSass, "none").empty());
}

TEST(PackedCode, IsWhatWasPackedAndOtherBytesAreCode) {
  const PackedCode packed = PackedCode::unpack(PackedCode{std::string("a\0b", 3), {{"static_fma", 3}}, "PTX"}.pack());
  EXPECT_EQ(packed.code, std::string("a\0b", 3));
  EXPECT_EQ(packed.instructions.at("static_fma"), 3);
  EXPECT_EQ(PackedCode::unpack("add_one").code, "add_one");
  EXPECT_EQ(PackedCode::unpack("ergotune code 2\nbroken").code, "ergotune code 2\nbroken");
}

TEST(FunctionAttributes, AreTakenOutOfCompilerOptions) {
  std::vector<std::string> options{"-O3", "--cluster-size=2,1,4", "--shared-memory-carveout=50"};
  EXPECT_EQ(take_function_attributes(options), (std::map<int, int>{{9, 50}, {11, 2}, {12, 1}, {13, 4}}));
  EXPECT_EQ(options, std::vector<std::string>{"-O3"});
  std::vector<std::string> preset{"--cluster-size=1", "--shared-memory-carveout=-1"};
  EXPECT_TRUE(take_function_attributes(preset).empty());
  for (const char* wrong : {"--cluster-size=", "--cluster-size=0", "--cluster-size=1,1,1,1", "--cluster-size=2x",
                            "--shared-memory-carveout=101", "--shared-memory-carveout=1,2"}) {
    std::vector<std::string> option{wrong};
    EXPECT_THROW(take_function_attributes(option), DeviceError) << wrong;
  }
}

/// What NVRTC really makes, here without a GPU.
TEST(InstructionMix, OfCompiledCode) {
  const std::string python = environment_variable("VIRTUAL_ENV");
  if (python.empty()) setenv("VIRTUAL_ENV", ERGOTUNE_SOURCE_DIR "/build/venv", 1);
  std::unique_ptr<Compiler> compiler;
  try {
    compiler = open_compiler("cuda:sm_90");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  CompileJob job;
  job.language = Language::cuda;
  job.function = "work<4>";
  job.source =
      "template <int N> __global__ void work(float* out, const float* in) {\n"
      "  __shared__ float tile[128];\n"
      "  tile[threadIdx.x] = in[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  float x = in[threadIdx.x + 128];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < N; ++i) x = fmaf(x, tile[(threadIdx.x + i) % 128], 1.5f * i);\n"
      "  out[threadIdx.x] = x;\n"
      "}\n";
  const PackedCode binary = PackedCode::unpack(compiler->compile(job).bytes);
  EXPECT_THAT(binary.instructions_from, testing::AnyOf("PTX", "SASS"));
  EXPECT_EQ(binary.instructions.at("static_fma"), 4);
  EXPECT_EQ(binary.instructions.at("static_global_loads"), 2);
  EXPECT_EQ(binary.instructions.at("static_global_stores"), 1);
  EXPECT_EQ(binary.instructions.at("static_shared_loads"), 4);
  EXPECT_EQ(binary.instructions.at("static_shared_stores"), 1);
  EXPECT_EQ(binary.instructions.at("static_barriers"), 1);
  EXPECT_EQ(binary.instructions.at("static_spills"), 0);
}

}  // namespace
}  // namespace ergotune::device
