// Double precision on tensor cores: C[MxN] = A[MxK] B[KxN] with wmma (m8n8k4).
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void dgemm_wmma(const double* __restrict__ A, const double* __restrict__ B, double* __restrict__ C, int N, int K) {
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
    wmma::fill_fragment(c, 0.0);
    #pragma unroll 1
    for (int k = 0; k < K; k += 4) {
        wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> b;
        wmma::load_matrix_sync(a, A + blockIdx.y * 8 * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + blockIdx.x * 8, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + blockIdx.y * 8 * N + blockIdx.x * 8, c, N, wmma::mem_row_major);
}
