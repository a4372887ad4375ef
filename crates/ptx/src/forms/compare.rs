//! Comparing and selecting. PTX ISA, "Comparison and Selection Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Compare:
    // op            spelling, as the PTX manual writes it                                              operands                       PTX   target effect
    SetPredicate     "setp(<compare>){.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32)"          "d:pred{|q}, a:T, b:T"         "1.0" sm_10  Pure;
    SetCombined      "setp(<compare>)(.and|.or|.xor){.ftz}(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32)" "d:pred{|q}, a:T, b:T, c:pred!" "1.0" sm_10 Pure;
    Select           "selp(.b16|.b32|.b64|.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64)"                      "d:T, a:T, b:T, c:pred!"       "1.0" sm_10  Pure;
}
