// int8 GEMM, C[MxN] s32 = A[MxK] B[NxK]^T: with __dp4a, and with mma.m16n8k32 (sm_80) or mma.m8n8k16 (sm_75) and a saturated requantisation.
#include <cstdint>
#if __CUDA_ARCH__ < 800
extern "C" __global__ void __launch_bounds__(256) dp4a_gemm(const int* __restrict__ A, const int* __restrict__ B, int* __restrict__ C, int M, int N, int K4) {
    __shared__ int as[16][17], bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx, acc = 0;
    #pragma unroll 1
    for (int k = 0; k < K4; k += 16) {
        as[ty][tx] = r < M && k + tx < K4 ? A[r * K4 + k + tx] : 0;
        bs[ty][tx] = blockIdx.x * 16 + ty < N && k + tx < K4 ? B[(blockIdx.x * 16 + ty) * K4 + k + tx] : 0;
        __syncthreads();
        #pragma unroll 4
        for (int i = 0; i < 16; ++i) acc = __dp4a(as[ty][i], bs[tx][i], acc);
        __syncthreads();
    }
    if (r < M && c < N) C[r * N + c] = acc;
}
#endif
extern "C" __global__ void __launch_bounds__(32) imma_gemm(const int8_t* __restrict__ A, const int8_t* __restrict__ B, int* __restrict__ C, int8_t* __restrict__ Q, int N, int K, int shift) {
    int l = threadIdx.x, g = l >> 2, p = l & 3, r = blockIdx.y * 16 + g, c = blockIdx.x * 8;
    int acc[4] = {};
    const int8_t *a = A + r * K + p * 4, *b = B + (c + g) * K + p * 4;
    #pragma unroll 1
    for (int k = 0; k < K; k += 32) {
#if __CUDA_ARCH__ >= 800
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
            : "r"(*(const int*)(a + k)), "r"(*(const int*)(a + 8 * K + k)), "r"(*(const int*)(a + k + 16)), "r"(*(const int*)(a + 8 * K + k + 16)), "r"(*(const int*)(b + k)), "r"(*(const int*)(b + k + 16)));
#else
        #pragma unroll
        for (int h = 0; h < 32; h += 16) {
            asm("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(acc[0]), "+r"(acc[1]) : "r"(*(const int*)(a + k + h)), "r"(*(const int*)(b + k + h)));
            asm("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(acc[2]), "+r"(acc[3]) : "r"(*(const int*)(a + 8 * K + k + h)), "r"(*(const int*)(b + k + h)));
        }
#endif
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int at = (r + (i >> 1) * 8) * N + c + p * 2 + (i & 1);
        C[at] = acc[i];
        Q[at] = (int8_t)max(-128, min(127, acc[i] >> shift));
    }
}
