/* Clusters; see cluster.h. */
#include "cluster.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "memory.h"
#include "minmax.h"

#define SECOND INT64_C(1000000)

/* The table is asked for again so often at most, and at least. Half as much is added at random, so that the clients of
 * one cluster do not all ask at once. */
static const int64_t ask_least = SECOND;
static const int64_t ask_most = 60 * SECOND;

/* Whose slots have other masters is told so often at most. */
static const int64_t tell_least = SECOND;

/* A master without slots is kept for so long. */
static const int64_t kept_without_slots = 60 * SECOND;

/* The first pause of what found its keys on their way; each is twice the one before. */
static const int64_t halt_least = 50000;

/* In a row: so often a request is sent elsewhere at once, so often it is sent elsewhere, and so often it is sent
 * elsewhere or waits. */
#define AT_ONCE_MOST 2
#define REDIRECTS_MOST 5
#define TURNS_MOST 7

/* So many addresses are tried before it is said that none is of use. */
#define ROUND_MOST 16

#define ID_SIZE_MOST 65
#define HOST_SIZE 254

#define GATE CLUSTER_GATE

/* A master's node, or the gate's, and what is known of it here. */
struct shard {
    struct node node;
    struct cluster *cluster;
    char id[ID_SIZE_MOST]; /* "": its place is free */
    bool owns;             /* some slot */
    int64_t lost;          /* when it lost its last slot */
};

_Static_assert(offsetof(struct shard, node) == 0, "the deployment frees its nodes");

/* What is to become of the request that is being answered. */
enum turn_kind { TURN_NONE, TURN_ON, TURN_ASK, TURN_HALT };

struct cluster {
    struct cluster_parts parts;
    struct url url;          /* what was given */
    struct shards table;     /* without a text: none is known yet */
    char speaker[HOST_SIZE]; /* the host of who said it */
    unsigned tried;          /* addresses, in this round of the scout */
    unsigned next;           /* address that it tries */
    unsigned informed;       /* the place that knows more than the table says; GATE: none does */
    unsigned last_asked;
    struct {
        const struct request *request;
        enum turn_kind kind;
        unsigned place;
    } turned;
    struct other_alarm alarm;
    int64_t asked_at;  /* 0: never */
    int64_t ask_at;    /* when it is asked for next */
    int64_t resume_at; /* when what waits at the gate is sent; INT64_MAX: nothing does */
    int64_t tell_at;   /* when it is told that slots have other masters; INT64_MAX: none have */
    int64_t told_at;   /* when all had been told, the last time */
    bool telling;      /* some have been told, and not all yet */
    bool tells_again;  /* slots changed hands meanwhile */
};

static struct shard *cluster_shard_of(struct node *node) {
    return (struct shard *)(void *)node;
}

static struct shard *cluster_at(const struct cluster *cluster, unsigned place) {
    return cluster_shard_of(cluster->parts.nodes[place]);
}

static struct connection *cluster_gate(const struct cluster *cluster) {
    return evl_node_connection(cluster->parts.nodes[GATE]);
}

static struct turn *cluster_turn_of(const struct cluster *cluster) {
    return cluster->parts.connections->turn;
}

static const struct log_sink *cluster_log_of(const struct cluster *cluster) {
    return &cluster_turn_of(cluster)->log;
}

static bool cluster_knows(const struct cluster *cluster) {
    return cluster->table.text;
}

static unsigned cluster_count(const struct cluster *cluster) {
    return *cluster->parts.node_count;
}

static void cluster_wake(struct cluster *cluster) {
    evl_turn_wake(cluster_turn_of(cluster), &cluster->alarm.alarm,
                  evl_min(evl_min(cluster->ask_at, cluster->tell_at), cluster->resume_at));
}

static int64_t cluster_jitter(const struct cluster *cluster, int64_t span) {
    return span + (int64_t)(evl_turn_random(cluster_turn_of(cluster)) % (uint64_t)(span / 2));
}

/* The table is to be asked for, as soon as that may be. */
static void cluster_ask_soon(struct cluster *cluster) {
    int64_t now = evl_turn_now(cluster_turn_of(cluster));
    int64_t at = cluster->asked_at ? evl_max(now, cluster->asked_at + cluster_jitter(cluster, ask_least)) : now;

    cluster->ask_at = evl_min(cluster->ask_at, at);
    cluster_wake(cluster);
}

/* --- Slots that have other masters -------------------------------------------------------------------------------- */

/* Slots that move one by one are told together. */
static void cluster_tell_soon(struct cluster *cluster) {
    int64_t now = evl_turn_now(cluster_turn_of(cluster));

    cluster->tells_again = cluster->telling;
    if (!cluster->telling)
        cluster->tell_at = evl_min(cluster->tell_at, evl_max(now, cluster->told_at + tell_least));
    cluster_wake(cluster);
}

