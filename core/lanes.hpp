// Several numbers at a time: four doubles in one AVX2 register, or in two SSE2 or NEON ones.
//
// Every formula of the core is a template over T, which is `double` (one row) or `Lanes` (four rows side by side). The
// operations and their order are the same for both, and a product is fused with a sum only where `fused` says so: a row
// has the same bits in any lane, alone, and on any CPU. exp and log are our own for the same reason.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace robustmdp {

constexpr int WIDTH = 4;
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double EPS = std::numeric_limits<double>::epsilon();

typedef double Lanes __attribute__((vector_size(32)));
typedef double LooseLanes __attribute__((vector_size(32), aligned(8)));  // at any address
typedef int64_t LaneBits __attribute__((vector_size(32)));               // as a mask: all bits set where true
typedef uint64_t LaneWords __attribute__((vector_size(32)));

template <class T> struct LaneTraits;
template <> struct LaneTraits<double> {
    using Mask = bool;
    using Bits = uint64_t;
};
template <> struct LaneTraits<Lanes> {
    using Mask = LaneBits;
    using Bits = LaneWords;
};
template <class T> using Mask = typename LaneTraits<T>::Mask;
template <class T> using Bits = typename LaneTraits<T>::Bits;

template <class T> constexpr int lane_count = sizeof(T) / sizeof(double);

template <class T> inline T broadcast(double value);
template <> inline double broadcast<double>(double value) { return value; }
template <> inline Lanes broadcast<Lanes>(double value) { return Lanes{value, value, value, value}; }

template <class T> inline T load(const double* from);
template <> inline double load<double>(const double* from) { return *from; }
template <> inline Lanes load<Lanes>(const double* from) { return *reinterpret_cast<const LooseLanes*>(from); }

inline void store(double* to, double value) { *to = value; }
inline void store(double* to, Lanes value) { *reinterpret_cast<LooseLanes*>(to) = value; }

inline double lane(double value, int) { return value; }
inline double lane(Lanes value, int l) { return value[l]; }
inline void set_lane(double& to, int, double value) { to = value; }
inline void set_lane(Lanes& to, int l, double value) { to[l] = value; }

inline bool any(bool mask) { return mask; }
inline bool all(bool mask) { return mask; }
inline bool negate(bool mask) { return !mask; }
inline LaneBits negate(LaneBits mask) { return ~mask; }

inline double select(bool mask, double yes, double no) { return mask ? yes : no; }
inline Lanes select(LaneBits mask, Lanes yes, Lanes no) { return mask ? yes : no; }

// A NaN on the left gives the right argument.
template <class T> inline T smaller(T a, T b) { return select(a < b, a, b); }
template <class T> inline T larger(T a, T b) { return select(a > b, a, b); }

inline double sum(Lanes a) { return (a[0] + a[1]) + (a[2] + a[3]); }

inline double root(double a) { return __builtin_sqrt(a); }
// a b + c, rounded once
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

#ifdef __AVX2__
inline bool any(LaneBits mask) { return _mm256_movemask_pd((__m256d)mask) != 0; }
inline bool all(LaneBits mask) { return _mm256_movemask_pd((__m256d)mask) == 15; }
template <> inline Lanes smaller(Lanes a, Lanes b) { return _mm256_min_pd(a, b); }
template <> inline Lanes larger(Lanes a, Lanes b) { return _mm256_max_pd(a, b); }
inline Lanes root(Lanes a) { return _mm256_sqrt_pd(a); }
inline Lanes fused(Lanes a, Lanes b, Lanes c) { return _mm256_fmadd_pd(a, b, c); }

// Four by four numbers, turned: row l becomes lane l.
inline void turn(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
    const Lanes ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
    const Lanes cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
    a = _mm256_permute2f128_pd(ab_even, cd_even, 0x20);
    b = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20);
    c = _mm256_permute2f128_pd(ab_even, cd_even, 0x31);
    d = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31);
}
#else
inline bool any(LaneBits mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }
inline bool all(LaneBits mask) { return (mask[0] & mask[1] & mask[2] & mask[3]) != 0; }
inline Lanes root(Lanes a) { return Lanes{root(a[0]), root(a[1]), root(a[2]), root(a[3])}; }
inline Lanes fused(Lanes a, Lanes b, Lanes c) {
    return Lanes{fused(a[0], b[0], c[0]), fused(a[1], b[1], c[1]), fused(a[2], b[2], c[2]), fused(a[3], b[3], c[3])};
}

inline void turn(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
    const Lanes w = a, x = b, y = c, z = d;
    a = Lanes{w[0], x[0], y[0], z[0]};
    b = Lanes{w[1], x[1], y[1], z[1]};
    c = Lanes{w[2], x[2], y[2], z[2]};
    d = Lanes{w[3], x[3], y[3], z[3]};
}
#endif

inline double magnitude(double a) { return __builtin_fabs(a); }
inline Lanes magnitude(Lanes a) { return (Lanes)((LaneBits)a & INT64_MAX); }

template <class T> inline T fused(T a, double b, T c) { return fused(a, broadcast<T>(b), c); }
template <class T> inline T fused(T a, double b, double c) { return fused(a, broadcast<T>(b), broadcast<T>(c)); }

