/* Masters; see master.h. */
#include "master.h"

#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "memory.h"

static const struct trouble master_no_memory = {EVLOCK_ENOMEM, "no memory for a client"};

/* Sentinels are asked again no more often than that, whatever happens to the master. */
static const int64_t pause_between_questions = 1000000;

static const struct log_sink *master_log_of(const struct master *master) {
    return &evl_node_connection_of(master->node)->turn->log;
}

/* --- What the Sentinels say --------------------------------------------------------------------------------------- */

static bool master_is_there(const struct master *master, const struct url *url) {
    return master->node->url.host && evl_url_is_same_server(&master->node->url, url);
}

/* A name that no certificate can be of is not gone to. */
static bool master_may_be_trusted(const struct master *master, const struct url *url) {
    struct tls *tls = evl_node_connection_of(master->node)->transport.tls;
    struct trouble trouble = url->tls ? evl_tls_expect(tls, url->host) : evl_no_trouble;

    if (trouble.status != EVLOCK_OK)
        evl_log(master_log_of(master), EVLOCK_LOG_WARN, "the Sentinels say that the master of %s is %s: %s",
                master->name, url->host, trouble.words);
    return trouble.status == EVLOCK_OK;
}

static void master_move(struct master *master, struct url *url) {
    evl_log(master_log_of(master), EVLOCK_LOG_INFO, "the master of %s is %s:%d, by epoch %" PRId64, master->name,
            url->host, url->port, master->epoch);
    evl_node_move(master->node, url);
}

/* A later failover is believed, whoever tells of it. Of two masters of one epoch, which Sentinels cannot make by
 * themselves, the one that is of use stays. */
static bool master_believes(const struct master *master, const struct sentinel_word *word, const struct url *url) {
    if (!master->known || word->epoch > master->epoch)
        return true;
    return word->epoch == master->epoch && evl_node_state(master->node) == CONNECTION_AWAY &&
           !master_is_there(master, url);
}

/* What cannot be kept, or is no address, is asked for again. */
static void master_hear(struct master *master, struct sentinel *sentinel, const struct sentinel_word *word) {
    struct url url;
    int status = evl_url_announced(&url, &master->pattern, word->host, word->port);

    if (status != EVLOCK_OK) {
        evl_connection_break(&sentinel->asks.connection, status == EVLOCK_ENOMEM ? status : EVLOCK_EPROTOCOL,
                             status == EVLOCK_ENOMEM ? "no memory for an address" : "what it says is no address");
        return;
    }
    if (!master_believes(master, word, &url) || !master_may_be_trusted(master, &url)) {
        evl_url_free(&url);
        return;
    }
    master->known = true;
    master->epoch = word->epoch;
    if (master_is_there(master, &url))
        evl_url_free(&url);
    else
        master_move(master, &url);
}

/* One that has said nothing yet may still answer. */
static bool master_has_no_answer(const struct master *master) {
    for (unsigned i = 0; i < master->count; i++)
        if (master->sentinels[i].status == EVLOCK_OK)
            return false;
    return true;
}

/* Those that do not know the name have at least answered. */
static bool master_is_unknown(const struct master *master) {
    for (unsigned i = 0; i < master->count; i++)
        if (master->sentinels[i].status == EVLOCK_EMASTER)
            return true;
    return false;
}

/* While one answers, the others cost nothing. What is known is used on. */
static void master_miss(struct master *master, struct trouble why) {
    struct words words;

    if (!master_has_no_answer(master))
        return;
    if (master_is_unknown(master))
        why = evl_trouble(&words, EVLOCK_EMASTER, "no Sentinel that answers knows a master named %s", master->name);
    else
        why = evl_trouble(&words, why.status, "no Sentinel answers: %s", why.words);
    if (!master->known)
        evl_connection_has_none(evl_node_connection(master->node), why);
    else if (!master->alone)
        evl_log(master_log_of(master), EVLOCK_LOG_WARN, "the last master of %s that was heard of is used on: %s",
                master->name, why.words);
    master->alone = true;
}

static void master_on_said(struct sentinel *sentinel, const struct sentinel_word *word) {
    struct master *master = sentinel->owner;

    if (word->trouble.status != EVLOCK_OK) {
        master_miss(master, word->trouble);
        return;
    }
    master->alone = false;
    master_hear(master, sentinel, word);
}

static const struct sentinel_hooks sentinel_hooks = {.said = master_on_said};

/* --- What the node meets ------------------------------------------------------------------------------------------ */

void evl_master_node_changed(struct master *master) {
    int64_t now = evl_turn_now(evl_node_connection(master->node)->turn);

    if (evl_node_state(master->node) != CONNECTION_AWAY || !master->known ||
        (master->asked_at && now - master->asked_at < pause_between_questions))
        return;
    master->asked_at = now;
    for (unsigned i = 0; i < master->count; i++)
        evl_sentinel_ask(&master->sentinels[i]);
}

void evl_master_node_returned(struct master *master) {
    if (!master->node->pipe.login.server.bare || master->warned)
        return;
    master->warned = true;
    evl_log(master_log_of(master), EVLOCK_LOG_WARN,
            "a master of %s that is cut off goes on granting locks, which others may then have, too: set its "
            "min-replicas-to-write",
            master->name);
}

/* --- The beginning and the end ------------------------------------------------------------------------------------ */

static struct trouble master_make_sentinels(struct master *master, struct connections *all, const struct url *url) {
    struct url where;

    master->sentinels = evl_alloc(evl_url_addresses(url) * sizeof(*master->sentinels));
    if (!master->sentinels)
        return master_no_memory;
    for (unsigned i = 0; i < evl_url_addresses(url); i++) {
        struct sentinel *sentinel = &master->sentinels[i];
        if (evl_url_take_address(&where, url, i) != EVLOCK_OK)
            return master_no_memory;
        *sentinel = (struct sentinel){
            .url = where,
            .master = master->name,
            .about = master->about,
            .address = master->address,
            .owner = master,
        };
        evl_sentinel_init(sentinel, all, i, &master->credentials, &sentinel_hooks);
        master->count++;
    }
    return evl_no_trouble;
}

struct trouble evl_master_make(struct master *master, struct connections *all, struct url *url,
                               const evlock_client_options *options) {
    struct trouble trouble;

    assert(url->kind == URL_SENTINELS && !url->user && !url->password);
    master->pattern = (struct url){.tls = url->tls, .db = url->db};
    master->name = url->master;
    url->master = NULL;
    if (options->sentinel_user && !options->sentinel_password)
        return (struct trouble){EVLOCK_EINVAL, "sentinel_user needs a sentinel_password"};
    trouble =
        evl_credentials_begin(&master->credentials, options->sentinel_user, options->sentinel_password, NULL, false);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (!evl_sentinel_write_questions(master->name, &master->about, &master->address))
        return master_no_memory;
    return master_make_sentinels(master, all, url);
}

void evl_master_start(struct master *master) {
    for (unsigned i = 0; i < master->count; i++)
        evl_sentinel_start(&master->sentinels[i]);
}

void evl_master_wipe(struct master *master) {
    evl_credentials_wipe(&master->credentials);
}

void evl_master_free(struct master *master) {
    for (unsigned i = 0; i < master->count; i++)
        evl_url_free(&master->sentinels[i].url);
    evl_credentials_free(&master->credentials);
    evl_free(master->sentinels);
    evl_free(master->name);
    evl_free(master->about);
    evl_free(master->address);
}
