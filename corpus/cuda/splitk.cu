// Split-k GEMM, C[MxN] = A[MxK] B[KxN] in f32, 16x16 tiles: with a second kernel that adds the parts, and with a ticket by which the last block of a tile adds them.
#define T 16
__device__ __forceinline__ float part(const float* __restrict__ A, const float* __restrict__ B, int N, int K, int k0, int k1) {
    __shared__ float as[T][T + 1], bs[T][T + 1];
    int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
    float acc = 0.f;
    #pragma unroll 1
    for (int k = k0; k < k1; k += T) {
        as[threadIdx.y][threadIdx.x] = A[r * K + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * N + c];
        __syncthreads();
        #pragma unroll 4
        for (int i = 0; i < T; ++i) acc = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], acc);
        __syncthreads();
    }
    return acc;
}
extern "C" __global__ void splitk_parts(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ parts, int M, int N, int K) {
    int step = K / gridDim.z, k0 = blockIdx.z * step;
    int at = (blockIdx.y * T + threadIdx.y) * N + blockIdx.x * T + threadIdx.x;
    parts[blockIdx.z * M * N + at] = part(A, B, N, K, k0, k0 + step);
}
extern "C" __global__ void splitk_add(const float* __restrict__ parts, float* __restrict__ C, int count, int splits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.f;
    #pragma unroll 1
    for (int s = 0; s < splits; ++s) sum += parts[s * count + i];
    C[i] = sum;
}
extern "C" __global__ void splitk_ticket(const float* __restrict__ A, const float* __restrict__ B, float* parts, float* __restrict__ C, unsigned* tickets, int M, int N, int K) {
    __shared__ bool last;
    int step = K / gridDim.z, k0 = blockIdx.z * step;
    int at = (blockIdx.y * T + threadIdx.y) * N + blockIdx.x * T + threadIdx.x;
    parts[blockIdx.z * M * N + at] = part(A, B, N, K, k0, k0 + step);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicInc(&tickets[blockIdx.y * gridDim.x + blockIdx.x], gridDim.z - 1) == gridDim.z - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    float sum = 0.f;
    #pragma unroll 1
    for (int s = 0; s < gridDim.z; ++s) sum += __ldcg(&parts[s * M * N + at]);
    C[at] = sum;
}
