// Entries of tables and step sizes, for one replication (T = double) or for four side by side (T = Lanes).
#pragma once

#include "../lanes.hpp"

#include <vector>

namespace robustmdp {

#ifdef __AVX2__
constexpr bool HAS_WIDE_REGISTERS = true;
#else
constexpr bool HAS_WIDE_REGISTERS = false;
#endif

// Where each lane reads and writes; replications never share an entry. Four numbers and not an array, which compilers
// would keep in memory.
template <class T> struct Places;
template <> struct Places<double> {
    int64_t only;

    int64_t operator[](int) const { return only; }
};
template <> struct Places<Lanes> {
    int64_t first, second, third, fourth;

    int64_t operator[](int l) const { return l == 0 ? first : l == 1 ? second : l == 2 ? third : fourth; }
};

template <class T, class Function> [[gnu::always_inline]] inline Places<T> places(Function place_in) {
    if constexpr (lane_count<T> == 1)
        return {place_in(0)};
    else
        return {place_in(0), place_in(1), place_in(2), place_in(3)};
}

template <class T, class Function> [[gnu::always_inline]] inline void for_lanes(Function call) {
    if constexpr (lane_count<T> == 1) {
        call(0);
    } else {
        call(0);
        call(1);
        call(2);
        call(3);
    }
}

template <class T, class Function> [[gnu::always_inline]] inline T collect(Function number_in) {
    if constexpr (lane_count<T> == 1)
        return number_in(0);
    else
        return Lanes{number_in(0), number_in(1), number_in(2), number_in(3)};
}

template <class Entry> struct FourEntries {
    typedef Entry Vector __attribute__((vector_size(4 * sizeof(Entry))));
};

inline Lanes to_lanes(Lanes four) { return four; }
inline Lanes to_lanes(FourEntries<float>::Vector four) { return __builtin_convertvector(four, Lanes); }
inline Lanes to_lanes(FourEntries<int32_t>::Vector four) { return __builtin_convertvector(four, Lanes); }
// The processor converts signed numbers only: these are put behind 2^52, which is then subtracted.
inline Lanes to_lanes(FourEntries<uint32_t>::Vector four) {
    return number_of(__builtin_convertvector(four, LaneWords) | 0x4330000000000000) - 0x1p52;
}

template <class T, class Entry> [[gnu::always_inline]] inline T gather(const Entry* table, const Places<T>& from) {
    if constexpr (lane_count<T> == 1)
        return static_cast<double>(table[from[0]]);
    else
        return to_lanes(
            typename FourEntries<Entry>::Vector{table[from[0]], table[from[1]], table[from[2]], table[from[3]]});
}

template <class T, class Entry> [[gnu::always_inline]] inline void scatter(Entry* table, const Places<T>& to, T value) {
    if constexpr (lane_count<T> == 1) {
        table[to[0]] = static_cast<Entry>(value);
    } else {
        const auto four = __builtin_convertvector(value, typename FourEntries<Entry>::Vector);
        for (int l = 0; l < WIDTH; ++l) table[to[l]] = four[l];
    }
}

// Does the mask hold in a lane?
inline bool holds(bool mask, int) { return mask; }
inline bool holds(LaneBits mask, int l) { return mask[l] != 0; }

// A NaN remains one.
template <class T> inline T clip(T value, T low, T high) { return larger(low, smaller(high, value)); }

// Step sizes: min(cap, scale * (offset + growth n)^-power), where n counts from 0.
class Steps {
public:
    double per_weight;  // where positive, the size is multiplied by it and by the pair's weight in normal form

    Steps(double scale, double offset, double growth, double power, double cap, double per_weight)
        : per_weight(per_weight), scale_(scale), offset_(offset), growth_(growth), power_(power), cap_(cap),
          first_(TABULATED) {
        for (uint64_t n = 0; n < TABULATED; n += WIDTH)
            store(first_.data() + n, formula(static_cast<double>(n) + Lanes{0.0, 1.0, 2.0, 3.0}));
    }

    double operator()(uint64_t n) const { return n < TABULATED ? first_[n] : formula(static_cast<double>(n)); }

    // The same for the count of each lane.
    double at(const Places<double>& n) const { return (*this)(static_cast<uint64_t>(n[0])); }
    Lanes at(const Places<Lanes>& n) const {
        if (static_cast<uint64_t>(n[0] | n[1] | n[2] | n[3]) < TABULATED) return gather<Lanes>(first_.data(), n);
        return formula(Lanes{static_cast<double>(n[0]), static_cast<double>(n[1]), static_cast<double>(n[2]),
                             static_cast<double>(n[3])});
    }

    template <class T> T formula(T n) const {
        const T base = offset_ + growth_ * n;
        return smaller(scale_ / raise(base), broadcast<T>(cap_));
    }

    // The size for a dual variable in units of its weight: alpha/weight, discounted where it does not grow with it.
    template <class T> T relative(T size, double discount, T inverse_weight) const {
        return per_weight > 0.0 ? size * per_weight : discount * size * inverse_weight;
    }

    // The same in units of outcomes.
    template <class T> T absolute(T size, double discount, T weight) const {
        return per_weight > 0.0 ? size * per_weight * weight : discount * size;
    }

private:
    static constexpr uint64_t TABULATED = 1 << 16;

    // base^power; the usual powers by square roots
    template <class T> T raise(T base) const {
        if (power_ == 1.0) return base;
        if (power_ == 0.5) return root(base);
        if (power_ == 0.75) return root(base) * root(root(base));
        return power_ == 0.0 ? broadcast<T>(1.0) : exponential(power_ * logarithm(base));
    }

    double scale_, offset_, growth_, power_, cap_;
    std::vector<double> first_;
};

}  // namespace robustmdp
