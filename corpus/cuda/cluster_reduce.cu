// Softmax of long rows over a cluster of four blocks: each reads a quarter, partial results go to every block's shared memory, the barrier is split.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64) cluster_softmax(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float warp[2]; __shared__ float2 parts[4];
    cg::cluster_group cl = cg::this_cluster();
    unsigned rank = cl.block_rank(); int t = threadIdx.x;
    const float* row = x + (blockIdx.x / 4) * n; float* out = y + (blockIdx.x / 4) * n;
    float m = -INFINITY, s = 0.f;
    auto block = [&](float v, bool top) {
        #pragma unroll
        for (int d = 16; d; d /= 2) { float o = __shfl_xor_sync(~0u, v, d); v = top ? fmaxf(v, o) : v + o; }
        __syncthreads();
        if ((t & 31) == 0) warp[t >> 5] = v;
        __syncthreads();
        return top ? fmaxf(warp[0], warp[1]) : warp[0] + warp[1];
    };
    #pragma unroll 1
    for (int i = rank * 64 + t; i < n; i += 256) m = fmaxf(m, row[i]);
    m = block(m, true);
    #pragma unroll 1
    for (int i = rank * 64 + t; i < n; i += 256) s += expf(row[i] - m);
    s = block(s, false);
    cl.sync();
    if (t < 4) cl.map_shared_rank(parts, t)[rank] = make_float2(m, s);
    cl.barrier_arrive();
    cl.barrier_wait();
    float top = fmaxf(fmaxf(parts[0].x, parts[1].x), fmaxf(parts[2].x, parts[3].x)), sum = 0.f;
    for (int b = 0; b < 4; ++b) sum += parts[b].y * expf(parts[b].x - top);
    #pragma unroll 1
    for (int i = rank * 64 + t; i < n; i += 256) out[i] = expf(row[i] - top) / sum;
}