static void cluster_tell(struct cluster *cluster, int64_t now) {
    struct node *gate = cluster->parts.nodes[GATE];

    if (!cluster->telling)
        cluster->parts.hooks->returned(gate);
    cluster->telling = cluster->parts.hooks->tell_back(gate, now);
    cluster->tell_at = now;
    if (cluster->telling)
        return;
    cluster->told_at = now;
    cluster->tell_at = cluster->tells_again ? now + cluster_jitter(cluster, tell_least) : INT64_MAX;
    cluster->tells_again = false;
}

static bool cluster_differs(const struct shards *before, const struct shards *after) {
    for (unsigned slot = 0; slot < HASH_TAG_SLOTS; slot++) {
        uint16_t was = before->owners[slot], is = after->owners[slot];
        if (was != SHARDS_NONE && is != SHARDS_NONE && before->members[was].place != GATE &&
            before->members[was].place != after->members[is].place)
            return true;
    }
    return false;
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

static void cluster_copy(char *to, size_t size, struct bytes bytes) {
    size_t len = bytes.len < size ? bytes.len : size - 1;

    memcpy(to, bytes.data, len);
    to[len] = '\0';
}

/* A name is for those who were given names, and for those who look at certificates. */
static void cluster_host_of(const struct cluster *cluster, const struct member *member, const char *speaker,
                            char ret[HOST_SIZE]) {
    bool names = member->name.len && (cluster->url.tls || !cluster->url.literal);

    if (names)
        cluster_copy(ret, HOST_SIZE, member->name);
    else if (member->address.len)
        cluster_copy(ret, HOST_SIZE, member->address);
    else
        snprintf(ret, HOST_SIZE, "%s", speaker);
}

static bool cluster_is_at(const struct node *node, const char *host, uint16_t port) {
    return node->url.host && strcmp(node->url.host, host) == 0 && node->url.port == port;
}

static int cluster_url_of(const struct cluster *cluster, const struct member *member, struct url *ret) {
    char host[HOST_SIZE];

    cluster_host_of(cluster, member, cluster->speaker, host);
    return evl_url_announced(ret, &cluster->url, host, member->port);
}

/* False: there is none, or no memory for it: then the table is read again soon. */
static bool cluster_find_url(struct cluster *cluster, const struct member *member, struct url *ret) {
    int status = cluster_url_of(cluster, member, ret);

    if (status == EVLOCK_ENOMEM)
        cluster_ask_soon(cluster);
    return status == EVLOCK_OK;
}

/* --- Masters ------------------------------------------------------------------------------------------------------ */

static const struct route_hooks routes;

void evl_cluster_join(struct cluster *cluster, struct pipe *pipe) {
    pipe->routes = &routes;
    pipe->router = cluster;
}

/* A place that a master had before, or a new one; GATE: there is none. */
static unsigned cluster_free_place(const struct cluster *cluster) {
    for (unsigned place = 1; place < cluster_count(cluster); place++)
        if (!cluster_at(cluster, place)->id[0] && evl_node_state(&cluster_at(cluster, place)->node) == CONNECTION_IDLE)
            return place;
    return cluster_count(cluster) < CLUSTER_PLACES ? cluster_count(cluster) : GATE;
}

static struct shard *cluster_new_shard(struct cluster *cluster, unsigned place, struct url *url) {
    struct shard *shard = evl_alloc(sizeof(*shard));

    if (!shard)
        return NULL;
    shard->cluster = cluster;
    evl_node_init(&shard->node, cluster->parts.connections, place, url, cluster->parts.hooks, cluster->parts.ops,
                  &cluster->parts.nodes[GATE]->credentials);
    evl_cluster_join(cluster, &shard->node.pipe);
    evl_connection_rest(evl_node_connection(&shard->node));
    cluster->parts.nodes[place] = &shard->node;
    *cluster->parts.node_count = place + 1;
    return shard;
}

/* The node of a member: a new one, that connects when it is needed. GATE: there is no memory, no place, or no address.
 */
static unsigned cluster_settle(struct cluster *cluster, const struct member *member) {
    unsigned place = cluster_free_place(cluster);
    struct shard *shard;
    struct url url;

    if (place == GATE || member->port == 0 || !cluster_find_url(cluster, member, &url))
        return GATE;
    if (place < cluster_count(cluster)) {
        shard = cluster_at(cluster, place);
        evl_node_move(&shard->node, &url);
    } else if (!(shard = cluster_new_shard(cluster, place, &url))) {
        evl_url_free(&url);
        cluster_ask_soon(cluster);
        return GATE;
    }
    cluster_copy(shard->id, sizeof(shard->id), member->id);
    return place;
}

/* A member has the place of another from here on, or the place that it has is at another address. */
static void cluster_move(struct cluster *cluster, unsigned place, const struct member *member) {
    struct shard *shard = cluster_at(cluster, place);
    char host[HOST_SIZE];
    struct url url;

    cluster_host_of(cluster, member, cluster->speaker, host);
    cluster_copy(shard->id, sizeof(shard->id), member->id);
    if (member->port == 0 || cluster_is_at(&shard->node, host, member->port) ||
        !cluster_find_url(cluster, member, &url))
        return;
    evl_log(cluster_log_of(cluster), EVLOCK_LOG_INFO, "node %u: its master is %s:%u now", place, host, member->port);
    evl_node_move(&shard->node, &url);
}

static bool cluster_is_idle(const struct pipe *pipe) {
    return !pipe || (TAILQ_EMPTY(&pipe->waiting) && TAILQ_EMPTY(&pipe->flying));
}

/* Nothing more is to be asked of it. What it owes is not waited for. If it gets slots again, it gets a place again. */
static void cluster_retire(struct cluster *cluster, struct shard *shard) {
    uint16_t member = evl_shards_find(&cluster->table, (struct bytes){shard->id, strlen(shard->id)});
    struct login *login;

    if (member != SHARDS_NONE && cluster->table.members[member].place == evl_node_index(&shard->node))
        cluster->table.members[member].place = GATE;
    shard->id[0] = '\0';
    LIST_FOREACH (login, &shard->node.pipe.login.credentials->logins, link)
        if (login->connection.url == &shard->node.url)
            evl_connection_rest(&login->connection);
    cluster->parts.gone(&shard->node);
}

static void cluster_retire_some(struct cluster *cluster, int64_t now) {
    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        struct shard *shard = cluster_at(cluster, place);
        bool known = evl_shards_find(&cluster->table, (struct bytes){shard->id, strlen(shard->id)}) != SHARDS_NONE;
        if (shard->id[0] && !shard->owns && (!known || now - shard->lost >= kept_without_slots) &&
            cluster_is_idle(&shard->node.pipe) && cluster_is_idle(shard->node.side))
            cluster_retire(cluster, shard);
    }
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* Who has the slots of a master that has none any more: one that was its replica, as it says itself now or as was known
 * before. */
static uint16_t cluster_heir(const struct cluster *cluster, const struct shards *said, uint16_t member,
                             struct bytes id) {
    const struct shards *known = &cluster->table;
    uint16_t before = evl_shards_find(known, id);

    for (unsigned i = 0; i < said->count; i++) {
        const struct member *heir = &said->members[i];
        uint16_t was = heir->owns && heir->place == GATE ? evl_shards_find(known, heir->id) : SHARDS_NONE;
        bool follows = member != SHARDS_NONE && said->members[member].master == i;
        bool followed = was != SHARDS_NONE && before != SHARDS_NONE && known->members[was].master == before;
        if (heir->owns && heir->place == GATE && (follows || followed))
            return (uint16_t)i;
    }
    return SHARDS_NONE;
}

/* First those stay that have slots, wherever they are: no heir takes the place of another master. */
static void cluster_keep_places(struct cluster *cluster, struct shards *said) {
    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        const struct shard *shard = cluster_at(cluster, place);
        uint16_t member = evl_shards_find(said, (struct bytes){shard->id, strlen(shard->id)});
        if (shard->id[0] && member != SHARDS_NONE && said->members[member].owns)
            said->members[member].place = (uint16_t)place;
    }
}

