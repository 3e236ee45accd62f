/*
 * The client: the nodes of one deployment (client.c), the one timer that everything shares and the one place from which
 * users are called (deliver.c), and the ways in which it ends (ending.c). It owns the nodes, the alarms, and the lists
 * of what lives on it; handles are the user's. It never decides anything about a lock.
 *
 * Whatever the loop starts (a socket, the timer, a resolution) is bracketed by evl_client_enter() and
 * evl_client_leave(). Between them state changes and callbacks are only noted; leave then delivers them.
 */
#ifndef EVL_CLIENT_H
#define EVL_CLIENT_H

#include <evlock/evlock.h>

#include "call.h"
#include "config.h"
#include "node.h"
#include "pool.h"
#include "tenure.h"
#include "token.h"

/* Which owner an alarm has. */
enum alarm_kind { ALARM_NODE, ALARM_TENURE, ALARM_CALL, ALARM_CLOSE };

enum client_state { CLIENT_OPEN, CLIENT_CLOSING, CLIENT_FREED };

LIST_HEAD(configs, config);
STAILQ_HEAD(handles, evlock);

struct evlock_client {
    evlock_loop loop;
    void *timer;
    int64_t armed;              /* what the timer is set to */
    int64_t now;                /* the clock when the loop last called in */
    int64_t looked;             /* the clock when it was last looked at what is due */
    int64_t turns[2];           /* and when the timer rang last, and the time before */
    int64_t read;               /* what had come by then has been read */
    int64_t heard;              /* the same, for what was under way when the loop stood still: not before `recovery` */
    int64_t patient;            /* more will have been heard then, and not before */
    int64_t stood;              /* when it was seen that the loop had stood still; */
    int64_t recovery;           /* until then nothing more counts as heard */
    struct alarms alarms;
    struct node *nodes;
    struct node *links;         /* second connections to the nodes, for what holds up those behind it; or NULL */
    unsigned node_count;
    struct client_config config;
    struct configs configs;     /* of its handles */
    struct config *last_config; /* of the newest handle: the next one often wants the same */
    struct handles noticed;     /* those with a loss or a risk to be told; each has one more reference */
    struct tenures tenures;     /* of handles: acquiring, held, releasing */
    struct tenures ghosts;      /* nobody's: being undone */
    struct calls pending;       /* calls, oldest first */
    struct calls done;          /* to be told, in order */
    struct pool calls;          /* the memory of calls */
    struct pool leases;         /* the memory of tenures */
    struct alarm close_alarm;
    int64_t close_by;           /* the end of what it waits for */
    evlock_closed_cb closed;
    void *closed_arg;
    uint64_t random;
    uint64_t phase;             /* of its renewals: another than those of clients that share the clock */
    struct queue *queue;        /* see queue.h; NULL: nobody has waited in one yet */
    struct evlock_stats stats;
    struct fence_seen *fences;  /* see fences.c */
    uint32_t fork;
    int told_connection;        /* the last enum evlock_connection that was told */
    bool news;                  /* a node changed since */
    enum client_state state;
    unsigned depth;             /* of enter and leave */
    bool gathering;             /* what may be sent together waits for the others */
    bool late;                  /* the close took too long */
    int64_t left_until;         /* until then something may be there that was left to its ttl */
    struct entropy entropy;     /* for tokens */
};

int64_t evl_client_now(const struct evlock_client *client);
uint64_t evl_client_random(struct evlock_client *client);

/* Whether calls may be made: EVLOCK_OK, EVLOCK_ECLOSED or EVLOCK_EFORKED. */
int evl_client_check(const struct evlock_client *client);
bool evl_client_forked(const struct evlock_client *client);

/* Whether its loop knows how to leave alone in a forked child what is the parent's. */
bool evl_client_loop_forks(const struct evlock_client *client);

/* Brackets of what the loop starts. enter is false in a forked child, which must do nothing. */
bool evl_client_enter(struct evlock_client *client);
void evl_client_leave(struct evlock_client *client);

/* After a user's call: what it left to be told or woken is seen to on a later turn of the loop. */
void evl_client_rearm(struct evlock_client *client);

/* From the node: some more are to be told that it is back, is that all?; its state changed. */
bool evl_client_tell_back(struct evlock_client *client, struct node *node, int64_t now);
void evl_client_node_changed(struct evlock_client *client);

/* Of two nodes that are one server, the later is kept away. */
void evl_client_refuse_twins(struct evlock_client *client, struct node *node);

/* Makes the second connections; EVLOCK_OK or EVLOCK_ENOMEM. */
int evl_client_link(struct evlock_client *client);

/* What all nodes together are doing; `*ret_trouble` is set to one that is away, if any is. */
enum evlock_connection evl_client_connection(const struct evlock_client *client, const struct node **ret_trouble);

/* fences.c: notes a fence that was drawn for a lock; false: it is not greater than one that this client has seen. */
bool evl_client_note_fence(struct evlock_client *client, struct bytes key, int64_t fence);

/* deliver.c: an alarm rang, which would give up what was begun at `begun`, because no answer came by `limit`. True: not
 * all that had come by then was read yet, so the alarm rings again. */
bool evl_client_puts_off(struct evlock_client *client, struct alarm *alarm, int64_t begun, int64_t limit);

/* deliver.c: what the client's timer calls. */
void evl_client_on_timer(void *arg);

/* ending.c: whether there is nothing left to wait for before the client goes; its close took too long; nothing is sent
 * from here on; its memory goes, and a close is told. */
bool evl_client_is_over(const struct evlock_client *client);
void evl_client_close_ring(struct evlock_client *client);
void evl_client_tear_down(struct evlock_client *client, bool forked);
void evl_client_destroy(struct evlock_client *client);

#endif
