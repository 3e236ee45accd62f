/*
 * A simulated server and its sessions; see server.h. What commands do is in the files of their kinds; here are the
 * server's lives, the bytes that come and go, and what the simulation does to it.
 */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "world/chance.h"

/* --- Servers ------------------------------------------------------------------------------------------------------ */

void server_draw_id(sim_server *server, char id[41]) {
    for (size_t at = 0; at < 40; at += 8)
        snprintf(id + at, 9, "%08x", (unsigned)chance_next(&server->random));
}

sim_server *sim_server_new(unsigned seed) {
    sim_server *server = need(calloc(1, sizeof(*server)));
    TAILQ_INIT(&server->sessions);
    TAILQ_INIT(&server->refusals);
    server->random = seed;
    server_draw_id(server, server->run_id);
    server_draw_id(server, server->replid);
    memset(server->replid2, '0', 40);
    return server;
}

static void session_free(sim_session *session) {
    TAILQ_REMOVE(&session->server->sessions, session, next);
    session_unsubscribe_all(session);
    requests_free(&session->requests);
    free(session);
}

void sim_server_free(sim_server *server) {
    while (!TAILQ_EMPTY(&server->sessions))
        session_free(TAILQ_FIRST(&server->sessions));
    for (size_t i = 0; i < DATABASES; i++)
        store_clear(&server->stores[i]);
    sim_server_allow(server);
    sim_server_flush_scripts(server);
    reply_free(&server->reply);
    reply_free(&server->script_reply);
    free(server->password);
    free(server->slots);
    free(server);
}

void sim_server_set_time(sim_server *server, int64_t us) {
    server->now = us;
    for (size_t i = 0; i < DATABASES; i++)
        server->stores[i].now = now_ms(server);
}

void sim_server_set_password(sim_server *server, const char *password) {
    free(server->password);
    server->password = password ? need(strdup(password)) : NULL;
}

void sim_server_set_make(sim_server *server, enum sim_make make) {
    server->make = make;
}

void sim_server_set_replicas(sim_server *server, unsigned replicas) {
    server->replicas = replicas;
}

/* --- Replicas that are behind ------------------------------------------------------------------------------------- */

void sim_server_lag(sim_server *server) {
    server->lagging = true;
    for (unsigned i = 0; i < SIM_REPLICAS_MAX; i++)
        server->received[i] = -1;
}

int64_t sim_server_written(const sim_server *server) {
    return server->written;
}

void sim_server_received(sim_server *server, unsigned replica, int64_t written) {
    server->received[replica] = written;
}

unsigned session_replicas(const sim_session *session) {
    const sim_server *server = session->server;
    unsigned count = 0;
    for (unsigned i = 0; server->lagging && i < server->replicas; i++)
        count += server->received[i] >= session->written;
    return server->lagging ? count : server->replicas;
}

void sim_session_resume(sim_session *session) {
    unsigned count = session_replicas(session);
    if (!session->wait_for || (count < session->wait_for && session->server->now < session->wait_until))
        return;
    session->wait_for = 0;
    reply_integer(&session->server->reply, count);
    session_write(session, &session->server->reply);
    sim_session_feed(session, "", 0);
}