static void cluster_inherit_places(struct cluster *cluster, struct shards *said) {
    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        const struct shard *shard = cluster_at(cluster, place);
        struct bytes id = {shard->id, strlen(shard->id)};
        uint16_t member = evl_shards_find(said, id), heir;
        if (!id.len || (member != SHARDS_NONE && said->members[member].owns))
            continue;
        heir = cluster_heir(cluster, said, member, id);
        if (heir != SHARDS_NONE)
            said->members[heir].place = (uint16_t)place;
        else if (member != SHARDS_NONE)
            said->members[member].place = (uint16_t)place;
    }
}

static bool cluster_is_silent(const struct cluster *cluster, unsigned place) {
    const struct connection *connection = evl_node_connection(cluster->parts.nodes[place]);

    return evl_connection_is_silent(connection, evl_turn_now(cluster_turn_of(cluster)));
}

/* Who waits for a silent master's answer may ask who has its slots now. */
static void cluster_lose(struct cluster *cluster, struct shard *shard) {
    shard->lost = evl_turn_now(cluster_turn_of(cluster));
    if (cluster_is_silent(cluster, evl_node_index(&shard->node)))
        evl_connection_break(evl_node_connection(&shard->node), EVLOCK_EUNREACHABLE,
                             "it is silent, and its slots are another's");
}

static void cluster_note_owners(struct cluster *cluster) {
    const struct shards *table = &cluster->table;

    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        struct shard *shard = cluster_at(cluster, place);
        uint16_t member = evl_shards_find(table, (struct bytes){shard->id, strlen(shard->id)});
        bool owns = shard->id[0] && member != SHARDS_NONE && table->members[member].owns &&
                    table->members[member].place == place;
        if (shard->owns && !owns)
            cluster_lose(cluster, shard);
        shard->owns = owns;
    }
}

