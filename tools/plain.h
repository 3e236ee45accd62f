/*
 * Bytes of others for people to read: names and holders are whatever somebody wrote, and must not reach a terminal as
 * they are. It owns nothing.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <stddef.h>
#include <stdio.h>

/**
 * Writes bytes as one line can show them: control characters, backslashes and what is no UTF-8 become \xXX. With a
 * `width`, it is cut to so many columns, or filled up to them; 0: it is written whole.
 */
void plain_print(FILE *out, const void *bytes, size_t length, int width);

/** How many columns it takes when it is written whole. */
int plain_width(const void *bytes, size_t length);

#endif
