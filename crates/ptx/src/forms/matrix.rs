//! Tensor cores of a warp and what feeds them. PTX ISA, "mma", "ldmatrix", "stmatrix", "movmatrix".

#[rustfmt::skip] // One row per line.
super::forms! { Matrix:
    // op                spelling, as the PTX manual writes it                                                          operands                                         PTX   target effect
    LoadMatrix           "ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16"                    "d:b32[X], [a]"                                  "6.5" sm_75 Reads;
    StoreMatrix          "stmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16"                    "[a], b:b32[X]"                                  "7.8" sm_90 Writes;
    MoveMatrix           "movmatrix.sync.aligned.m8n8.trans.b16"                                                        "d:b32, a:b32"                                   "7.8" sm_75 Reads;
    Multiply16           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"                                            "d:f32[4], a:f16x2[4], b:f16x2[2], c:f32[4]"     "7.0" sm_80 Pure;
    MultiplyBrain16      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"                                          "d:f32[4], a:bf16x2[4], b:bf16x2[2], c:f32[4]"   "7.0" sm_80 Pure;
    MultiplyHalfToHalf   "mma.sync.aligned(.m16n8k8|.m16n8k16).row.col.f16.f16.f16.f16"                                 "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "6.5" sm_75 Pure;
    MultiplyHalf         "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"                                             "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "6.5" sm_75 Pure;
    MultiplyBrain        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"                                           "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "7.0" sm_80 Pure;
    MultiplyTensor32     "mma.sync.aligned(.m16n8k4|.m16n8k8).row.col.f32.tf32.tf32.f32"                                "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "7.0" sm_80 Pure;
    MultiplyDouble       "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"                                              "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "7.0" sm_80 Pure;
    MultiplyDoubleWide   "mma.sync.aligned(.m16n8k4|.m16n8k8|.m16n8k16).row.col.f64.f64.f64.f64"                        "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "7.8" sm_90 Pure;
    MultiplyFloat8       "mma.sync.aligned.m16n8k32.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32"                          "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "8.4" sm_89 Pure;
    MultiplyFloat8Short  "mma.sync.aligned.m16n8k16.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32"                          "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "8.7" sm_89 Pure;
    MultiplyFloat8ToHalf "mma.sync.aligned(.m16n8k16|.m16n8k32).row.col.f16(.e4m3|.e5m2)(.e4m3|.e5m2).f16"              "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "8.7" sm_89 Pure;
    MultiplyInteger8     "mma.sync.aligned(.m8n8k16|.m16n8k16|.m16n8k32).row.col{.satfinite}.s32(.s8|.u8)(.s8|.u8).s32" "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "6.5" sm_75 Pure;
    MultiplyInteger4     "mma.sync.aligned(.m8n8k32|.m16n8k32|.m16n8k64).row.col{.satfinite}.s32(.s4|.u4)(.s4|.u4).s32" "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "6.5" sm_75 Pure;
    MultiplyBits         "mma.sync.aligned(.m8n8k128|.m16n8k128|.m16n8k256).row.col.s32.b1.b1.s32(.xor|.and).popc"      "d:~T[MN], a:~U[MK], b:~W[KN], c:~X4[MN]"        "7.0" sm_75 Pure;
    MultiplyQuadHalf     "mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f16.f16.f16.f16"                                "d:f16x2[4], a:f16x2[2], b:f16x2[2], c:f16x2[4]" "6.4" sm_70 Pure;
    MultiplyQuadFloat    "mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f32.f16.f16.f32"                                "d:f32[8], a:f16x2[2], b:f16x2[2], c:f32[8]"     "6.4" sm_70 Pure;
    MultiplyQuadMixed    "mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f32.f16.f16.f16"                                "d:f32[8], a:f16x2[2], b:f16x2[2], c:f16x2[4]"   "6.4" sm_70 Pure;
}
