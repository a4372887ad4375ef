//! Reading and writing in one step. PTX ISA, "atom", "red".

#[rustfmt::skip] // One row per line.
super::forms! { Atomic:
    // op                spelling, as the PTX manual writes it                                                                                         operands                                         PTX   target effect
    Add                  "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.add{.L2::cache_hint}(.u32|.s32|.u64|.f32|.f64)"                  "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "1.1" sm_60 Writes;
    AddHalf              "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.add.noftz{.L2::cache_hint}(.f16|.f16x2)"                         "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "6.3" sm_70 Writes;
    AddBrain16           "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.add.noftz{.L2::cache_hint}(.bf16|.bf16x2)"                       "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "7.8" sm_90 Writes;
    AddVector            "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global}.add{.L2::cache_hint}(.v2|.v4).f32"                               "d:T[V], [a:T[V]], b:T[V], p:u64?L2::cache_hint" "8.1" sm_90 Writes;
    HalfVector           "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16)" "d:T[V], [a:T[V]], b:T[V], p:u64?L2::cache_hint" "8.1" sm_90 Writes;
    HalvesVector         "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2)" "d:T[V], [a:T[V]], b:T[V], p:u64?L2::cache_hint" "8.1" sm_90 Writes;
    MinimumMaximum       "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}(.min|.max){.L2::cache_hint}(.u32|.s32|.u64|.s64)"                "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "1.1" sm_60 Writes;
    Count                "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}(.inc|.dec){.L2::cache_hint}.u32"                                 "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "1.1" sm_60 Writes;
    Bits                 "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}(.and|.or|.xor){.L2::cache_hint}(.b32|.b64)"                      "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "1.1" sm_60 Writes;
    ReduceAdd            "red{.relaxed|.release}{<scope>}{<space>}.add{.L2::cache_hint}(.u32|.s32|.u64|.f32|.f64)"                                     "[a:T], b:T, p:u64?L2::cache_hint"               "1.1" sm_60 Writes;
    ReduceAddHalf        "red{.relaxed|.release}{<scope>}{<space>}.add.noftz{.L2::cache_hint}(.f16|.f16x2)"                                            "[a:T], b:T, p:u64?L2::cache_hint"               "6.3" sm_70 Writes;
    ReduceAddBrain16     "red{.relaxed|.release}{<scope>}{<space>}.add.noftz{.L2::cache_hint}(.bf16|.bf16x2)"                                          "[a:T], b:T, p:u64?L2::cache_hint"               "7.8" sm_90 Writes;
    ReduceAddVector      "red{.relaxed|.release}{<scope>}{.global}.add{.L2::cache_hint}(.v2|.v4).f32"                                                  "[a:T[V]], b:T[V], p:u64?L2::cache_hint"         "8.1" sm_90 Writes;
    ReduceHalfVector     "red{.relaxed|.release}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16)"                    "[a:T[V]], b:T[V], p:u64?L2::cache_hint"         "8.1" sm_90 Writes;
    ReduceHalvesVector   "red{.relaxed|.release}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2)"                    "[a:T[V]], b:T[V], p:u64?L2::cache_hint"         "8.1" sm_90 Writes;
    ReduceMinimumMaximum "red{.relaxed|.release}{<scope>}{<space>}(.min|.max){.L2::cache_hint}(.u32|.s32|.u64|.s64)"                                   "[a:T], b:T, p:u64?L2::cache_hint"               "1.1" sm_60 Writes;
    ReduceCount          "red{.relaxed|.release}{<scope>}{<space>}(.inc|.dec){.L2::cache_hint}.u32"                                                    "[a:T], b:T, p:u64?L2::cache_hint"               "1.1" sm_60 Writes;
    ReduceBits           "red{.relaxed|.release}{<scope>}{<space>}(.and|.or|.xor){.L2::cache_hint}(.b32|.b64)"                                         "[a:T], b:T, p:u64?L2::cache_hint"               "1.1" sm_60 Writes;
    Exchange             "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.exch{.L2::cache_hint}(.b32|.b64)"                                "d:T, [a:T], b:T, p:u64?L2::cache_hint"          "1.1" sm_60 Writes;
    CompareSwap          "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.cas(.b32|.b64)"                                                  "d:T, [a:T], b:T, c:T"                           "1.1" sm_60 Writes;
    CompareSwapHalf      "atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{<space>}.cas.b16"                                                         "d:T, [a:T], b:T, c:T"                           "6.3" sm_70 Writes;
}
