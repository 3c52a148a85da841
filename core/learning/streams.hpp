// Random numbers as a function of (key, position), so that a run can stop, resume or be split anywhere.
#pragma once

#include <cstdint>

namespace robustmdp {

// The number at `position` of the stream `key`, in [0, 1) with 53 bits. SplitMix64: a bijective scramble of
// key + position * golden ratio.
inline double uniform(uint64_t key, uint64_t position) {
    uint64_t z = key + position * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z = z ^ (z >> 31);
    return static_cast<double>(static_cast<int64_t>(z >> 11)) * 0x1p-53;
}

}  // namespace robustmdp
