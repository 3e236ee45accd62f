/*
 * A listener: a connection that hears what is published on one channel, and is sent nothing else. It owns its login.
 * What it hears means nothing here.
 */
#ifndef EVL_LISTENER_H
#define EVL_LISTENER_H

#include "node.h"

struct listener;

/* Of a channel's name, with its NUL. */
#define CHANNEL_SIZE 64

/* What the owner of a listener does with it. */
struct listener_hooks {
    /* It listens from now on. What was published before was not heard. */
    void (*listens)(struct listener *listener);
    /* A message, which is valid during the call. */
    void (*heard)(struct listener *listener, const char *message);
};

struct listener {
    struct login login;
    const struct listener_hooks *hooks;
    char channel[CHANNEL_SIZE];
    uint32_t missing; /* EVLOCK_MISSING_CHANNELS: the last try was refused for good */
};

/* Sets up a listener to a node, of zeroed memory. Nothing begins before evl_connection_start(). */
void evl_listener_init(struct listener *listener, struct connections *all, struct node *node, const char *channel,
                       const struct listener_hooks *hooks);

/* The number of its node. */
static inline unsigned evl_listener_index(const struct listener *listener) {
    return listener->login.connection.index;
}

/* Since when it listens, or has last done so. */
static inline int64_t evl_listener_since(const struct listener *listener) {
    return listener->login.connection.ready_at;
}

/* Ends it: its memory may go by that. */
void evl_listener_end(struct listener *listener, struct connections *all);

/* Whether a message would be heard now. */
bool evl_listener_hears(const struct listener *listener);

/* Its node may be another server process than before, to which the connecting began at `since`: a listener that has
 * listened for longer may be connected to the one before, and connects anew. */
void evl_listener_follow(struct listener *listener, int64_t since);

#endif
