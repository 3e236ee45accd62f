/*
 * How a lock stands, as the server says it: for the subcommands that ask and do not hold. It owns what was answered.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "json.h"
#include "session.h"

/** What was answered. */
struct lookup {
    bool locked;
    bool counted; /* the waiters are known: on one server */
    int64_t ttl_ms;
    int64_t waiters;
    char holder[EVLOCK_TOKEN_MAX + 1];
    size_t holder_length;
};

/** Options of a handle that only asks, releases or breaks: as options_lock(), with a ttl that any server takes. */
evlock_options lookup_options(const struct options *options);

/** What evlock_query() can be asked for on these servers. */
unsigned lookup_parts(const struct options *options);

/** Keeps an answer to that. */
void lookup_keep(struct lookup *lookup, const struct options *options, const evlock_answer *answer);

/** Writes the members of a JSON object: locked, holder, remaining_ms, waiters. */
void lookup_json(const struct lookup *lookup, struct json *json);

/** Writes what is left of the lease for people: "4.2s", "for ever", "-". Returns `text`. */
const char *lookup_remaining(const struct lookup *lookup, char *text, size_t size);

/** Whether a question is worth asking again later: the server is away, or refuses for now. */
bool lookup_is_passing(int status);

#endif
