//! Integer and bit arithmetic. PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Integer:
    // op                 spelling, as the PTX manual writes it        operands                                                PTX   target effect
    Add                   "add(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    Subtract              "sub(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    AddSaturated          "add.sat.s32"                                "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    SubtractSaturated     "sub.sat.s32"                                "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    AddPacked             "add(.u16x2|.s16x2)"                         "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    AddCarryOut           "add.cc(.s32|.u32|.s64|.u64)"                "d:T, a:T, b:T"                                         "1.2" sm_10 Pure;
    AddCarry              "addc{.cc}(.s32|.u32|.s64|.u64)"             "d:T, a:T, b:T"                                         "1.2" sm_10 Pure;
    SubtractCarryOut      "sub.cc(.s32|.u32|.s64|.u64)"                "d:T, a:T, b:T"                                         "1.2" sm_10 Pure;
    SubtractCarry         "subc{.cc}(.s32|.u32|.s64|.u64)"             "d:T, a:T, b:T"                                         "1.2" sm_10 Pure;
    MultiplyLow           "mul.lo(<int>)"                              "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    MultiplyHigh          "mul.hi(<int>)"                              "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    MultiplyWide          "mul.wide(.s16|.u16|.s32|.u32)"              "d:2T, a:T, b:T"                                        "1.0" sm_10 Pure;
    Multiply24            "mul24(.lo|.hi)(.s32|.u32)"                  "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    MultiplyAddLow        "mad.lo(<int>)"                              "d:T, a:T, b:T, c:T"                                    "1.0" sm_10 Pure;
    MultiplyAddHigh       "mad.hi{.sat}(<int>)"                        "d:T, a:T, b:T, c:T"                                    "1.0" sm_10 Pure;
    MultiplyAddWide       "mad.wide(.s16|.u16|.s32|.u32)"              "d:2T, a:T, b:T, c:2T"                                  "1.0" sm_10 Pure;
    MultiplyAdd24         "mad24(.lo|.hi)(.s32|.u32)"                  "d:T, a:T, b:T, c:T"                                    "1.0" sm_10 Pure;
    MultiplyAddCarryOut   "mad(.lo|.hi).cc(.s32|.u32|.s64|.u64)"       "d:T, a:T, b:T, c:T"                                    "3.0" sm_20 Pure;
    MultiplyAddCarry      "madc(.lo|.hi){.cc}(.s32|.u32|.s64|.u64)"    "d:T, a:T, b:T, c:T"                                    "3.0" sm_20 Pure;
    Divide                "div(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    Remainder             "rem(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    Minimum               "min(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    Maximum               "max(<int>)"                                 "d:T, a:T, b:T"                                         "1.0" sm_10 Pure;
    MinimumRelu           "min.relu.s32"                               "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    MaximumRelu           "max.relu.s32"                               "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    MinimumPacked         "min{.relu}.s16x2"                           "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    MaximumPacked         "max{.relu}.s16x2"                           "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    MinimumPackedUnsigned "min.u16x2"                                  "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    MaximumPackedUnsigned "max.u16x2"                                  "d:T, a:T, b:T"                                         "8.0" sm_90 Pure;
    Negate                "neg(.s16|.s32|.s64)"                        "d:T, a:T"                                              "1.0" sm_10 Pure;
    Absolute              "abs(.s16|.s32|.s64)"                        "d:T, a:T"                                              "1.0" sm_10 Pure;
    AbsoluteDifference    "sad(<int>)"                                 "d:T, a:T, b:T, c:T"                                    "1.0" sm_10 Pure;
    And                   "and(.pred|<bits>)"                          "d:T, a:T!, b:T!"                                       "1.0" sm_10 Pure;
    Or                    "or(.pred|<bits>)"                           "d:T, a:T!, b:T!"                                       "1.0" sm_10 Pure;
    Xor                   "xor(.pred|<bits>)"                          "d:T, a:T!, b:T!"                                       "1.0" sm_10 Pure;
    Not                   "not(.pred|<bits>)"                          "d:T, a:T!"                                             "1.0" sm_10 Pure;
    LogicalNot            "cnot(<bits>)"                               "d:T, a:T"                                              "1.0" sm_10 Pure;
    LogicOfThree          "lop3.b32"                                   "d:b32, a:b32, b:b32, c:b32, n:imm(0..255)"             "4.3" sm_50 Pure;
    LogicOfThreePredicate "lop3(.or|.and).b32"                         "d:b32_|p, a:b32, b:b32, c:b32, n:imm(0..255), q:pred!" "8.2" sm_70 Pure;
    ShiftLeft             "shl(<bits>)"                                "d:T, a:T, b:u32"                                       "1.0" sm_10 Pure;
    ShiftRight            "shr(.b16|.b32|.b64|<int>)"                  "d:T, a:T, b:u32"                                       "1.0" sm_10 Pure;
    FunnelShift           "shf(.l|.r)(.clamp|.wrap).b32"               "d:b32, a:b32, b:b32, c:u32"                            "3.1" sm_32 Pure;
    BitFieldExtract       "bfe(.s32|.u32|.s64|.u64)"                   "d:T, a:T, b:u32(0..255), c:u32(0..255)"                "2.0" sm_20 Pure;
    BitFieldInsert        "bfi(.b32|.b64)"                             "d:T, a:T, b:T, c:u32(0..255), e:u32(0..255)"           "2.0" sm_20 Pure;
    BitFieldMask          "bmsk(.clamp|.wrap).b32"                     "d:b32, a:u32, b:u32"                                   "7.6" sm_70 Pure;
    SignExtend            "szext(.clamp|.wrap)(.u32|.s32)"             "d:T, a:T, b:u32"                                       "7.6" sm_70 Pure;
    CountOnes             "popc(.b32|.b64)"                            "d:u32, a:T"                                            "2.0" sm_20 Pure;
    CountLeadingZeros     "clz(.b32|.b64)"                             "d:u32, a:T"                                            "2.0" sm_20 Pure;
    FindLeadingOne        "bfind{.shiftamt}(.u32|.s32|.u64|.s64)"      "d:u32, a:T"                                            "2.0" sm_20 Pure;
    FindNthOne            "fns.b32"                                    "d:b32, a:b32, b:b32, c:s32"                            "6.0" sm_30 Pure;
    ReverseBits           "brev(.b32|.b64)"                            "d:T, a:T"                                              "2.0" sm_20 Pure;
    Permute               "prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}"   "d:b32, a:b32, b:b32, c:b32"                            "2.0" sm_20 Pure;
    DotOfFour             "dp4a(.s32|.u32)(.s32|.u32)"                 "d:u32, a:u32, b:u32, c:u32"                            "5.0" sm_61 Pure;
    DotOfTwo              "dp2a(.lo|.hi)(.s32|.u32)(.s32|.u32)"        "d:u32, a:u32, b:u32, c:u32"                            "5.0" sm_61 Pure;
    AddFour "vadd4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
    SubtractFour "vsub4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
    AverageFour "vavrg4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
    AbsoluteDifferenceFour "vabsdiff4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
    MinimumFour "vmin4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
    MaximumFour "vmax4(.u32|.s32)(.u32|.s32)(.u32|.s32){.sat|.add}" "d:u32, a:u32^, b:u32^, c:u32^" "3.0" sm_30 Pure;
}
