// Prices of options in double precision, the normal distribution replaced by a logistic one: exp, log, sqrt and division as the library computes them.
__device__ __forceinline__ double share(double d) { return 1.0 / (1.0 + exp(-1.702 * d)); }
extern "C" __global__ void prices(const double* __restrict__ spot, const double* __restrict__ strike, double* __restrict__ call, int n, double rate, double sigma, double time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double s = 50.0 + fabs(spot[i]), k = 50.0 + fabs(strike[i]), wide = sigma * sqrt(time);
    double d = (log(s / k) + (rate + 0.5 * sigma * sigma) * time) / wide;
    #pragma unroll 1
    for (int j = 0; j < 2; ++j) { s = j ? s - k * exp(-rate * time) * share(d) : s * share(d); d -= wide; }
    call[i] = s;
}
