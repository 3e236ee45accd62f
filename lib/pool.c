/* Pools; see pool.h. */
#include "pool.h"

#include <string.h>

#include "check.h"
#include "memory.h"

void *evl_pool_alloc(struct pool *pool) {
    void *block = pool->first;

    assert((block != NULL) == (pool->kept > 0));
    if (block) {
        memcpy(&pool->first, block, sizeof(pool->first));
        pool->kept--;
    } else if (!(block = evl_resize(NULL, pool->size))) {
        return NULL;
    }
    memset(block, 0, pool->size);
    return block;
}

void evl_pool_free(struct pool *pool, void *block) {
    if (EVL_MEMORY_WATCHED || pool->kept == pool->keep) {
        evl_free(block);
        return;
    }
    memcpy(block, &pool->first, sizeof(pool->first));
    pool->first = block;
    pool->kept++;
}

void evl_pool_free_kept(struct pool *pool) {
    void *block;

    while ((block = pool->first)) {
        memcpy(&pool->first, block, sizeof(pool->first));
        evl_free(block);
    }
    pool->kept = 0;
}
