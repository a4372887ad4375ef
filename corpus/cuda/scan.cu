// Inclusive scan in one pass: warp shuffles within a block, decoupled look-back with cuda::atomic_ref between blocks.
#include <cuda/atomic>
enum : unsigned long long { PART = 1ull << 32, PREFIX = 2ull << 32 };
extern "C" __global__ void __launch_bounds__(128) scan_lookback(const unsigned* __restrict__ x, unsigned* __restrict__ y, unsigned long long* state, unsigned* next, int n) {
    __shared__ unsigned block, before, sums[4];
    int t = threadIdx.x, lane = t & 31, w = t >> 5;
    if (t == 0) block = atomicAdd(next, 1u);
    __syncthreads();
    int i = block * 128 + t;
    unsigned v = i < n ? x[i] : 0;
    #pragma unroll
    for (int d = 1; d < 32; d *= 2) { unsigned o = __shfl_up_sync(~0u, v, d); if (lane >= d) v += o; }
    if (lane == 31) sums[w] = v;
    __syncthreads();
    #pragma unroll 1
    for (int j = 0; j < w; ++j) v += sums[j];
    if (t == 127) {
        cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> own(state[block]);
        unsigned sum = 0;
        if (block) {
            own.store(PART | v, cuda::memory_order_release);
            for (int b = block - 1; b >= 0;) {
                cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> other(state[b]);
                unsigned long long seen = other.load(cuda::memory_order_acquire);
                if (!(seen >> 32)) continue;
                sum += (unsigned)seen;
                if (seen >= PREFIX) break;
                --b;
            }
        }
        own.store(PREFIX | (sum + v), cuda::memory_order_release);
        before = sum;
    }
    __syncthreads();
    if (i < n) y[i] = v + before;
}
