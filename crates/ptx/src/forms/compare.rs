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
    MaskFloats         "set(<float_order>){.ftz}(.u32|.s32|.f32).f32"                                                 "d:T, a:U, b:U"                 "1.0" sm_10 Pure;
    MaskDoubles        "set(<float_order>)(.u32|.s32|.f32).f64"                                                       "d:T, a:U, b:U"                 "1.0" sm_13 Pure;
    MaskSigned         "set(<order>)(.u32|.s32|.f32)(.s16|.s32|.s64)"                                                 "d:T, a:U, b:U"                 "1.0" sm_10 Pure;
    MaskUnsigned       "set(<order>|.lo|.ls|.hi|.hs)(.u32|.s32|.f32)(.u16|.u32|.u64)"                                 "d:T, a:U, b:U"                 "1.0" sm_10 Pure;
    MaskBits           "set(.eq|.ne)(.u32|.s32|.f32)(.b16|.b32|.b64)"                                                 "d:T, a:U, b:U"                 "1.0" sm_10 Pure;
    MaskHalf           "set(<float_order>){.ftz}(.f16|.u16|.s16|.u32|.s32).f16"                                       "d:T, a:U, b:U"                 "4.2" sm_53 Pure;
    MaskHalves         "set(<float_order>){.ftz}(.f16x2|.u32|.s32).f16x2"                                             "d:T, a:U, b:U"                 "4.2" sm_53 Pure;
    MaskBrain16        "set(<float_order>)(.bf16|.u16|.s16|.u32|.s32).bf16"                                           "d:T, a:U, b:U"                 "7.8" sm_90 Pure;
    MaskBrain16s       "set(<float_order>)(.bf16x2|.u32|.s32).bf16x2"                                                 "d:T, a:U, b:U"                 "7.8" sm_90 Pure;
    Select             "selp(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64)"                                 "d:T, a:T, b:T, c:pred!"        "1.0" sm_10 Pure;
    SelectBySign       "slct(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64).s32"                             "d:T, a:T, b:T, c:s32"          "1.0" sm_10 Pure;
    SelectByFloatSign  "slct{.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64).f32"                       "d:T, a:T, b:T, c:f32"          "1.0" sm_10 Pure;
}
