// Whole-warp integer operations: redux, match, votes, byte permutes, funnel shifts, SIMD-in-a-word.
extern "C" __global__ void warp_ops(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
    unsigned v = x[blockIdx.x * 32 + threadIdx.x], all = ~0u, o = 0;
    int same;
    o ^= __reduce_add_sync(all, v & 0xffff) * 3;
    o ^= __reduce_max_sync(all, (int)v) ^ __reduce_min_sync(all, v);
    o += __reduce_xor_sync(all, v) + __reduce_or_sync(all, v & 0x0f0f0f0f) + __reduce_and_sync(all, v | 0xf0f0f0f0);
    unsigned peers = __match_any_sync(all, v & 3);
    o = o * 31 + peers;
    unsigned odd = __ballot_sync(all, v & 1);
    if (v & 1) o += __reduce_add_sync(odd, 7u) + __popc(__match_all_sync(odd, 5u, &same)) + same;
    __syncwarp();
    o = o * 31 + __match_all_sync(all, (unsigned long long)v, &same) + same;
    o ^= __byte_perm(v, o, 0x6240) + __funnelshift_l(v, o, v & 31) + __funnelshift_rc(v, o, 40);
    o += __vabsdiffu4(v, o) ^ __vadd2(v, o) ^ __vmaxs4(v, o) ^ __vcmpgtu4(v, o);
    o += __brev(v) ^ __clz(v) ^ __ffs(v) ^ __umulhi(v, o) ^ __sad((int)v, (int)o, 3u) ^ __uhadd(v, o);
    y[blockIdx.x * 32 + threadIdx.x] = __shfl_sync(all, o, threadIdx.x * 5 + 1, 16) + __any_sync(all, v == 7) + 2 * __all_sync(all, v != 7);
}
