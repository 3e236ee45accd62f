/*
 * What a server lacks: the words of enum evlock_missing, and one log line for each. It owns nothing, and decides
 * nothing of what is done without: that is known where the command would be sent.
 */
#ifndef EVL_LACKS_H
#define EVL_LACKS_H

#include <stdint.h>

#include <evlock/evlock.h>

#include "connection.h"

/* Adds to a mask that the server of a connection lacks something, and logs what that costs, unless it is in the mask
 * already. `why` may be the server's own words. */
void evl_lacks_note(uint32_t *mask, enum evlock_missing what, const char *why, const struct connection *connection);

#endif
