//! Tensor cores and what feeds them. PTX ISA, "mma", "ldmatrix", "wgmma.mma_async".

#[rustfmt::skip] // One row per line.
super::forms! { Matrix:
    // op                    spelling, as the PTX manual writes it                                       operands                                                                              PTX   target effect
    LoadMatrix               "ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16" "d:b32[X], [a]"                                                                       "6.5" sm_75  Reads;
    Multiply16               "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"                         "d:f32[4], a:f16x2[4], b:f16x2[2], c:f32[4]"                                          "7.0" sm_80  Pure;
    MultiplyBrain16          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"                       "d:f32[4], a:bf16x2[4], b:bf16x2[2], c:f32[4]"                                        "7.0" sm_80  Pure;
    WarpgroupShared          "wgmma.mma_async.sync.aligned(.m64nNk16).f32.f16.f16"                       "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), k:imm(0 1), l:imm(0 1)" "8.0" sm_90a Starts;
    WarpgroupSharedBrain16   "wgmma.mma_async.sync.aligned(.m64nNk16).f32.bf16.bf16"                     "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), k:imm(0 1), l:imm(0 1)" "8.0" sm_90a Starts;
    WarpgroupRegister        "wgmma.mma_async.sync.aligned(.m64nNk16).f32.f16.f16"                       "d+:f32[N/2], a:f16x2[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), l:imm(0 1)"        "8.0" sm_90a Starts;
    WarpgroupRegisterBrain16 "wgmma.mma_async.sync.aligned(.m64nNk16).f32.bf16.bf16"                     "d+:f32[N/2], a:bf16x2[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), l:imm(0 1)"       "8.0" sm_90a Starts;
}
