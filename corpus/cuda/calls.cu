// Functions that stay functions: a table of pointers, recursion, a struct by value, arrays in local memory.
struct Pair { int a, b; long long c; };
typedef int (*Step)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int less(int x) { return x - 7; }
__device__ Step steps[3] = {twice, square, less};
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ Pair fold(Pair p, int x) { p.a += x; p.b ^= x; p.c = p.c * 3 + x; return p; }
extern "C" __global__ void calls_pointer(const int* __restrict__ x, int* __restrict__ y) {
    int v = x[threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < 4; ++i) v = steps[(unsigned)(v + i) % 3](v) & 0xffff;
    y[threadIdx.x] = v;
}
extern "C" __global__ void calls_recursion(const int* __restrict__ x, long long* __restrict__ y) {
    int t = threadIdx.x, seen[16];
    Pair p = {t, 0, 0};
    #pragma unroll 1
    for (int i = 0; i < 16; ++i) seen[i] = x[(t + i) & 31];
    #pragma unroll 1
    for (int i = 1; i < 16; ++i) { int v = seen[i], j = i;
        #pragma unroll 1
        for (; j && seen[j - 1] > v; --j) seen[j] = seen[j - 1]; seen[j] = v;
    }
    #pragma unroll 1
    for (int i = 0; i < 16; i += 3) p = fold(p, seen[(i + t) & 15]);
    y[t] = p.c + p.a * 5 + p.b + ackermann(t & 1, 3 + (t & 7)) + ackermann(2, t & 3);
}