/* What waits where there is no connection may have a place to go to now. */
static void cluster_send_on(struct cluster *cluster) {
    int64_t now = evl_turn_now(cluster_turn_of(cluster));

    cluster->resume_at = INT64_MAX;
    for (unsigned place = 0; place < cluster_count(cluster); place++)
        if (evl_node_state(cluster->parts.nodes[place]) != CONNECTION_READY)
            evl_pipe_submit_anew(&cluster->parts.nodes[place]->pipe, now);
}

/* The time that is waited out counts from the first login at a master: it is not put off until a lock is there. */
static void cluster_want_all(struct cluster *cluster) {
    for (unsigned place = 1; place < cluster_count(cluster); place++)
        if (cluster_at(cluster, place)->owns)
            evl_connection_want(evl_node_connection(cluster->parts.nodes[place]));
}

static void cluster_take(struct cluster *cluster, struct shards *said) {
    struct shards before = cluster->table;

    cluster_keep_places(cluster, said);
    cluster_inherit_places(cluster, said);
    cluster->table = *said;
    for (unsigned i = 0; i < said->count; i++) {
        struct member *member = &cluster->table.members[i];
        if (member->place != GATE)
            cluster_move(cluster, member->place, member);
        else if (member->owns)
            member->place = (uint16_t)cluster_settle(cluster, member);
    }
    if (before.text && cluster_differs(&before, &cluster->table))
        cluster_tell_soon(cluster);
    evl_shards_free(&before);
    cluster_note_owners(cluster);
    if (cluster->parts.connections->config->failover_wait)
        cluster_want_all(cluster);
    evl_connection_rest(cluster_gate(cluster));
    cluster->parts.hooks->changed(cluster->parts.nodes[GATE]);
    cluster_send_on(cluster);
    cluster_wake(cluster);
}

static bool cluster_has_owners(const struct shards *said) {
    for (unsigned i = 0; i < said->count; i++)
        if (said->members[i].owns)
            return true;
    return false;
}

/* Where nothing of what is known is in a table, it is that of another cluster. One that was made anew, of servers that
 * have all forgotten the old one, is found by the scout. */
static bool cluster_is_other(const struct cluster *cluster, const struct node *node, const struct shards *said) {
    if (!cluster_knows(cluster) || evl_node_index(node) == GATE)
        return false;
    for (unsigned i = 0; i < said->count; i++)
        if (evl_shards_find(&cluster->table, said->members[i].id) != SHARDS_NONE)
            return false;
    return true;
}

/* A member that has left the cluster, or was never in one, knows of no slots. */
static struct trouble cluster_judge(const struct cluster *cluster, const struct node *node, const struct shards *said) {
    if (!cluster_has_owners(said))
        return (struct trouble){EVLOCK_EREFUSED, "CLUSTERDOWN it knows of no slots"};
    if (cluster_is_other(cluster, node, said))
        return (struct trouble){EVLOCK_EREFUSED, "it belongs to another cluster than before"};
    return evl_no_trouble;
}

void evl_cluster_said(struct node *node, const struct reply *reply) {
    struct cluster *cluster = cluster_shard_of(node)->cluster;
    struct trouble trouble = {EVLOCK_EPROTOCOL, "CLUSTER NODES is answered by what is no table of a cluster"};
    struct shards said;

    if (reply->type == REPLY_STRING)
        trouble = evl_shards_read(&said, reply->text, reply->len);
    if (trouble.status == EVLOCK_OK && (trouble = cluster_judge(cluster, node, &said)).status != EVLOCK_OK)
        evl_shards_free(&said);
    if (trouble.status != EVLOCK_OK) {
        if (evl_node_state(node) == CONNECTION_CONNECTING)
            evl_connection_break(evl_node_connection(node), trouble.status, trouble.words);
        return;
    }
    if (cluster_knows(cluster))
        evl_shards_mend(&said, &cluster->table);
    snprintf(cluster->speaker, sizeof(cluster->speaker), "%s", node->url.host);
    cluster_take(cluster, &said);
    evl_check(evl_cluster_check(cluster));
}

bool evl_cluster_mark(struct node *node, unsigned nth, char ret[SHARDS_MARK_SIZE]) {
    const struct shard *shard = cluster_shard_of(node);
    const struct shards *table = &shard->cluster->table;
    uint16_t member = evl_shards_find(table, (struct bytes){shard->id, strlen(shard->id)});

    return member != SHARDS_NONE && evl_shards_mark(table, member, nth, ret);
}

/* --- Asking for it ------------------------------------------------------------------------------------------------ */

