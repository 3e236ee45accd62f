/* Chance: numbers of which each follows from the one before, and the first from a seed (splitmix64). */
#ifndef EVLOCK_WORLD_CHANCE_H
#define EVLOCK_WORLD_CHANCE_H

#include <stdint.h>

static inline uint64_t chance_next(uint64_t *chance) {
    uint64_t mixed = *chance += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

#endif