int64_t sim_session_waits(const sim_session *session) {
    return session->wait_for ? session->wait_until : INT64_MAX;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

sim_session *sim_server_connect(sim_server *server, sim_output output, sim_ended ended, void *arg) {
    sim_session *session = need(calloc(1, sizeof(*session)));
    session->server = server;
    session->output = output;
    session->ended = ended;
    session->arg = arg;
    session->id = ++server->last_id;
    session->since = server->now;
    session->may_command = !server->password;
    TAILQ_INIT(&session->subscriptions);
    TAILQ_INSERT_TAIL(&server->sessions, session, next);
    return session;
}

void sim_session_close(sim_session *session) {
    session_free(session);
}

int64_t sim_session_id(const sim_session *session) {
    return session->id;
}

void *sim_session_arg(const sim_session *session) {
    return session->arg;
}

void session_write(sim_session *session, struct output *reply) {
    if (reply->len > 0 && !session->quiet)
        session->output(session->arg, reply->bytes, reply->len);
    reply->len = 0;
}

void session_end(sim_session *session) {
    sim_ended ended = session->ended;
    void *arg = session->arg;
    session->ending = true;
    if (session->running)
        return;
    session_free(session);
    ended(arg);
}

void sim_session_feed(sim_session *session, const char *bytes, size_t len) {
    enum parsed parsed;
    requests_add(&session->requests, bytes, len);
    session->running = true;
    while (!session->ending && !session->wait_for && (parsed = requests_parse(&session->requests)) != PARSED_PART) {
        if (parsed == PARSED_WRONG) {
            reply_error(&session->server->reply, "ERR Protocol error: %s", session->requests.wrong);
            session->ending = true;
        } else if (session->requests.argc > 0) {
            command_from_session(session);
            session->written = session->server->written;
        }
        session_write(session, &session->server->reply);
    }
    session->running = false;
    if (session->ending)
        session_end(session);
}

void sim_server_kill_sessions(sim_server *server) {
    while (!TAILQ_EMPTY(&server->sessions))
        session_end(TAILQ_FIRST(&server->sessions));
}

/* --- Lives -------------------------------------------------------------------------------------------------------- */

void sim_server_restart(sim_server *server, bool keep_data, bool keep_replid) {
    sim_server_kill_sessions(server);
    sim_server_flush_scripts(server);
    for (size_t i = 0; i < DATABASES && !keep_data; i++)
        store_clear(&server->stores[i]);
    server_draw_id(server, server->run_id);
    if (!keep_replid)
        server_draw_id(server, server->replid);
    memset(server->replid2, '0', 40);
    server->started = server->now;
    server->last_id = 0;
}

void sim_server_forget(sim_server *server, const char *key) {
    struct entry *entry = key ? store_find(&server->stores[0], key, strlen(key)) : NULL;
    if (entry)
        store_remove(&server->stores[0], entry);
    else if (!key)
        store_clear(&server->stores[0]);
}

void sim_server_put(sim_server *server, const char *key, const char *value, int64_t ttl) {
    struct entry *entry = store_add(&server->stores[0], key, strlen(key), TYPE_STRING);
    entry_insert(entry, 0, 1);
    item_set(&entry->items[0], value, strlen(value));
    entry->expires = now_ms(server) + ttl;
}

sim_server *sim_server_copy(const sim_server *server) {
    sim_server *copy = sim_server_new(0);
    for (size_t i = 0; i < DATABASES; i++)
        store_copy(&copy->stores[i], &server->stores[i]);
    copy->now = server->now;
    copy->started = server->started;
    copy->make = server->make;
    copy->random = ~server->random;
    return copy;
}

void sim_server_become(sim_server *server, sim_server *copy, bool same) {
    int64_t now = server->now, last_id = server->last_id;
    char run_id[sizeof(server->run_id)];
    memcpy(run_id, server->run_id, sizeof(run_id));
    sim_server_restart(server, false, false);
    if (same) {
        memcpy(server->run_id, run_id, sizeof(run_id));
        server->last_id = last_id; /* a process counts on */
    }
    server_draw_id(server, server->replid2);
    for (size_t i = 0; i < DATABASES; i++) {
        server->stores[i] = copy->stores[i];
        copy->stores[i] = (struct store){0};
    }
    server->started = copy->started;
    for (unsigned i = 0; i < SIM_REPLICAS_MAX; i++)
        server->received[i] = -1; /* of this server */
    sim_server_set_time(server, now);
    sim_server_free(copy);
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

const char *sim_server_get(sim_server *server, const char *key, size_t key_len, size_t *len) {
    const struct entry *entry = store_find(&server->stores[0], key, key_len);
    if (!entry || entry->type != TYPE_STRING)
        return NULL;
    *len = entry->items[0].len;
    return entry->items[0].bytes;
}

int64_t sim_server_expiry(sim_server *server, const char *key, size_t key_len) {
    const struct entry *entry = store_find(&server->stores[0], key, key_len);
    return !entry ? -2 : entry->expires == STORE_NEVER ? -1 : entry->expires * 1000;
}

const char *sim_server_member(sim_server *server, const char *key, size_t key_len, size_t place, size_t *len) {
    const struct entry *entry = store_find(&server->stores[0], key, key_len);
    if (!entry || entry->type != TYPE_ZSET || place >= entry->count)
        return NULL;
    *len = entry->items[place].len;
    return entry->items[place].bytes;
}

void sim_server_each_key(sim_server *server, void (*look)(void *arg, const char *key, size_t len), void *arg) {
    const struct store *store = &server->stores[0];
    for (size_t i = 0; i < store->size; i++) {
        for (const struct entry *entry = store->buckets[i]; entry; entry = entry->next) {
            if (!entry_expired(store, entry))
                look(arg, entry->key, entry->key_len);
        }
    }
}

void sim_server_watch(sim_server *server, sim_watch watch, sim_watch refused, void *arg) {
    server->watch = watch;
    server->watch_refused = refused;
    server->watch_arg = arg;
}
