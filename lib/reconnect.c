/* When the next connection is made; see reconnect.h. */
#include "reconnect.h"

#include "minmax.h"
#include "reply.h"

/* A connection lasted that was of use for so many times as long as the pause after it. */
#define LASTING 8

void evl_reconnect_reset(struct reconnect *reconnect, const struct client_config *config) {
    *reconnect = (struct reconnect){.backoff = config->backoff_min};
}

/* --- After one that served ---------------------------------------------------------------------------------------- */

/* By another connection, or by other credentials. */
static bool reconnect_mends(const struct client_config *config, int status) {
    return status == EVLOCK_EUNREACHABLE || status == EVLOCK_EPROTOCOL ||
           (status == EVLOCK_EAUTH && config->renews_credentials);
}

/* The pause that it earns is little beside the time that it served. Else servers that end connections as soon as they
 * have answered would be connected to without end. */
static bool reconnect_lasted(const struct reconnect *reconnect, const struct client_config *config, int64_t span) {
    return span >= evl_min(reconnect->brief * LASTING, config->backoff_max);
}

/* One that was of use, or lasted, is worth an immediate try, and the first that does not last is. Then there are pauses
 * before that, which grow until one lasts. One without commands may have been closed for idling. */
bool evl_reconnect_after(struct reconnect *reconnect, const struct client_config *config, struct served served) {
    bool worth = served.proved || served.span > config->backoff_max, at_once;

    if (reconnect_lasted(reconnect, config, served.span))
        reconnect->brief = 0;
    at_once = worth && reconnect->brief == 0 && reconnect_mends(config, served.status);
    if (worth) {
        reconnect->backoff = evl_max(reconnect->brief, config->backoff_min);
        reconnect->brief = evl_min(evl_max(2 * reconnect->brief, config->backoff_min), config->backoff_max);
    }
    return at_once;
}

/* --- After one that came to nothing ------------------------------------------------------------------------------- */

/* A quick return cannot help. */
static bool reconnect_is_hopeless(struct trouble why) {
    switch (why.status) {
    case EVLOCK_EAUTH:
    case EVLOCK_ECERT:
    case EVLOCK_EPERM:
    case EVLOCK_EUNSUPPORTED:
    case EVLOCK_ESAME:
    case EVLOCK_EMASTER:
        return true;
    default:
        break;
    }
    switch (evl_reply_error(why.words)) {
    case ERROR_CROWDED:
    case ERROR_OVER_LIMIT:
        return true;
    default:
        return false;
    }
}

static int64_t reconnect_spread(int64_t pause, uint64_t random) {
    return pause / 2 + (int64_t)(random % (uint64_t)(pause / 2 + 1));
}

/* Where it is known when a connection is of use, it is no failure: the pauses begin anew. */
int64_t evl_reconnect_pause(struct reconnect *reconnect, const struct client_config *config, struct trouble why,
                            int64_t now, uint64_t random) {
    int64_t least = config->backoff_min, most = config->backoff_max, from = evl_max(now, reconnect->not_before);
    bool known = reconnect->not_before != 0;
    int64_t pause = known ? least : reconnect_is_hopeless(why) ? most : reconnect->backoff;

    if (why.status == EVLOCK_EPROTOCOL && reconnect->nonsense < 2)
        reconnect->nonsense++;
    reconnect->backoff = known ? least : evl_min(2 * pause, most);
    reconnect->not_before = 0;
    return from + reconnect_spread(pause, random);
}
