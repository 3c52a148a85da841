// Several numbers at a time: four doubles in one AVX2 register, or in two SSE2 or NEON ones.
//
// Every formula of the core is a template over T, which is `double` (one row) or `Lanes` (four rows side by side). The
// operations and their order are the same for both, and no product is fused with a sum: a row has the same bits in any
// lane, alone, and on any CPU. exp and log are our own for the same reason.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace robustmdp {

constexpr int WIDTH = 4;
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double EPS = std::numeric_limits<double>::epsilon();

typedef double Lanes __attribute__((vector_size(32)));
typedef int64_t LaneBits __attribute__((vector_size(32)));  // as a mask: all bits set where true

template <class T> struct LaneTraits;
template <> struct LaneTraits<double> {
    using Mask = bool;
    using Bits = int64_t;
};
template <> struct LaneTraits<Lanes> {
    using Mask = LaneBits;
    using Bits = LaneBits;
};
template <class T> using Mask = typename LaneTraits<T>::Mask;
template <class T> using Bits = typename LaneTraits<T>::Bits;

template <class T> constexpr int lane_count = sizeof(T) / sizeof(double);

template <class T> inline T broadcast(double value);
template <> inline double broadcast<double>(double value) { return value; }
template <> inline Lanes broadcast<Lanes>(double value) { return Lanes{value, value, value, value}; }

template <class T> inline T load(const double* from);
template <> inline double load<double>(const double* from) { return *from; }
template <> inline Lanes load<Lanes>(const double* from) { return *reinterpret_cast<const Lanes*>(from); }

inline void store(double* to, double value) { *to = value; }
inline void store(double* to, Lanes value) { *reinterpret_cast<Lanes*>(to) = value; }

inline double lane(double value, int) { return value; }
inline double lane(Lanes value, int l) { return value[l]; }
inline void set_lane(double& to, int, double value) { to = value; }
inline void set_lane(Lanes& to, int l, double value) { to[l] = value; }

inline bool any(bool mask) { return mask; }
inline bool any(LaneBits mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }
inline bool all(bool mask) { return mask; }
inline bool all(LaneBits mask) { return (mask[0] & mask[1] & mask[2] & mask[3]) != 0; }
inline bool negate(bool mask) { return !mask; }
inline LaneBits negate(LaneBits mask) { return ~mask; }

inline double select(bool mask, double yes, double no) { return mask ? yes : no; }
inline Lanes select(LaneBits mask, Lanes yes, Lanes no) { return mask ? yes : no; }

// A NaN on the left gives the right argument.
template <class T> inline T smaller(T a, T b) { return select(a < b, a, b); }
template <class T> inline T larger(T a, T b) { return select(a > b, a, b); }
#ifdef __AVX2__
// One instruction instead of two, with the same answer.
template <> inline Lanes smaller(Lanes a, Lanes b) { return __builtin_ia32_minpd256(a, b); }
template <> inline Lanes larger(Lanes a, Lanes b) { return __builtin_ia32_maxpd256(a, b); }
#endif
template <class T> inline T magnitude(T a) { return select(a < broadcast<T>(0.0), -a, a); }

inline double root(double a) { return __builtin_sqrt(a); }
inline Lanes root(Lanes a) {
    return Lanes{__builtin_sqrt(a[0]), __builtin_sqrt(a[1]), __builtin_sqrt(a[2]), __builtin_sqrt(a[3])};
}

inline int64_t bits_of(double a) { return std::bit_cast<int64_t>(a); }
inline LaneBits bits_of(Lanes a) { return (LaneBits)a; }
inline double number_of(int64_t a) { return std::bit_cast<double>(a); }
inline Lanes number_of(LaneBits a) { return (Lanes)a; }

constexpr double LOG2 = 0.6931471805599453;
constexpr double LOG2_HIGH = 0.6931471803691238;  // 33 bits, so that its multiples by whole numbers are exact
constexpr double LOG2_LOW = 1.9082149292705877e-10;
constexpr double LEAST_EXPONENT = -708.0, LARGEST_EXPONENT = 709.0;  // what exp keeps normal numbers for

