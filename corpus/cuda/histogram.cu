// Histogram of bytes: one copy of the bins in shared memory per warp, then one global atomic per bin and block.
extern "C" __global__ void __launch_bounds__(128) histogram(const uchar4* __restrict__ x, int n4, unsigned* __restrict__ bins) {
    __shared__ unsigned own[4][256];
    unsigned* mine = own[threadIdx.x >> 5];
    #pragma unroll 1
    for (int i = threadIdx.x; i < 1024; i += 128) own[0][i] = 0;
    __syncthreads();
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        uchar4 v = x[i];
        atomicAdd(mine + v.x, 1u); atomicAdd(mine + v.y, 1u); atomicAdd(mine + v.z, 1u); atomicAdd(mine + v.w, 1u);
    }
    __syncthreads();
    #pragma unroll 1
    for (int b = threadIdx.x; b < 256; b += 128) atomicAdd(bins + b, own[0][b] + own[1][b] + own[2][b] + own[3][b]);
}