static bool cluster_ask(struct cluster *cluster, unsigned place) {
    if (cluster_is_silent(cluster, place) || !evl_login_ask_table(&cluster->parts.nodes[place]->pipe.login))
        return false;
    cluster->last_asked = place;
    return true;
}

/* One after the other, since what one of them knows may be old. False: none can be asked. */
static bool cluster_ask_any(struct cluster *cluster) {
    unsigned count = cluster_count(cluster);

    if (cluster->informed != GATE && cluster_ask(cluster, cluster->informed))
        return true;
    for (unsigned i = 1; i <= count; i++)
        if ((cluster->last_asked + i) % count != GATE && cluster_ask(cluster, (cluster->last_asked + i) % count))
            return true;
    return false;
}

/* It was needed, and is not there, or does not answer. */
static bool cluster_is_missed(const struct cluster *cluster, unsigned place) {
    enum connection_state state = evl_node_state(cluster->parts.nodes[place]);

    return state == CONNECTION_READY ? cluster_is_silent(cluster, place) : state != CONNECTION_IDLE;
}

static bool cluster_is_troubled(const struct cluster *cluster) {
    for (unsigned place = 1; place < cluster_count(cluster); place++)
        if (cluster_at(cluster, place)->owns && cluster_is_missed(cluster, place))
            return true;
    return !cluster_knows(cluster);
}

static unsigned cluster_addresses(const struct cluster *cluster) {
    return evl_url_addresses(&cluster->url) + cluster->table.count;
}

/* Whether a master that is missed is there. */
static bool cluster_is_vain(const struct cluster *cluster, const struct url *url) {
    for (unsigned place = 1; url->host && place < cluster_count(cluster); place++)
        if (cluster_is_missed(cluster, place) &&
            cluster_is_at(cluster->parts.nodes[place], url->host, (uint16_t)url->port))
            return true;
    return false;
}

/* The next address that the scout tries: one of those that were given, or of those that are known; where a master is
 * missed, only if there is no other. */
static void cluster_aim(struct cluster *cluster) {
    unsigned given = evl_url_addresses(&cluster->url), count = cluster_addresses(cluster);
    struct node *gate = cluster->parts.nodes[GATE];
    int status = EVLOCK_EURL;
    struct url url;

    for (unsigned i = 0; status == EVLOCK_EURL && i < count; i++) {
        cluster->next = (cluster->next + 1) % count;
        status = cluster->next < given ? evl_url_take_address(&url, &cluster->url, cluster->next)
                                       : cluster_url_of(cluster, &cluster->table.members[cluster->next - given], &url);
        if (status == EVLOCK_OK && i + 1 < count && cluster_is_vain(cluster, &url)) {
            evl_url_free(&url);
            status = EVLOCK_EURL;
        }
    }
    if (status != EVLOCK_OK)
        return;
    evl_url_free(&gate->url);
    gate->url = url;
}

/* None of the masters can be asked: the scout is sent. */
static void cluster_scout(struct cluster *cluster) {
    const struct node *gate = cluster->parts.nodes[GATE];

    if (evl_node_state(gate) == CONNECTION_IDLE && cluster_is_vain(cluster, &gate->url))
        cluster_aim(cluster);
    evl_connection_want(cluster_gate(cluster));
}

static void cluster_refresh(struct cluster *cluster, int64_t now) {
    bool asked = cluster_ask_any(cluster);

    cluster->asked_at = now;
    cluster->informed = GATE;
    cluster_retire_some(cluster, now);
    if (!asked)
        cluster_scout(cluster);
    cluster->ask_at = now + cluster_jitter(cluster, cluster_is_troubled(cluster) ? ask_least : ask_most);
}

static void cluster_ring(struct other_alarm *other, int64_t now) {
    struct cluster *cluster = EVL_OWNER(struct cluster, alarm, other);

    if (now >= cluster->resume_at) {
        cluster->resume_at = INT64_MAX;
        evl_pipe_submit_anew(&cluster->parts.nodes[GATE]->pipe, now);
    }
    if (now >= cluster->ask_at)
        cluster_refresh(cluster, now);
    if (now >= cluster->tell_at)
        cluster_tell(cluster, now);
    cluster_wake(cluster);
    evl_check(evl_cluster_check(cluster));
}

void evl_cluster_changed(struct node *node) {
    const struct shard *shard = cluster_shard_of(node);
    enum connection_state state = evl_node_state(node);
    bool lost =
        evl_node_connection(node)->ready_at && (state == CONNECTION_RESOLVING || state == CONNECTION_CONNECTING);

    if (shard->owns && (state == CONNECTION_AWAY || lost))
        cluster_ask_soon(shard->cluster);
}

void evl_cluster_silent(struct node *node) {
    const struct shard *shard = cluster_shard_of(node);

    if (shard->owns)
        cluster_ask_soon(shard->cluster);
}

/* --- The gate ----------------------------------------------------------------------------------------------------- */

