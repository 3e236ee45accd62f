/* SHA-1, by which scripts are called. */
#ifndef EVLOCK_SIM_SHA1_H
#define EVLOCK_SIM_SHA1_H

#include <stddef.h>

/* The digest in 40 hexadecimal digits, ended by a zero. */
void sha1_hex(const char *bytes, size_t len, char hex[41]);

#endif
