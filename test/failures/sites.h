/*
 * Sites: the places in this very program that call certain functions, as its machine code has them, so that a test can
 * show that it missed none. It owns nothing and runs objdump and addr2line, of binutils.
 */
#ifndef EVLOCK_TEST_SITES_H
#define EVLOCK_TEST_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the calls of `functions`, up to a NULL, return to, as addresses in the program's file; at most `size`. Returns
 * how many there are; 0 when they cannot be found out. */
size_t sites_of(const char *const *functions, uintptr_t *sites, size_t size);

/* The source's "file:line" of a call that returns there, or "?". */
void sites_name(uintptr_t site, char *name, size_t size);

#endif
