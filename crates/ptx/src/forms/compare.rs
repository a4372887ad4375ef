//! Comparing and selecting. PTX ISA, "Comparison and Selection Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Compare:
    // op              spelling, as the PTX manual writes it                                                          operands                        PTX   target effect
    SetPredicate       "setp(<compare>){.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64)"                "d:pred{|q}, a:T, b:T"          "1.0" sm_10 Pure;
    SetCombined        "setp(<compare>)(.and|.or|.xor){.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64)" "d:pred{|q}, a:T, b:T, c:pred!" "1.0" sm_10 Pure;
    SetHalf            "setp(<compare>){.ftz}.f16"                                                                    "d:pred, a:T, b:T"              "4.2" sm_53 Pure;
    SetHalfCombined    "setp(<compare>)(.and|.or|.xor){.ftz}.f16"                                                     "d:pred, a:T, b:T, c:pred!"     "4.2" sm_53 Pure;
    SetHalves          "setp(<compare>){.ftz}.f16x2"                                                                  "d:pred|q, a:T, b:T"            "4.2" sm_53 Pure;
    SetBrain16         "setp(<compare>).bf16"                                                                         "d:pred, a:T, b:T"              "7.8" sm_90 Pure;
    SetBrain16Combined "setp(<compare>)(.and|.or|.xor).bf16"                                                          "d:pred, a:T, b:T, c:pred!^"    "7.8" sm_90 Pure;
    SetBrain16s        "setp(<compare>).bf16x2"                                                                       "d:pred|q, a:T, b:T"            "7.8" sm_90 Pure;
    Select             "selp(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64)"                                 "d:T, a:T, b:T, c:pred!"        "1.0" sm_10 Pure;
    SelectBySign       "slct(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64).s32"                             "d:T, a:T, b:T, c:s32"          "1.0" sm_10 Pure;
    SelectByFloatSign  "slct{.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64).f32"                       "d:T, a:T, b:T, c:f32"          "1.0" sm_10 Pure;
}
