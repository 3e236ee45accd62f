/* Listings; see list.h. */
#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect.h"
#include "memory.h"
#include "quorum.h"

#define PREFIX_MAX_LEN 512

static void list_free(struct call *call) {
    evl_free(call->list.sought);
    evl_free(call->list.names);
}

static const struct call_sort sort_list = {.kind = CALL_LIST, .free = list_free};

/* --- Pages -------------------------------------------------------------------------------------------------------- */

/* Takes " LEN KEY" from the front of an answer; false: it does not begin with that. The bytes behind it are a NUL or
 * the next one's blank. */
static bool list_take_key(struct bytes *answer, struct bytes *ret) {
    const char *text = answer->data, *end = text + answer->len;
    char *key;
    unsigned long long len;

    if (answer->len == 0 || text[0] != ' ' || text[1] < '0' || text[1] > '9')
        return false;
    len = strtoull(text + 1, &key, 10);
    if (*key++ != ' ' || len > (size_t)(end - key))
        return false;
    *ret = (struct bytes){key, (size_t)len};
    *answer = (struct bytes){key + len, (size_t)(end - key) - (size_t)len};
    return true;
}

/* How many keys an answer has; false: it is none. */
static bool list_count(struct bytes answer, size_t *ret) {
    struct bytes key;

    for (*ret = 0; answer.len > 0; (*ret)++)
        if (!list_take_key(&answer, &key))
            return false;
    return true;
}

/* The names of locks among the keys of an answer, in a block with their bytes. False: out of memory. */
static bool list_keep(struct call *call, struct bytes answer, size_t count) {
    evlock_string *names = evl_alloc(count * sizeof(*names) + answer.len + 1);
    char *text = (char *)(names + count);
    struct bytes key;
    size_t kept = 0;

    if (!names)
        return false;
    while (list_take_key(&answer, &key)) {
        if (evl_wire_is_own(key))
            continue;
        memcpy(text, key.data, key.len);
        names[kept++] = (evlock_string){text, key.len};
        text += key.len + 1;
    }
    call->list.names = names;
    call->list.page.names = names;
    call->list.page.count = kept;
    return true;
}

static unsigned list_count_nodes(const struct call *call) {
    return evl_deployment_count(call->lock->config->deployment);
}

/* The end of a step; where its node has no more, the next one follows. */
static void list_end_page(struct call *call, uint64_t position) {
    evlock_cursor *next = &call->list.page.next;

    next->position = position;
    if (!position)
        next->node++;
    call->list.page.more = next->node < list_count_nodes(call);
    evl_call_end(call, EVLOCK_OK, "");
}

/* Its node is of no use. */
static void list_miss(struct call *call, int status, const char *words) {
    evlock_cursor *next = &call->list.page.next;

    if (call->count == 1)
        evl_call_end(call, status, words);
    else if (evl_quorum_missed(call->count, ++next->missed))
        evl_call_end(call, EVLOCK_EQUORUM, words);
    else
        list_end_page(call, 0);
}

/* --- On the wire -------------------------------------------------------------------------------------------------- */

static struct connection *list_connection_of(struct request *request) {
    return evl_pipe_connection(evl_call_pipe(evl_call_of(request), request->vote));
}

/* The node whose turn it is. Of a cluster, whose masters may not be known yet, no key says which. */
static struct node *list_node_of(const struct call *call) {
    const struct deployment *deployment = call->lock->config->deployment;
    unsigned count = evl_deployment_count(deployment), turn = call->list.page.next.node;

    if (!deployment->cluster)
        return deployment->nodes[turn];
    return count ? evl_deployment_node(deployment, turn < count ? turn : count - 1) : deployment->nodes[0];
}

static void list_submit(struct request *request) {
    struct call *call = evl_call_of(request);
    struct node *node = list_node_of(call);

    evl_request_aim(request, evl_node_index(node));
    evl_connection_want(evl_node_connection(node));
    evl_pipe_submit(&node->pipe, request, evl_turn_now(evl_handle_turn(call->lock)));
}

static void list_submit_anew(struct request *request, int64_t now) {
    (void)now;
    list_submit(request);
}

static bool list_take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    struct subject subject = {.sought = {call->list.sought, call->list.sought_len}};

    (void)now;
    evl_command_write(command, &evl_call_dialect(call)->asks[ASK_LIST]->form, &subject);
    return true;
}

/* The command did not run, or runs twice without harm; more often than that it is not lost. */
static bool list_send_again(struct request *request, const struct reply *reply) {
    struct call *call = evl_call_of(request);
    bool missing = reply->type == REPLY_ERROR && evl_reply_meaning(reply->error).verdict == LEASE_AGAIN;
    bool stopped = list_connection_of(request)->state == CONNECTION_STOPPED;

    if (!missing && (reply->type != REPLY_LOST || call->list.resent || stopped))
        return false;
    call->list.resent |= !missing;
    list_submit(request);
    return true;
}

