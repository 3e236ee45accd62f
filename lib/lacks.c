/* What a server lacks; see lacks.h. */
#include "lacks.h"

#include <stddef.h>

static const struct lack {
    enum evlock_missing what;
    enum evlock_log_level level;
    const char *name;
    const char *cost;
} lacks[] = {
    {EVLOCK_MISSING_SCRIPTS, EVLOCK_LOG_WARN, "scripts", "there are no locks without them"},
    {EVLOCK_MISSING_DIGESTS, EVLOCK_LOG_WARN, "scripts by their digest", "each command carries its whole script"},
    {EVLOCK_MISSING_BATCHES, EVLOCK_LOG_INFO, "renewals in batches", "each lock is renewed by a command of its own"},
    {EVLOCK_MISSING_IDENTITY, EVLOCK_LOG_WARN, "a run_id", "data that it loses are noticed late"},
    {EVLOCK_MISSING_KILL, EVLOCK_LOG_INFO, "the end of lost connections", "an unknown attempt is undone for a ttl"},
    {EVLOCK_MISSING_CLOCK, EVLOCK_LOG_WARN, "TIME in scripts", "its clock is brought, and known less exactly"},
    {EVLOCK_MISSING_TIME, EVLOCK_LOG_WARN, "TIME", "there is no fence and no queue, and waiters poll"},
    {EVLOCK_MISSING_CHANNELS, EVLOCK_LOG_WARN, "messages", "there is no queue, and waiters poll"},
    {EVLOCK_MISSING_WAIT, EVLOCK_LOG_WARN, "WAIT", "no lock with min_replicas can be had"},
};

void evl_lacks_note(uint32_t *mask, enum evlock_missing what, const char *why, const struct connection *connection) {
    const struct lack *lack = lacks;

    if (*mask & what)
        return;
    *mask |= what;
    while (lack->what != what)
        lack++;
    evl_connection_log(connection, lack->level, "lacks %s, so %s: %s", lack->name, lack->cost, why);
}
