//! Tensor cores with fragments of the hardware's own layout. PTX ISA, "wmma".

#[rustfmt::skip] // One row per line.
super::forms! { Wmma:
    // op             spelling, as the PTX manual writes it                                                                           operands                                     PTX   target effect
    LoadHalfA         "wmma.load.a.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.f16"         "d:f16x2[8], [a]{, s:u32}"                   "6.0" sm_70 Reads;
    LoadBrainA        "wmma.load.a.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.bf16"        "d:~T[MK], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadInteger8A     "wmma.load.a.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}(.s8|.u8)"    "d:~T[MK], [a]{, s:u32}"                     "6.3" sm_72 Reads;
    LoadTensor32A     "wmma.load.a.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.tf32"                               "d:~T[MK], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadDoubleA       "wmma.load.a.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64"                                  "d:~T[MK], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadHalfB         "wmma.load.b.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.f16"         "d:f16x2[8], [a]{, s:u32}"                   "6.0" sm_70 Reads;
    LoadBrainB        "wmma.load.b.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.bf16"        "d:~T[KN], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadInteger8B     "wmma.load.b.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}(.s8|.u8)"    "d:~T[KN], [a]{, s:u32}"                     "6.3" sm_72 Reads;
    LoadTensor32B     "wmma.load.b.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.tf32"                               "d:~T[KN], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadDoubleB       "wmma.load.b.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64"                                  "d:~T[KN], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    LoadInteger4A     "wmma.load.a.sync.aligned.row.m8n8k32{.global|.shared|.shared::cta}(.s4|.u4)"                                   "d:~T[MK], [a]{, s:u32}"                     "6.3" sm_75 Reads;
    LoadBitsA         "wmma.load.a.sync.aligned.row.m8n8k128{.global|.shared|.shared::cta}.b1"                                        "d:~T[MK], [a]{, s:u32}"                     "6.3" sm_75 Reads;
    LoadInteger4B     "wmma.load.b.sync.aligned.col.m8n8k32{.global|.shared|.shared::cta}(.s4|.u4)"                                   "d:~T[KN], [a]{, s:u32}"                     "6.3" sm_75 Reads;
    LoadBitsB         "wmma.load.b.sync.aligned.col.m8n8k128{.global|.shared|.shared::cta}.b1"                                        "d:~T[KN], [a]{, s:u32}"                     "6.3" sm_75 Reads;
    LoadCFloats       "wmma.load.c.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}(.f16|.f32)"  "d:~T[MN], [a]{, s:u32}"                     "6.0" sm_70 Reads;
    StoreDFloats      "wmma.store.d.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}(.f16|.f32)" "[a], b:~T[MN]{, s:u32}"                     "6.0" sm_70 Writes;
    LoadCIntegers     "wmma.load.c.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.s32"         "d:~T[MN], [a]{, s:u32}"                     "6.3" sm_72 Reads;
    StoreDIntegers    "wmma.store.d.sync.aligned(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16){.global|.shared|.shared::cta}.s32"        "[a], b:~T[MN]{, s:u32}"                     "6.3" sm_72 Writes;
    LoadCTensor32     "wmma.load.c.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.f32"                                "d:~T[MN], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    StoreDTensor32    "wmma.store.d.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.f32"                               "[a], b:~T[MN]{, s:u32}"                     "7.0" sm_80 Writes;
    LoadCDouble       "wmma.load.c.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64"                                  "d:~T[MN], [a]{, s:u32}"                     "7.0" sm_80 Reads;
    StoreDDouble      "wmma.store.d.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64"                                 "[a], b:~T[MN]{, s:u32}"                     "7.0" sm_80 Writes;
    LoadCSmall        "wmma.load.c.sync.aligned(.row|.col)(.m8n8k32|.m8n8k128){.global|.shared|.shared::cta}.s32"                     "d:~T[MN], [a]{, s:u32}"                     "6.3" sm_75 Reads;
    StoreDSmall       "wmma.store.d.sync.aligned(.row|.col)(.m8n8k32|.m8n8k128){.global|.shared|.shared::cta}.s32"                    "[a], b:~T[MN]{, s:u32}"                     "6.3" sm_75 Writes;
    MultiplyHalf      "wmma.mma.sync.aligned(.row|.col)(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16)(.f16|.f32)(.f16|.f32)"             "d:~T[MN], a:f16x2[8], b:f16x2[8], c:~U[MN]" "6.0" sm_70 Pure;
    MultiplyBrain     "wmma.mma.sync.aligned(.row|.col)(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16).f32.bf16.bf16.f32"                 "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "7.0" sm_80 Pure;
    MultiplyTensor32  "wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k8.f32.tf32.tf32.f32"                                        "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "7.0" sm_80 Pure;
    MultiplyDouble    "wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n8k4{.rn|.rz|.rm|.rp}.f64.f64.f64.f64"                           "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "7.0" sm_80 Pure;
    MultiplySigned8   "wmma.mma.sync.aligned(.row|.col)(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16).s32.s8.s8.s32{.satfinite}"         "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "6.3" sm_72 Pure;
    MultiplyUnsigned8 "wmma.mma.sync.aligned(.row|.col)(.row|.col)(.m16n16k16|.m8n32k16|.m32n8k16).s32.u8.u8.s32{.satfinite}"         "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "6.3" sm_72 Pure;
    MultiplySigned4   "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32{.satfinite}"                                               "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "6.3" sm_75 Pure;
    MultiplyUnsigned4 "wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32{.satfinite}"                                               "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "6.3" sm_75 Pure;
    MultiplyBits      "wmma.mma(.xor|.and).popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"                                          "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"    "6.3" sm_75 Pure;
}
