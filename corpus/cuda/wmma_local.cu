// A WMMA fragment that is loaded from a thread's own array. wmma.load needs global or shared memory: nvcc knows that this is local and writes a trap.
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_local(const half* __restrict__ x, float* __restrict__ y) {
    half own[256];
    for (int i = 0; i < 256; ++i) own[i] = x[i];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.f);
    wmma::load_matrix_sync(a, own, 16);
    wmma::load_matrix_sync(b, x, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);
}
