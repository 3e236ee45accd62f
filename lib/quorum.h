/* What a majority of nodes comes to; one node is a majority of one. Pure arithmetic: it knows no node. */
#ifndef EVL_QUORUM_H
#define EVL_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

static inline unsigned evl_quorum(unsigned nodes) {
    return nodes / 2U + 1;
}

static inline bool evl_quorum_reached(unsigned nodes, unsigned yes) {
    return yes >= evl_quorum(nodes);
}

/* Without so many of them, the others are none. */
static inline bool evl_quorum_missed(unsigned nodes, unsigned no) {
    return nodes - no < evl_quorum(nodes);
}

/* The quorum-th greatest of the nodes' numbers, which are sorted for it: a majority has this much or more. */
static inline int64_t evl_quorum_number(int64_t *numbers, unsigned nodes) {
    for (unsigned i = 1; i < nodes; i++) {
        int64_t number = numbers[i];
        unsigned at = i;
        for (; at > 0 && numbers[at - 1] < number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
    return numbers[evl_quorum(nodes) - 1];
}

#endif
