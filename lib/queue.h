/*
 * The client's side of the wait queue: the connection that listens for grants, and who waits for which. It owns the
 * connection, the channel's name and the tickets by which a grant finds its tenure; the queue itself is the server's.
 */
#ifndef EVL_QUEUE_H
#define EVL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evlock;
struct evlock_client;
struct queue;
struct tenure;

/* A ticket is text without blanks: its place in the client's table, and random digits that nobody can guess. */
#define TICKET_SIZE 22

/* Begins to listen, at the client's first wait. Without memory or random bytes it does not, and the next wait tries
 * again. */
void evl_queue_open(struct evlock_client *client);

/* The client may ask another server process than before, to which it began to connect at `since`: a connection that has
 * listened for longer may lead to the one before, and is made anew. */
void evl_queue_move(struct evlock_client *client, int64_t since);

/* Whether a grant would be heard now. */
bool evl_queue_listens(const struct evlock_client *client);

/* The channel on which it listens; only once open. */
const char *evl_queue_channel(const struct evlock_client *client);

/* A tenure gets a ticket, with which its grant will find it; EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_ESYSTEM. It gives it
 * back: allowed twice. */
int evl_queue_enter(struct tenure *tenure);
void evl_queue_leave(struct tenure *tenure);

/* From the connection: it listens now; it heard something. */
void evl_queue_ready(struct evlock_client *client);
void evl_queue_heard(struct evlock_client *client, const char *text);

/* As for nodes: ends a broken connection; ends it for good; frees everything. */
void evl_queue_settle(struct evlock_client *client);
void evl_queue_stop(struct evlock_client *client, bool forked);
void evl_queue_free(struct evlock_client *client);

#endif
