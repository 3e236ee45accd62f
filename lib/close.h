/*
 * The two ways in which a client ends: the close, which gives back what is held and waits for that, and the free, which
 * does not wait. Both leave the handles to their users, without a client. In a forked child only memory goes. It owns
 * nothing, and never calls a user itself.
 */
#ifndef EVL_CLOSE_H
#define EVL_CLOSE_H

#include "client.h"

/* Whether there is nothing left to wait for before the client goes. */
bool evl_close_is_over(const struct evlock_client *client);

/* The last body has ended, and what is left is waited for from the next turn on. */
bool evl_close_moves_on(const struct evlock_client *client);

/* The bodies, or the close, took too long: its alarm rang. */
void evl_close_ring(struct other_alarm *other, int64_t now);

/* Hook of the turn: its brackets have been left; true: the client is gone by that. */
bool evl_close_left(struct turn *turn);

#endif