// exp(y) = 2^n (1 + rest): y is cut at 709, and below -708 the result is 0.
template <class T> struct Exponential {
    T power, rest;
};

template <class T> inline Exponential<T> reduce_exponential(T y) {
    constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the low bits
    const Mask<T> vanishes = y < broadcast<T>(LEAST_EXPONENT);
    y = smaller(select(vanishes, broadcast<T>(LEAST_EXPONENT), y), broadcast<T>(LARGEST_EXPONENT));
    const T shifted = y * (1.0 / LOG2) + ROUND;
    const T n = shifted - ROUND;
    const T r = (y - n * LOG2_HIGH) - n * LOG2_LOW;
    // Taylor's series in two halves, which do not wait for each other.
    const T s = r * r;
    T even = broadcast<T>(1.0 / 87178291200.0);
    even = even * s + 1.0 / 479001600.0;
    even = even * s + 1.0 / 3628800.0;
    even = even * s + 1.0 / 40320.0;
    even = even * s + 1.0 / 720.0;
    even = even * s + 1.0 / 24.0;
    even = even * s + 0.5;
    T odd = broadcast<T>(1.0 / 6227020800.0);
    odd = odd * s + 1.0 / 39916800.0;
    odd = odd * s + 1.0 / 362880.0;
    odd = odd * s + 1.0 / 5040.0;
    odd = odd * s + 1.0 / 120.0;
    odd = odd * s + 1.0 / 6.0;
    const Bits<T> exponent = (bits_of(shifted) + 1023) << 52;
    return {select(vanishes, broadcast<T>(0.0), number_of(exponent)), r + s * (even + r * odd)};
}

template <class T> inline T exponential(T y) {
    const Exponential<T> e = reduce_exponential(y);
    return e.power + e.power * e.rest;
}

// exp(y) - 1, exact where it is small.
template <class T> inline T exponential_less_one(T y) {
    const Exponential<T> e = reduce_exponential(y);
    return e.power * e.rest + (e.power - 1.0);
}

// log(x) for 0 < x < inf: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f/(2 + f), log(1 + f) = 2 atanh(s).
template <class T> inline T logarithm(T x) {
    constexpr int64_t ROOT_HALF = 0x3fe6a09e667f3bcd;
    constexpr int64_t BIAS = 1024;  // keeps the exponent positive, since there is no signed shift of lanes
    const Mask<T> subnormal = x < broadcast<T>(std::numeric_limits<double>::min());
    x = select(subnormal, x * 0x1p54, x);
    const Bits<T> above = bits_of(x) - ROOT_HALF;
    const Bits<T> n_bits = above & static_cast<int64_t>(0xfff0000000000000);
    const T f = number_of(bits_of(x) - n_bits) - 1.0;
    const Bits<T> biased = ((above + (BIAS << 52)) >> 52) & 0xfff;
    T n = number_of(biased | 0x4330000000000000) - (0x1p52 + BIAS);
    n = select(subnormal, n - 54.0, n);
    const T s = f / (f + 2.0);
    const T z = s * s;
    const T w = z * z;
    T even = broadcast<T>(2.0 / 23.0);
    even = even * w + 2.0 / 19.0;
    even = even * w + 2.0 / 15.0;
    even = even * w + 2.0 / 11.0;
    even = even * w + 2.0 / 7.0;
    even = even * w + 2.0 / 3.0;
    T odd = broadcast<T>(2.0 / 21.0);
    odd = odd * w + 2.0 / 17.0;
    odd = odd * w + 2.0 / 13.0;
    odd = odd * w + 2.0 / 9.0;
    odd = odd * w + 2.0 / 5.0;
    const T tail = z * (even + z * odd);
    const T half = 0.5 * f * f;
    return n * LOG2_HIGH - ((half - (s * (half + tail) + n * LOG2_LOW)) - f);
}

// log(base + s), exact for base = 1 and small s as well.
template <class T> inline T logarithm_of_sum(T base, T s) {
    const T total = base + s;
    return logarithm(total) + (s - (total - base)) / total;
}

}  // namespace robustmdp