static struct cluster *cluster_of_gate(struct connection *connection) {
    return EVL_OWNER(struct shard, node.pipe.login.connection, connection)->cluster;
}

static bool cluster_round_is_over(const struct cluster *cluster) {
    return cluster->tried >= evl_min(cluster_addresses(cluster), ROUND_MOST);
}

/* Nobody is told before all have been tried; and once a table is known, nothing waits there for want of one. */
static bool cluster_gate_on_away(struct connection *connection, bool begins, int64_t now) {
    struct cluster *cluster = cluster_of_gate(connection);

    if (begins)
        cluster->tried++;
    if (begins && (!cluster_round_is_over(cluster) || cluster_knows(cluster)))
        return false;
    return evl_pipe_away(connection, begins, now);
}

static void cluster_gate_on_changed(struct connection *connection) {
    struct cluster *cluster = cluster_of_gate(connection);
    struct node *gate = cluster->parts.nodes[GATE];
    bool over = cluster_round_is_over(cluster);

    if (connection->state != CONNECTION_AWAY) {
        cluster->parts.hooks->changed(gate);
        return;
    }
    cluster_aim(cluster);
    if (over)
        cluster->tried = 0;
    else
        evl_connection_start(connection);
    if (over)
        cluster->parts.hooks->changed(gate);
}

static void cluster_gate_on_table(struct login *login, const struct reply *reply) {
    evl_cluster_said(EVL_OWNER(struct node, pipe.login, login), reply);
}

/* What it was to find out is known by now, and it rests, or it is broken. */
static void cluster_gate_on_done(struct login *login, bool settled) {
    (void)settled;
    cluster_of_gate(&login->connection)->tried = 0;
    evl_connection_rest(&login->connection);
}

static const struct connection_hooks gate_connection_hooks = {
    .greet = evl_login_greet,
    .greeted = evl_login_greeted,
    .answered = evl_pipe_answered,
    .lost = evl_login_lost,
    .away = cluster_gate_on_away,
    .changed = cluster_gate_on_changed,
};

static const struct login_hooks gate_login_hooks = {.table = cluster_gate_on_table, .done = cluster_gate_on_done};

static struct shard *cluster_new_gate(struct cluster *cluster) {
    struct shard *shard = evl_alloc(sizeof(*shard));

    if (!shard || evl_url_take_address(&shard->node.url, &cluster->url, 0) != EVLOCK_OK) {
        evl_free(shard);
        return NULL;
    }
    shard->cluster = cluster;
    shard->node.hooks = cluster->parts.hooks;
    evl_connection_init(evl_node_connection(&shard->node), cluster->parts.connections, GATE, &shard->node.url,
                        &gate_connection_hooks);
    evl_login_init(&shard->node.pipe.login, &shard->node.credentials, &gate_login_hooks);
    shard->node.pipe.login.role = LOGIN_TO_SCOUT;
    evl_pipe_init(&shard->node.pipe, cluster->parts.ops);
    return shard;
}

/* --- Routes ------------------------------------------------------------------------------------------------------- */

/* One that can say that the slot is nobody's. */
static unsigned cluster_any(const struct cluster *cluster) {
    unsigned found = GATE;

    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        if (evl_node_state(cluster->parts.nodes[place]) == CONNECTION_READY)
            return place;
        if (found == GATE && cluster_at(cluster, place)->owns)
            found = place;
    }
    return found;
}

static unsigned cluster_place_of(const struct cluster *cluster, struct bytes key) {
    uint16_t owner;

    if (!cluster_knows(cluster))
        return GATE;
    owner = cluster->table.owners[evl_hash_tag_slot(key)];
    if (owner == SHARDS_NONE || cluster->table.members[owner].place == GATE)
        return cluster_any(cluster);
    return cluster->table.members[owner].place;
}

struct node *evl_cluster_home(const struct cluster *cluster, struct bytes key) {
    return cluster->parts.nodes[cluster_place_of(cluster, key)];
}

static struct pipe *cluster_pipe_of(const struct cluster *cluster, const struct request *request) {
    struct node *node = cluster->parts.nodes[request->node];

    return request->kind == REQUEST_REPLICAS ? node->side : &node->pipe;
}

static void cluster_halt(struct cluster *cluster, unsigned turns) {
    int64_t at = evl_turn_now(cluster_turn_of(cluster)) + (halt_least << turns);

    cluster->resume_at = evl_min(cluster->resume_at, at);
    cluster_wake(cluster);
}

