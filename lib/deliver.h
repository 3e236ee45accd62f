/*
 * Delivery: the one place from which users are called, at the end of a turn, with nothing half-changed around them.
 * (Log lines alone come from where they arise.) Only here, and at the return of public calls, is the text set that
 * evlock_last_error() gives. It decides nothing about a lock.
 */
#ifndef EVL_DELIVER_H
#define EVL_DELIVER_H

#include "client.h"

/* Hook of the turn: a slice of what was due has rung. What was held back meanwhile is sent. */
void evl_deliver_rung(struct turn *turn, int64_t now);

/* Hook of the turn: it ends. Broken connections are ended, users are called, and what is queued is written. */
void evl_deliver_at_end(struct turn *turn);

/* Whether something waits to be reported. */
bool evl_deliver_has_some(const struct evlock_client *client);

/* The last thing that a user hears of a client, which is gone. */
void evl_deliver_closed(evlock_closed_cb cb, int status, void *arg);

#endif
