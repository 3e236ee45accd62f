/* The password: from a file, a descriptor or the environment, and never from an argument. It owns the copy in memory.
 */
#ifndef PASSWORD_H
#define PASSWORD_H

#include "options.h"

/** Where the library finds the password; at most one is not NULL. */
struct password {
    const char *file;
    const char *text;
};

/**
 * Finds it. What the options say comes before EVLOCK_PASSWORD_FILE and EVLOCK_PASSWORD. A descriptor is read to its
 * first newline and closed. Returns 0, or the exit status of an error that was said.
 */
int password_find(const struct options *options, struct password *ret_password);

/** Wipes what was read from a descriptor: the library has its own copy. */
void password_wipe(void);

#endif
