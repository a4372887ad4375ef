// Top-k of rows by repeated maxima of packed keys (value, then lowest index).
__device__ __forceinline__ unsigned long long key(float v, unsigned i) { unsigned b = __float_as_uint(v); b ^= b >> 31 ? ~0u : 1u << 31; return (unsigned long long)b << 32 | ~i; }
__device__ __forceinline__ unsigned long long block_max(unsigned long long k) {
    __shared__ unsigned long long part[4];
    #pragma unroll
    for (int d = 16; d; d /= 2) { unsigned long long o = __shfl_down_sync(~0u, k, d); k = o > k ? o : k; }
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = k;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 4; ++i) k = part[i] > k || i == 0 ? part[i] : k;
    return k;
}
extern "C" __global__ void __launch_bounds__(128) top_k(const float* __restrict__ x, float* __restrict__ values, int* __restrict__ places, int n, int k) {
    unsigned long long bound = ~0ull;
    #pragma unroll 1
    for (int j = 0; j < k; ++j) {
        unsigned long long best = 0;
        #pragma unroll 1
        for (int i = threadIdx.x; i < n; i += 128) { unsigned long long o = key(x[blockIdx.x * n + i], i); if (o < bound && o > best) best = o; }
        bound = block_max(best);
        if (threadIdx.x == 0) { int i = ~(unsigned)bound; places[blockIdx.x * k + j] = i; values[blockIdx.x * k + j] = x[blockIdx.x * n + i]; }
    }
}