inline uint64_t bits_of(double a) { return std::bit_cast<uint64_t>(a); }
inline LaneWords bits_of(Lanes a) { return (LaneWords)a; }
inline double number_of(uint64_t a) { return std::bit_cast<double>(a); }
inline Lanes number_of(LaneWords a) { return (Lanes)a; }

constexpr double LOG2 = 0.6931471805599453;
constexpr double LOG2_HIGH = 0.6931471803691238;  // 33 bits, so that its multiples by whole numbers are exact
constexpr double LOG2_LOW = 1.9082149292705877e-10;
constexpr double LEAST_EXPONENT = -708.0, LARGEST_EXPONENT = 709.0;  // what exp keeps normal numbers for

// exp(y) = 2^n (1 + rest): y is cut at 709, and below -708 the result is 0.
template <class T> struct Exponential {
    T power, rest;
};

template <class T> [[gnu::always_inline]] inline Exponential<T> reduce_exponential(T y) {
    constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the low bits
    const Mask<T> vanishes = y < broadcast<T>(LEAST_EXPONENT);
    y = larger(smaller(y, broadcast<T>(LARGEST_EXPONENT)), broadcast<T>(LEAST_EXPONENT));
    const T shifted = fused(y, 1.0 / LOG2, ROUND);
    const T n = shifted - ROUND;
    const T r = fused(n, -LOG2_LOW, fused(n, -LOG2_HIGH, y));
    // (exp(r) - 1 - r)/r^2 = a + r^4 (b + r^4 c) for |r| <= log(2)/2, to 1e-16; short chains, which run side by side.
    const T s = r * r;
    const T w = s * s;
    const T a = fused(s, fused(r, 0.008333333333330062, 0.04166666666662413), fused(r, 1.0 / 6.0, 0.5));
    const T b = fused(s, fused(r, 2.7557268459997064e-06, 2.4801521295954376e-05),
                      fused(r, 0.00019841269863053618, 0.0013888888917213717));
    const T c = fused(r, 2.510038549551032e-08, 2.7620088445409746e-07);
    const Bits<T> exponent = (bits_of(shifted) + 1023U) << 52;
    return {select(vanishes, broadcast<T>(0.0), number_of(exponent)), fused(s, fused(w, fused(w, c, b), a), r)};
}

template <class T> [[gnu::always_inline]] inline T exponential(T y) {
    const Exponential<T> e = reduce_exponential(y);
    return fused(e.power, e.rest, e.power);
}

// exp(y) - 1, exact where it is small.
template <class T> [[gnu::always_inline]] inline T exponential_less_one(T y) {
    const Exponential<T> e = reduce_exponential(y);
    return fused(e.power, e.rest, e.power - 1.0);
}

// log(x) for 0 < x < inf: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f/(2 + f), log(1 + f) = 2 atanh(s).
template <class T> [[gnu::always_inline]] inline T logarithm(T x) {
    constexpr uint64_t ROOT_HALF = 0x3fe6a09e667f3bcd;
    constexpr uint64_t BIAS = 1024;  // keeps the exponent positive
    const Mask<T> subnormal = x < broadcast<T>(std::numeric_limits<double>::min());
    x = select(subnormal, x * 0x1p54, x);
    const Bits<T> above = bits_of(x) - ROOT_HALF;
    const Bits<T> n_bits = above & 0xfff0000000000000;
    const T f = number_of(bits_of(x) - n_bits) - 1.0;
    const Bits<T> biased = ((above + (BIAS << 52)) >> 52) & 0xfffU;
    T n = number_of(biased | 0x4330000000000000) - (0x1p52 + BIAS);
    n = select(subnormal, n - 54.0, n);
    const T s = f / (f + 2.0);
    const T z = s * s;
    const T w = z * z;
    // (2 atanh(s)/s - 2)/s^2 to 3e-16 of it
    const T low = fused(w, fused(z, 0.22222211089379496, 0.28571428626253836), fused(z, 0.3999999999989889, 2.0 / 3.0));
    const T high = fused(w, broadcast<T>(0.14617807153417325), fused(z, 0.15331611722055008, 0.1818289243253687));
    const T tail = z * fused(w * w, high, low);
    const T half = 0.5 * f * f;
    return fused(n, LOG2_HIGH, f - (half - fused(n, LOG2_LOW, s * (half + tail))));
}

// log(base + s), exact for base = 1 and small s as well.
template <class T> [[gnu::always_inline]] inline T logarithm_of_sum(T base, T s) {
    const T total = base + s;
    return logarithm(total) + (s - (total - base)) / total;
}

constexpr double LARGEST_RATE = 0.0625;

// log(1 + m) for |m| <= LARGEST_RATE to 1e-13 of m: no division, and a short chain.
template <class T> [[gnu::always_inline]] inline T small_logarithm(T m) {
    const T s = m * m;
    const T low = fused(s, fused(m, -1.0 / 6.0, 1.0 / 5.0), fused(m, -1.0 / 4.0, 1.0 / 3.0));
    const T high = fused(s, fused(m, -1.0 / 10.0, 1.0 / 9.0), fused(m, -1.0 / 8.0, 1.0 / 7.0));
    return fused(s, fused(m, fused(s * s, high, low), broadcast<T>(-0.5)), m);
}

}  // namespace robustmdp