/* What is sent behind one that is unanswered must arrive behind it, and goes the same way, whatever was said since. */
void evl_cluster_route(struct cluster *cluster, struct request *request, struct bytes key) {
    enum turn_kind turned = cluster->turned.request == request ? cluster->turned.kind : TURN_NONE;
    unsigned place;

    if (request->flying)
        return;
    if (turned == TURN_HALT || turned == TURN_ASK)
        place = cluster->turned.place;
    else
        place = cluster_place_of(cluster, key);
    if (request->waiting && place != request->node)
        evl_pipe_withdraw(cluster_pipe_of(cluster, request), request);
    evl_request_aim(request, place);
    request->asking = turned == TURN_ASK;
    if (turned == TURN_HALT)
        cluster_halt(cluster, request->turns ? request->turns - 1U : 0);
    if (place != GATE)
        evl_connection_want(evl_node_connection(cluster->parts.nodes[place]));
}

/* --- What sends elsewhere ----------------------------------------------------------------------------------------- */

/* The slots of a master are those of one of its replicas now. */
static void cluster_fail_over(struct cluster *cluster, uint16_t from, uint16_t to) {
    struct shards *table = &cluster->table;
    struct member *heir = &table->members[to];

    for (unsigned slot = 0; slot < HASH_TAG_SLOTS; slot++)
        if (table->owners[slot] == from)
            table->owners[slot] = to;
    heir->owns |= table->members[from].owns;
    assert(from != to && table->members[from].place != GATE);
    heir->place = table->members[from].place;
    heir->is_master = true;
    heir->master = SHARDS_NONE;
    table->members[from].owns = false;
    table->members[from].place = GATE;
    cluster_move(cluster, heir->place, heir);
}

/* Who was asked says that the slot is another's. That is newer than the table only if it is by this that it was asked.
 * Returns false if nothing is known of that other. */
static bool cluster_note_moved(struct cluster *cluster, unsigned place, const struct redirect *to) {
    struct shards *table = &cluster->table;
    const char *here = cluster->parts.nodes[place]->url.host;
    uint16_t owner = table->owners[to->slot];
    uint16_t member;
    bool owned;

    if (owner != SHARDS_NONE && table->members[owner].place != place && table->members[owner].place != GATE)
        return true;
    member = evl_shards_find_at(table, to->host.len ? to->host : (struct bytes){here, strlen(here)}, to->port,
                                cluster->speaker);
    if (member == SHARDS_NONE || member == owner)
        return false;
    if (table->members[member].master != SHARDS_NONE && table->members[table->members[member].master].place != GATE)
        cluster_fail_over(cluster, table->members[member].master, member);
    else if (table->members[member].place == GATE)
        table->members[member].place = (uint16_t)cluster_settle(cluster, &table->members[member]);
    owned = table->members[member].owns;
    evl_shards_give(table, to->slot, member);
    cluster_tell_soon(cluster);
    if (!owned)
        cluster_note_owners(cluster);
    return table->members[member].place != GATE;
}

static void cluster_turn(struct cluster *cluster, struct request *request, enum turn_kind kind, unsigned place) {
    request->turns = (request->turns + 1U) & 7U;
    cluster->turned.request = request;
    cluster->turned.kind = kind;
    cluster->turned.place = place;
}

static struct reply cluster_go_in_circles(struct request *request) {
    request->turns = 0;
    return evl_reply_instead(ERROR_FOR_NOW, "TRYAGAIN the cluster sends this in circles");
}

static struct reply cluster_say_elsewhere(void) {
    return evl_reply_instead(ERROR_ELSEWHERE, "MOVED to be sent again");
}

/* Masters that do not agree about a slot may have heard of its move one after the other: they are given a moment. */
static struct reply cluster_on_moved(struct cluster *cluster, unsigned place, struct request *request,
                                     const struct redirect *to) {
    bool found = cluster_note_moved(cluster, place, to);

    cluster->parts.stats->redirects++;
    cluster->informed = place;
    cluster_ask_soon(cluster);
    if (request->turns >= REDIRECTS_MOST)
        return cluster_go_in_circles(request);
    cluster_turn(cluster, request, found && request->turns < AT_ONCE_MOST ? TURN_ON : TURN_HALT, GATE);
    return cluster_say_elsewhere();
}

static struct reply cluster_on_ask(struct cluster *cluster, unsigned place, struct request *request,
                                   const struct redirect *to) {
    const char *here = cluster->parts.nodes[place]->url.host;
    uint16_t member = evl_shards_find_at(&cluster->table, to->host.len ? to->host : (struct bytes){here, strlen(here)},
                                         to->port, cluster->speaker);
    unsigned target = member == SHARDS_NONE ? GATE : cluster->table.members[member].place;

    cluster->parts.stats->redirects++;
    if (request->turns >= REDIRECTS_MOST)
        return cluster_go_in_circles(request);
    if (member != SHARDS_NONE && target == GATE)
        target = cluster->table.members[member].place =
            (uint16_t)cluster_settle(cluster, &cluster->table.members[member]);
    if (target == GATE)
        cluster_ask_soon(cluster);
    if (target == GATE || target == place)
        cluster_turn(cluster, request, TURN_HALT, GATE);
    else
        cluster_turn(cluster, request, TURN_ASK, target);
    return cluster_say_elsewhere();
}

