// Sorting: bitonic sort of keys with values in shared memory, and one stable pass of a radix sort (4 bits) over one block.
extern "C" __global__ void __launch_bounds__(256) bitonic(const float* __restrict__ in, float* __restrict__ keys, int* __restrict__ from) {
    __shared__ float k[512]; __shared__ int v[512];
    int t = threadIdx.x;
    for (int i = t; i < 512; i += 256) { k[i] = in[blockIdx.x * 512 + i]; v[i] = i; }
    #pragma unroll 1
    for (int size = 2; size <= 512; size *= 2)
        #pragma unroll 1
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (stride - 1)), j = i + stride;
            bool up = (i & size) == 0;
            if ((k[i] > k[j]) == up) { float a = k[i]; k[i] = k[j]; k[j] = a; int b = v[i]; v[i] = v[j]; v[j] = b; }
        }
    __syncthreads();
    for (int i = t; i < 512; i += 256) { keys[blockIdx.x * 512 + i] = k[i]; from[blockIdx.x * 512 + i] = v[i]; }
}
extern "C" __global__ void __launch_bounds__(256) radix_pass(const unsigned* __restrict__ in, unsigned* __restrict__ out, int shift) {
    __shared__ unsigned counts[16][8];
    int t = threadIdx.x, lane = t & 31, w = t >> 5;
    unsigned key = in[t], digit = key >> shift & 15, peers = ~0u;
    #pragma unroll
    for (int bit = 0; bit < 4; ++bit) { unsigned vote = __ballot_sync(~0u, digit >> bit & 1); peers &= digit >> bit & 1 ? vote : ~vote; }
    if (t < 128) (&counts[0][0])[t] = 0;
    __syncthreads();
    unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (rank == 0) counts[digit][w] = __popc(peers);
    __syncthreads();
    if (w == 0) {
        uint4 c = ((uint4*)counts)[lane];
        c.y += c.x; c.z += c.y; c.w += c.z;
        unsigned total = c.w, sum = total;
        #pragma unroll
        for (int d = 1; d < 32; d *= 2) { unsigned o = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += o; }
        sum -= total;
        ((uint4*)counts)[lane] = make_uint4(sum, sum + c.x, sum + c.y, sum + c.z);
    }
    __syncthreads();
    out[counts[digit][w] + rank] = key;
}
