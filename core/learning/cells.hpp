// Entries of tables, for one replication (T = double) or for four side by side (T = Lanes).
#pragma once

#include "../lanes.hpp"

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

// Entries one after the other, one per lane.
template <class T> [[gnu::always_inline]] inline T load_entries(const double* from) {
    if constexpr (lane_count<T> == 1)
        return *from;
    else
        return load_loose(from);
}

inline void store_entries(double* to, double value) { *to = value; }
inline void store_entries(double* to, Lanes value) { store_loose(to, value); }

// Does the mask hold in a lane?
inline bool holds(bool mask, int) { return mask; }
inline bool holds(LaneBits mask, int l) { return mask[l] != 0; }

// A NaN remains one.
template <class T> inline T clip(T value, T low, T high) { return larger(low, smaller(high, value)); }

}  // namespace robustmdp