/* Reads "CURSOR LEN KEY ..."; false: it is none. */
static bool list_note(struct call *call, struct bytes page) {
    const char *text = page.data;
    uint64_t position;
    struct bytes keys;
    size_t count;
    char *end;

    position = strtoull(text, &end, 10);
    keys = (struct bytes){end, page.len - (size_t)(end - text)};
    if (end == text || !list_count(keys, &count))
        return false;
    if (list_keep(call, keys, count))
        list_end_page(call, position);
    else
        evl_call_end(call, EVLOCK_ENOMEM, "no memory for a page of a listing");
    return true;
}

static bool list_answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    struct found found;

    (void)now;
    if (call->ended) {
        evl_call_free_told(call);
        return true;
    }
    if (list_send_again(request, reply))
        return true;
    if (reply->type == REPLY_ERROR || reply->type == REPLY_LOST) {
        list_miss(call, reply->type == REPLY_LOST ? EVLOCK_EUNREACHABLE : evl_reply_meaning(reply->error).status,
                  reply->text);
        return true;
    }
    if (evl_dialect_find(evl_call_dialect(call), ASK_LIST, reply, &found) && list_note(call, found.text))
        return true;
    list_miss(call, EVLOCK_EPROTOCOL, "");
    return false;
}

static void list_away(struct request *request, struct trouble why, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)now;
    evl_pipe_withdraw(evl_call_pipe(call, request->vote), request);
    list_miss(call, why.status, why.words);
}

const struct request_ops evl_list_requests = {list_take, list_answer, NULL, NULL, list_away, list_submit_anew};

/* --- The call ----------------------------------------------------------------------------------------------------- */

static struct trouble list_validate(const struct locks *locks, const void *prefix, size_t prefix_len,
                                    const evlock_cursor *from, evlock_list_cb cb) {
    struct trouble trouble;

    if (!locks)
        return (struct trouble){EVLOCK_EINVAL, "the client is NULL"};
    if (!prefix || !cb)
        return (struct trouble){EVLOCK_EINVAL, prefix ? "a listing needs a callback" : "the prefix is NULL"};
    trouble = evl_locks_validate(locks);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (prefix_len > PREFIX_MAX_LEN)
        return (struct trouble){EVLOCK_ENAME, "the prefix is longer than any lock's name"};
    if (from && from->node >= evl_deployment_count(&locks->tenures.deployment))
        return (struct trouble){EVLOCK_EINVAL, "the cursor is of another client"};
    return evl_no_trouble;
}

/* A call that is the last to keep its handle; NULL: out of memory. */
static struct call *list_new(struct evlock *lock, void *arg) {
    struct call *call = evl_call_new(lock, &sort_list, arg);

    lock->freed = true;
    evl_handle_unref(lock);
    return call;
}

static bool list_copy_sought(struct call *call, const evlock_cursor *from, const char *prefix, size_t prefix_len) {
    char text[32];
    int len = snprintf(text, sizeof(text), "%" PRIu64 " ", from->position);

    call->list.sought = evl_alloc((size_t)len + prefix_len + 1);
    if (!call->list.sought)
        return false;
    memcpy(call->list.sought, text, (size_t)len);
    memcpy(call->list.sought + len, prefix, prefix_len);
    call->list.sought_len = (size_t)len + prefix_len;
    call->list.page.next = *from;
    return true;
}

static void list_begin(struct call *call) {
    struct request *request = &call->requests[call->count == 1 ? 0 : call->list.page.next.node];
    const struct connection *connection = evl_node_connection(list_node_of(call));

    if (connection->state == CONNECTION_AWAY)
        list_miss(call, connection->status, connection->error);
    else
        list_submit(request);
    evl_turn_rearm(evl_handle_turn(call->lock));
}

int evlock_client_list(evlock_client *client, const void *prefix, size_t prefix_len, const evlock_cursor *from,
                       evlock_list_cb cb, void *arg) {
    static const evlock_cursor beginning;
    struct locks *locks = client ? evl_locks_of_client(client) : NULL;
    struct trouble trouble;
    struct call *call;
    evlock *lock;
    int status;

    if (prefix && prefix_len == EVLOCK_CSTRING)
        prefix_len = strlen(prefix);
    trouble = list_validate(locks, prefix, prefix_len, from, cb);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    /* What a lock on these nodes may have, though this one is never acquired. */
    status = evlock_new(&lock, client, "list", EVLOCK_CSTRING,
                        EVLOCK_OPTIONS(.ttl_ms = evl_locks_deployment(locks)->config.max_ttl / 1000));
    if (status != EVLOCK_OK)
        return status;
    call = list_new(lock, arg);
    if (!call || !list_copy_sought(call, from ? from : &beginning, prefix, prefix_len)) {
        if (call)
            evl_call_drop(call);
        return evl_fail(EVLOCK_ENOMEM, "no memory for a listing");
    }
    call->list.cb = cb;
    evl_call_ask(call, REQUEST_LIST);
    list_begin(call);
    return evl_report(evl_no_trouble);
}
