/* How a lock stands, as the server says it. */
#include <stdio.h>
#include <string.h>

#include "duration.h"
#include "lookup.h"

evlock_options lookup_options(const struct options *options) {
    evlock_options wanted = options_lock(options);
    int64_t most = options->max_ttl_ms;
    wanted.ttl_ms = wanted.ttl_ms < most ? wanted.ttl_ms : most;
    wanted.min_replicas = 0;
    return wanted;
}

static bool lookup_counts(const struct options *options) {
    return options->url_count <= 1;
}

unsigned lookup_parts(const struct options *options) {
    unsigned parts = (unsigned)EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL | EVLOCK_QUERY_HOLDER;
    return lookup_counts(options) ? parts | EVLOCK_QUERY_WAITERS : parts;
}

void lookup_keep(struct lookup *lookup, const struct options *options, const evlock_answer *answer) {
    *lookup = (struct lookup){
        .locked = answer->locked,
        .counted = lookup_counts(options),
        .ttl_ms = answer->ttl_ms,
        .waiters = answer->waiters,
        .holder_length = answer->holder_len < EVLOCK_TOKEN_MAX ? answer->holder_len : EVLOCK_TOKEN_MAX,
    };
    memcpy(lookup->holder, answer->holder, lookup->holder_length);
}

void lookup_json(const struct lookup *lookup, struct json *json) {
    json_truth(json, "locked", lookup->locked);
    if (lookup->holder_length)
        json_bytes(json, "holder", lookup->holder, lookup->holder_length);
    else
        json_null(json, "holder");
    if (lookup->locked && lookup->ttl_ms != EVLOCK_NO_EXPIRY)
        json_number(json, "remaining_ms", lookup->ttl_ms);
    else
        json_null(json, "remaining_ms");
    if (lookup->counted)
        json_number(json, "waiters", lookup->waiters);
    else
        json_null(json, "waiters");
}

const char *lookup_remaining(const struct lookup *lookup, char *text, size_t size) {
    if (!lookup->locked)
        snprintf(text, size, "-");
    else if (lookup->ttl_ms == EVLOCK_NO_EXPIRY)
        snprintf(text, size, "for ever");
    else
        duration_print(lookup->ttl_ms, text, size);
    return text;
}

bool lookup_is_passing(int status) {
    return status == EVLOCK_EUNREACHABLE || status == EVLOCK_EREFUSED || status == EVLOCK_EQUORUM;
}
