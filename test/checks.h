/*
 * cmocka, as all tests see it; each is compiled with this header first (test/meson.build). What cmocka 2.0 names anew
 * has the new name here with the older versions too, and the old one, which 2.0 warns of, is not to be used.
 */
#ifndef EVLOCK_TEST_CHECKS_H
#define EVLOCK_TEST_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifndef assert_int_in_range
static inline void evlock_check_range(intmax_t value, intmax_t least, intmax_t most, const char *file, int line) {
    if (value < least || value > most) {
        print_error("%jd is not within %jd to %jd\n", value, least, most);
        _fail(file, line);
    }
}
#define assert_int_in_range(value, least, most) evlock_check_range(value, least, most, __FILE__, __LINE__)
#endif

/* The head of a test that needs nothing of what its set-up has made. */
#define CASE(name) static void name(__attribute__((unused)) void **state)

#undef stop /* 2.0 takes this word for a macro */

#undef assert_in_range
#pragma GCC poison assert_in_range

#endif
