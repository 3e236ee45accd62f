/* The client's side of the wait queue; see queue.h. */
#include "queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "lease.h"
#include "lock.h"
#include "memory.h"
#include "status.h"
#include "token.h"

#define CHANNEL_PREFIX "evlock:"

/* A place in the table: a tenure's, or free and in a list of such. */
struct place {
    struct tenure *tenure;
    uint32_t next_free;
};

struct queue {
    struct node ears;
    struct place *places;
    uint32_t size;
    uint32_t first_free; /* `size`: none is */
    char channel[sizeof(CHANNEL_PREFIX) + EVL_TOKEN_TEXT];
};

void evl_queue_open(struct evlock_client *client) {
    struct queue *queue;
    struct url url;

    if (client->queue || !(queue = evl_alloc(sizeof(*queue))))
        return;
    memcpy(queue->channel, CHANNEL_PREFIX, sizeof(CHANNEL_PREFIX) - 1);
    if (!evl_token_generate(&client->entropy, queue->channel + sizeof(CHANNEL_PREFIX) - 1) ||
        evl_url_copy(&url, &client->nodes[0].url) != EVLOCK_OK) {
        evl_free(queue);
        return;
    }
    evl_node_init(&queue->ears, client, 0, &url);
    queue->ears.link = queue->ears.ears = true;
    client->queue = queue;
    evl_node_start(&queue->ears);
}

void evl_queue_move(struct evlock_client *client, int64_t since) {
    struct node *ears = client->queue ? &client->queue->ears : NULL;

    if (ears && ears->state == NODE_READY && ears->ready_at < since)
        evl_node_break(ears, EVLOCK_EUNREACHABLE, "another server is asked now");
}

bool evl_queue_listens(const struct evlock_client *client) {
    return client->queue && client->queue->ears.state == NODE_READY && !client->queue->ears.broken;
}

const char *evl_queue_channel(const struct evlock_client *client) {
    return client->queue->channel;
}

/* --- Tickets ------------------------------------------------------------------------------------------------------ */

static bool grow(struct queue *queue) {
    uint32_t size = queue->size ? 2 * queue->size : 16;
    struct place *places = evl_alloc(size * sizeof(*places));

    if (!places)
        return false;
    if (queue->size)
        memcpy(places, queue->places, queue->size * sizeof(*places));
    for (uint32_t i = queue->size; i < size; i++)
        places[i].next_free = i + 1;
    evl_free(queue->places);
    queue->places = places;
    queue->size = size;
    return true;
}

int evl_queue_enter(struct tenure *tenure) {
    struct evlock_client *client = client_of(tenure->lock);
    struct queue *queue = client->queue;
    char random[EVL_TOKEN_TEXT];
    uint32_t at;

    if (!evl_token_generate(&client->entropy, random))
        return evl_fail(EVLOCK_ESYSTEM, "the system refuses random bytes for a ticket");
    if (queue->first_free == queue->size && !grow(queue))
        return evl_fail(EVLOCK_ENOMEM, "no memory for a place in the queue");
    at = queue->first_free;
    queue->first_free = queue->places[at].next_free;
    queue->places[at].tenure = tenure;
    snprintf(ticket_text(tenure), TICKET_SIZE, "%" PRIx32 "-%.12s", at, random + EVL_TOKEN_TEXT - 12);
    return EVLOCK_OK;
}

/* Who has the ticket with which `text` begins, or NULL. */
static struct tenure *holder_of(const struct queue *queue, const char *text) {
    unsigned long at = strtoul(text, NULL, 16);
    struct tenure *tenure = at < queue->size ? queue->places[at].tenure : NULL;
    size_t len = tenure ? strlen(ticket_text(tenure)) : 0;

    return tenure && strncmp(text, ticket_text(tenure), len) == 0 ? tenure : NULL;
}

void evl_queue_leave(struct tenure *tenure) {
    struct queue *queue = client_of(tenure->lock)->queue;
    uint32_t at = (uint32_t)strtoul(ticket_text(tenure), NULL, 16);

    if (queue->places[at].tenure != tenure)
        return;
    queue->places[at].tenure = NULL;
    queue->places[at].next_free = queue->first_free;
    queue->first_free = at;
}

/* --- From the connection ------------------------------------------------------------------------------------------ */

/* What was granted meanwhile was not heard, and who was not listening may have been passed over. */
void evl_queue_ready(struct evlock_client *client) {
    struct call *call;

    TAILQ_FOREACH (call, &client->pending, link)
        if (call->kind == CALL_ACQUIRE)
            evl_acquire_wake(call);
}

/* What stands behind the ticket; false: no clock shows such a time, or no counter such a fence. */
static bool read_grant(const char *text, int64_t *ret_time, int64_t *ret_fence) {
    char *end;

    *ret_time = strtoll(text, &end, 10);
    *ret_fence = strtoll(end, &end, 10);
    return !*end && *ret_time > 0 && *ret_time < LEASE_NEVER / 4 && *ret_fence >= 0;
}

/* "TICKET TIME FENCE": a grant, and the server's clock in microseconds at that. One that finds nobody is of an attempt
 * that was given up, and is undone by that. */
void evl_queue_heard(struct evlock_client *client, const char *text) {
    struct tenure *tenure = holder_of(client->queue, text);
    int64_t time, fence;

    if (tenure && read_grant(text + strlen(ticket_text(tenure)), &time, &fence))
        evl_acquire_granted(tenure->lock, time, fence);
}

/* --- Its end ------------------------------------------------------------------------------------------------------ */

void evl_queue_settle(struct evlock_client *client) {
    if (client->queue)
        evl_node_settle(&client->queue->ears);
}

void evl_queue_stop(struct evlock_client *client, bool forked) {
    if (client->queue)
        evl_node_stop(&client->queue->ears, forked);
}

void evl_queue_free(struct evlock_client *client) {
    if (client->queue)
        evl_free(client->queue->places);
    evl_free(client->queue);
}
