// Random numbers as a function of (key, position), so that a run can stop, resume or be split anywhere.
#pragma once

#include <cstdint>

namespace robustmdp {

// 64 random bits at `position` of the stream `key`. SplitMix64: a bijective scramble of key + position * golden ratio.
inline uint64_t random_bits(uint64_t key, uint64_t position) {
    uint64_t z = key + position * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// The number in [0, 1) of their upper 53 bits.
inline double unit_interval(uint64_t bits) { return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53; }

inline double uniform(uint64_t key, uint64_t position) { return unit_interval(random_bits(key, position)); }

}  // namespace robustmdp
