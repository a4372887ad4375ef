//! Integer and bit arithmetic. PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Integer:
    // op            spelling, as the PTX manual writes it                 operands                     PTX   target effect
    Add              "add(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Subtract         "sub(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    MultiplyLow      "mul.lo(<int>)"                                       "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    MultiplyHigh     "mul.hi(<int>)"                                       "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    MultiplyWide     "mul.wide(.s16|.u16|.s32|.u32)"                       "d:2T, a:T, b:T"             "1.0" sm_10  Pure;
    MultiplyAddLow   "mad.lo(<int>)"                                       "d:T, a:T, b:T, c:T"         "1.0" sm_10  Pure;
    MultiplyAddWide  "mad.wide(.s16|.u16|.s32|.u32)"                       "d:2T, a:T, b:T, c:2T"       "1.0" sm_10  Pure;
    Divide           "div(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Remainder        "rem(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Minimum          "min(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Maximum          "max(<int>)"                                          "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Negate           "neg(.s16|.s32|.s64)"                                 "d:T, a:T"                   "1.0" sm_10  Pure;
    And              "and(.pred|<bits>)"                                   "d:T, a:T!, b:T!"            "1.0" sm_10  Pure;
    Or               "or(.pred|<bits>)"                                    "d:T, a:T!, b:T!"            "1.0" sm_10  Pure;
    Xor              "xor(.pred|<bits>)"                                   "d:T, a:T!, b:T!"            "1.0" sm_10  Pure;
    Not              "not(.pred|<bits>)"                                   "d:T, a:T!"                  "1.0" sm_10  Pure;
    ShiftLeft        "shl(<bits>)"                                         "d:T, a:T, b:u32"            "1.0" sm_10  Pure;
    ShiftRight       "shr(.b16|.b32|.b64|<int>)"                           "d:T, a:T, b:u32"            "1.0" sm_10  Pure;
    BitFieldExtract  "bfe(.s32|.u32|.s64|.u64)"                            "d:T, a:T, b:u32(0..255), c:u32(0..255)" "2.0" sm_20  Pure;
    CountOnes        "popc(.b32|.b64)"                                     "d:u32, a:T"                 "2.0" sm_20  Pure;
}
