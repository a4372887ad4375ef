//! Tensor cores of a warpgroup. PTX ISA, "wgmma.mma_async".

#[rustfmt::skip] // One row per line.
super::forms! { Wgmma:
    // op                spelling, as the PTX manual writes it                                       operands                                                                                PTX   target effect
    HalfShared           "wgmma.mma_async.sync.aligned(.m64nNk16).f32.f16.f16"                       "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), k:imm(0 1), l:imm(0 1)"   "8.0" sm_90a Starts;
    HalfRegister         "wgmma.mma_async.sync.aligned(.m64nNk16).f32.f16.f16"                       "d+:f32[N/2], a:f16x2[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), l:imm(0 1)"          "8.0" sm_90a Starts;
    HalfToHalfShared     "wgmma.mma_async.sync.aligned(.m64nNk16).f16.f16.f16"                       "d+:f16x2[N/4], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), k:imm(0 1), l:imm(0 1)" "8.0" sm_90a Starts;
    HalfToHalfRegister   "wgmma.mma_async.sync.aligned(.m64nNk16).f16.f16.f16"                       "d+:f16x2[N/4], a:f16x2[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), l:imm(0 1)"        "8.0" sm_90a Starts;
    BrainShared          "wgmma.mma_async.sync.aligned(.m64nNk16).f32.bf16.bf16"                     "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), k:imm(0 1), l:imm(0 1)"   "8.0" sm_90a Starts;
    BrainRegister        "wgmma.mma_async.sync.aligned(.m64nNk16).f32.bf16.bf16"                     "d+:f32[N/2], a:bf16x2[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1), l:imm(0 1)"         "8.0" sm_90a Starts;
    Tensor32Shared       "wgmma.mma_async.sync.aligned(.m64nNk8).f32.tf32.tf32"                      "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                           "8.0" sm_90a Starts;
    Tensor32Register     "wgmma.mma_async.sync.aligned(.m64nNk8).f32.tf32.tf32"                      "d+:f32[N/2], a:tf32[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                       "8.0" sm_90a Starts;
    Float8Shared         "wgmma.mma_async.sync.aligned(.m64nNk32).f32(.e4m3|.e5m2)(.e4m3|.e5m2)"     "d+:f32[N/2], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                           "8.0" sm_90a Starts;
    Float8Register       "wgmma.mma_async.sync.aligned(.m64nNk32).f32(.e4m3|.e5m2)(.e4m3|.e5m2)"     "d+:f32[N/2], a:e4m3x4[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                     "8.0" sm_90a Starts;
    Float8ToHalfShared   "wgmma.mma_async.sync.aligned(.m64nNk32).f16(.e4m3|.e5m2)(.e4m3|.e5m2)"     "d+:f16x2[N/4], a:u64, b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                         "8.0" sm_90a Starts;
    Float8ToHalfRegister "wgmma.mma_async.sync.aligned(.m64nNk32).f16(.e4m3|.e5m2)(.e4m3|.e5m2)"     "d+:f16x2[N/4], a:e4m3x4[4], b:u64, s:pred, i:imm(-1 1), j:imm(-1 1)"                   "8.0" sm_90a Starts;
    Integer8Shared       "wgmma.mma_async.sync.aligned(.m64nIk32){.satfinite}.s32(.s8|.u8)(.s8|.u8)" "d+:s32[N/2], a:u64, b:u64, s:pred"                                                     "8.0" sm_90a Starts;
    Integer8Register     "wgmma.mma_async.sync.aligned(.m64nIk32){.satfinite}.s32(.s8|.u8)(.s8|.u8)" "d+:s32[N/2], a:u32[4], b:u64, s:pred"                                                  "8.0" sm_90a Starts;
    BitsShared           "wgmma.mma_async.sync.aligned(.m64nIk256).s32.b1.b1.and.popc"               "d+:s32[N/2], a:u64, b:u64, s:pred"                                                     "8.0" sm_90a Starts;
    BitsRegister         "wgmma.mma_async.sync.aligned(.m64nIk256).s32.b1.b1.and.popc"               "d+:s32[N/2], a:u32[4], b:u64, s:pred"                                                  "8.0" sm_90a Starts;
    Fence                "wgmma.fence.sync.aligned"                                                  ""                                                                                      "8.0" sm_90a Orders;
    Commit               "wgmma.commit_group.sync.aligned"                                           ""                                                                                      "8.0" sm_90a Starts;
    WaitGroup            "wgmma.wait_group.sync.aligned"                                             "n:imm(0..7)"                                                                           "8.0" sm_90a Waits;
}
