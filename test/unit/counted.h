/*
 * Counted memory: an allocator for evlock_set_allocator() that knows how many blocks live, fails where it is told to,
 * dirties what it gives, and looks for a secret in what it takes back.
 */
#ifndef EVLOCK_TEST_COUNTED_H
#define EVLOCK_TEST_COUNTED_H

#include <stdbool.h>
#include <stddef.h>

/* Makes evlock allocate here, and begins to count anew. `secret` may be NULL. */
void counted_begin(const char *secret);
/* The next `good` allocations succeed, all later ones fail; negative: none fails. */
void counted_fail_after(long good);
/* Blocks given and not taken back. */
long counted_live(void);
/* Whether a block was given back with the secret still in it. */
bool counted_leaked_secret(void);
/* Makes evlock allocate as it does by itself. */
void counted_end(void);
/* The same, as the teardown of a case. */
int counted_teardown(void **state);

#endif
