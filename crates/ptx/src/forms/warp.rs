//! Exchange between the lanes of a warp. PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync".

#[rustfmt::skip] // One row per line.
super::forms! { Warp:
    // op       spelling, as the PTX manual writes it   operands                                PTX   target effect
    Shuffle     "shfl.sync(.up|.down|.bfly|.idx).b32"   "d:b32{|p}, a:b32, b:b32, c:b32, m:b32" "6.0" sm_30 Reads;
    Vote        "vote.sync(.all|.any|.uni).pred"        "d:pred, a:pred!, m:u32"                "6.0" sm_30 Reads;
    Ballot      "vote.sync.ballot.b32"                  "d:b32, a:pred!, m:u32"                 "6.0" sm_30 Reads;
    ActiveMask  "activemask.b32"                        "d:b32"                                 "6.2" sm_30 Reads;
    Synchronise "bar.warp.sync"                         "m:u32"                                 "6.0" sm_30 Orders;
    MatchAny    "match.any.sync(.b32|.b64)"             "d:b32, a:T, m:u32"                     "6.0" sm_70 Reads;
    MatchAll    "match.all.sync(.b32|.b64)"             "d:b32{|p}, a:T, m:u32"                 "6.0" sm_70 Reads;
    Reduce      "redux.sync(.add|.min|.max)(.u32|.s32)" "d:T, a:T, m:u32"                       "7.0" sm_80 Reads;
    ReduceBits  "redux.sync(.and|.or|.xor).b32"         "d:u32, a:u32, m:u32"                   "7.0" sm_80 Reads;
    Elect       "elect.sync"                            "d:b32_|p, m:u32"                       "8.0" sm_90 Reads;
}
