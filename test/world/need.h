/* Memory, or the end of the program: a test has nothing to do without it. */
#ifndef EVLOCK_WORLD_NEED_H
#define EVLOCK_WORLD_NEED_H

#include <stdlib.h>

static inline void *need(void *memory) {
    if (!memory)
        abort();
    return memory;
}

#endif