/* Some keys of the command have been moved, and some not yet. */
static struct reply cluster_on_halfway(struct cluster *cluster, struct request *request, const struct reply *error) {
    if (request->turns >= TURNS_MOST) {
        request->turns = 0;
        return *error;
    }
    cluster_turn(cluster, request, TURN_HALT, GATE);
    return evl_reply_instead(ERROR_HALFWAY, "TRYAGAIN to be sent again");
}

static struct reply cluster_redirect(struct pipe *pipe, struct request *request, const struct reply *error,
                                     int64_t now) {
    struct cluster *cluster = pipe->router;
    unsigned place = pipe->login.connection.index;
    struct redirect to;

    (void)now;
    switch (error->error) {
    case ERROR_MOVED:
        if (evl_shards_redirect(&to, error->text))
            return to.ask ? cluster_on_ask(cluster, place, request, &to)
                          : cluster_on_moved(cluster, place, request, &to);
        break;
    case ERROR_TRYAGAIN:
        return cluster_on_halfway(cluster, request, error);
    case ERROR_DOWN:
    case ERROR_REPLICA:
    case ERROR_NOT_LOCAL:
        cluster_ask_soon(cluster);
        break;
    default:
        break;
    }
    request->turns = 0;
    return *error;
}

static void cluster_redirected(struct pipe *pipe) {
    struct cluster *cluster = pipe->router;

    cluster->turned.request = NULL;
}

static const struct route_hooks routes = {.redirect = cluster_redirect, .redirected = cluster_redirected};

/* --- All of it ---------------------------------------------------------------------------------------------------- */

struct cluster *evl_cluster_new(const struct cluster_parts *parts, struct url *url) {
    struct cluster *cluster = evl_alloc(sizeof(*cluster));
    struct shard *gate;

    if (!cluster)
        return NULL;
    cluster->parts = *parts;
    cluster->url = *url;
    cluster->alarm.alarm.kind = ALARM_OTHER;
    cluster->alarm.ring = cluster_ring;
    cluster->resume_at = cluster->ask_at = cluster->tell_at = INT64_MAX;
    gate = cluster_new_gate(cluster);
    if (!gate) {
        evl_free(cluster);
        return NULL;
    }
    *url = (struct url){0};
    parts->nodes[GATE] = &gate->node;
    *parts->node_count = 1;
    return cluster;
}

struct url *evl_cluster_url(struct cluster *cluster) {
    return &cluster->url;
}

void evl_cluster_start(struct cluster *cluster) {
    evl_connection_start(cluster_gate(cluster));
}

bool evl_cluster_counts(const struct node *node) {
    return ((const struct shard *)(const void *)node)->owns;
}

enum evlock_connection evl_cluster_connection(const struct cluster *cluster, const struct node **ret_trouble) {
    enum evlock_connection connection = EVLOCK_CONNECTED;

    if (!cluster_knows(cluster)) {
        *ret_trouble = cluster->parts.nodes[GATE];
        return evl_node_state(cluster->parts.nodes[GATE]) == CONNECTION_AWAY ? EVLOCK_AWAY : EVLOCK_CONNECTING;
    }
    for (unsigned place = 1; place < cluster_count(cluster); place++) {
        const struct shard *shard = cluster_at(cluster, place);
        enum connection_state state = evl_node_state(&shard->node);
        if (!shard->owns || state == CONNECTION_IDLE || state == CONNECTION_READY || connection == EVLOCK_AWAY)
            continue;
        connection = state == CONNECTION_AWAY ? EVLOCK_AWAY : EVLOCK_CONNECTING;
        if (connection == EVLOCK_AWAY)
            *ret_trouble = &shard->node;
    }
    return connection;
}

void evl_cluster_stop(struct cluster *cluster) {
    cluster->ask_at = cluster->resume_at = cluster->tell_at = INT64_MAX;
    cluster_wake(cluster);
}

void evl_cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    evl_shards_free(&cluster->table);
    evl_url_free(&cluster->url);
    evl_free(cluster);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

void evl_cluster_check(const struct cluster *cluster) {
    const struct shards *table = &cluster->table;

    for (unsigned i = 0; i < table->count; i++) {
        unsigned place = table->members[i].place;
        assert(place < cluster_count(cluster));
        implies(place != GATE,
                evl_same_bytes(table->members[i].id,
                               (struct bytes){cluster_at(cluster, place)->id, strlen(cluster_at(cluster, place)->id)}));
    }
    for (unsigned place = 1; place < cluster_count(cluster); place++)
        implies(cluster_at(cluster, place)->owns, cluster_at(cluster, place)->id[0]);
    implies(cluster->resume_at != INT64_MAX, cluster->alarm.alarm.set);
    assert(cluster_count(cluster) >= 1 && cluster_count(cluster) <= CLUSTER_PLACES);
}

#endif
