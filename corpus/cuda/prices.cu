// Black-Scholes prices in double precision: exp, log, sqrt, division and erfc as the library computes them.
extern "C" __global__ void prices(const double* __restrict__ spot, const double* __restrict__ strike, double* __restrict__ call, int n, double rate, double sigma, double time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double s = 50.0 + fabs(spot[i]), k = 50.0 + fabs(strike[i]), wide = sigma * sqrt(time);
    double d1 = (log(s / k) + (rate + 0.5 * sigma * sigma) * time) / wide, d2 = d1 - wide;
    call[i] = s * 0.5 * erfc(-d1 * 0.7071067811865476) - k * exp(-rate * time) * 0.5 * erfc(-d2 * 0.7071067811865476);
}
