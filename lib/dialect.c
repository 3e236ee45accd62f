/* What a lock says on the wire; see dialect.h. */
#include "dialect.h"

#include <stdlib.h>
#include <string.h>

#include <evlock/evlock.h>

#include "check.h"
#include "minmax.h"

/* --- How a lease's commands are answered -------------------------------------------------------------------------- */

/* In milliseconds, as the longest that a lock may have; a foreign key may live longer, which then does not count. */
static const int64_t longest_ttl = INT64_C(10) * 366 * 24 * 3600 * 1000;

/* The scripts' numbers have gaps beyond this, and draw none there. */
static const int64_t fence_most = INT64_C(1) << 53;

/* -1: no expiry. Whether it may be less than 0 at all is for the reader to say. */
static int64_t dialect_ttl_from(int64_t ms) {
    return ms == -1 ? LEASE_NEVER : evl_min(evl_max(ms, 0), longest_ttl) * 1000;
}

static bool dialect_says_ok_or_nil(const struct reply *reply, int64_t ttl, struct reading *ret) {
    (void)ttl;
    ret->answer.verdict = reply->type == REPLY_OK ? LEASE_YES : LEASE_NO;
    return reply->type == REPLY_OK || reply->type == REPLY_NIL;
}

/* A number, which is 0 if the answer is no. */
static bool dialect_says_number(const struct reply *reply, struct reading *ret) {
    ret->answer.verdict = reply->integer ? LEASE_YES : LEASE_NO;
    return reply->type == REPLY_INTEGER;
}

/* 1: done. 0: the token is not there. */
static bool dialect_says_done(const struct reply *reply, int64_t ttl, struct reading *ret) {
    (void)ttl;
    return dialect_says_number(reply, ret) && (reply->integer == 0 || reply->integer == 1);
}

/* As dialect_says_done(). 2: done, and not handed on for want of the clock. */
static bool dialect_says_handed(const struct reply *reply, int64_t ttl, struct reading *ret) {
    ret->no_clock = reply->type == REPLY_INTEGER && reply->integer == 2;
    return dialect_says_done(reply, ttl, ret) || ret->no_clock;
}

/* The fence. 0: another has the lock. */
static bool dialect_says_fence(const struct reply *reply, int64_t ttl, struct reading *ret) {
    (void)ttl;
    ret->answer.fence = reply->integer;
    return dialect_says_number(reply, ret) && reply->integer >= 0 && reply->integer <= fence_most;
}

/* The fence, or "FENCE SPARE", as fence.lua says it. */
static bool dialect_says_drawn(const struct reply *reply, int64_t ttl, struct reading *ret) {
    struct lease_answer *answer = &ret->answer;
    int64_t spare;
    char *end;

    if (reply->type != REPLY_STRING)
        return dialect_says_fence(reply, ttl, ret);
    answer->verdict = LEASE_YES;
    answer->fence = strtoll(reply->text, &end, 10);
    spare = strtoll(end, &end, 10);
    answer->spare = (uint16_t)spare;
    return !*end && answer->fence > 0 && answer->fence <= fence_most && spare > 0 && spare <= UINT16_MAX;
}

/* To who has it: 1, or what it drew. To who waits: "TIME AHEAD LEFT", as join.lua says it. */
static bool dialect_says_place(const struct reply *reply, int64_t ttl, struct reading *ret) {
    struct lease_answer *answer = &ret->answer;
    int64_t left;
    char *end;

    if (reply->type != REPLY_STRING || strchr(reply->text, ' ') == strrchr(reply->text, ' '))
        return dialect_says_drawn(reply, ttl, ret) && answer->verdict == LEASE_YES;
    answer->verdict = LEASE_QUEUED;
    answer->time = strtoll(reply->text, &end, 10);
    answer->ahead = strtoll(end, &end, 10);
    left = strtoll(end, &end, 10);
    answer->ttl = dialect_ttl_from(left);
    return !*end && left >= -1 && answer->time >= 0 && answer->ahead >= 0;
}

/* The ttl that the server has now. 0: the token is not there. */
static bool dialect_says_ttl(const struct reply *reply, int64_t ttl, struct reading *ret) {
    (void)ttl;
    ret->answer.ttl = dialect_ttl_from(reply->integer);
    return dialect_says_number(reply, ret) && reply->integer >= 0;
}

/* -1: it has no expiry. */
static bool dialect_says_ttl_or_never(const struct reply *reply, int64_t ttl, struct reading *ret) {
    return dialect_says_ttl(reply, ttl, ret) || (reply->type == REPLY_INTEGER && reply->integer == -1);
}

/* -1: it has no expiry to add to. */
static bool dialect_says_sum(const struct reply *reply, int64_t ttl, struct reading *ret) {
    if (reply->type != REPLY_INTEGER || reply->integer != -1)
        return dialect_says_ttl(reply, ttl, ret);
    ret->answer.verdict = LEASE_REFUSED;
    ret->answer.status = EVLOCK_ENOTTL;
    ret->words = "the key has no expiry";
    return true;
}

/* As dialect_says_ttl_or_never(); to a member of a batch, what reply.h has for it. */
static bool dialect_says_renewed(const struct reply *reply, int64_t ttl, struct reading *ret) {
    switch (reply->type) {
    case REPLY_RENEWED:
        ret->answer.verdict = LEASE_YES;
        ret->answer.ttl = ttl;
        return true;
    case REPLY_AGAIN:
        ret->answer.verdict = LEASE_AGAIN;
        return true;
    default:
        return dialect_says_ttl_or_never(reply, ttl, ret);
    }
}

/* OK: renewed for as long as was asked. Nothing: the token is not there. */
static bool dialect_says_refreshed(const struct reply *reply, int64_t ttl, struct reading *ret) {
    ret->answer.ttl = ttl;
    return dialect_says_ok_or_nil(reply, ttl, ret);
}

/* --- A lease's commands ------------------------------------------------------------------------------------------- */

#define SCRIPT(name) &evl_scripts[SCRIPT_##name]

/* The plain SET costs the server half of what a script does. */
static const struct command_row row_set = {{NULL, 0, {ARG_SET, ARG_LOCK, ARG_TOKEN, ARG_NX, ARG_PX_TTL}},
                                           dialect_says_ok_or_nil};
static const struct command_row row_set_fenced = {
    {SCRIPT(FENCED), 2, {ARG_LOCK, ARG_COUNTER, ARG_TOKEN, ARG_TTL, ARG_FENCE_TTL, ARG_GRAIN, ARG_SPARE, ARG_CLOCK}},
    dialect_says_drawn};
static const struct command_row row_join = {
    {SCRIPT(JOIN), 3, {ARG_LOCK, ARG_QUEUE, ARG_COUNTER, ARG_WAITER, ARG_TOKEN, ARG_CLOCK}}, dialect_says_place};
static const struct command_row row_adopt = {{SCRIPT(ADOPT), 1, {ARG_LOCK, ARG_TOKEN}}, dialect_says_ttl_or_never};
static const struct command_row row_raise = {{SCRIPT(RAISE), 1, {ARG_COUNTER, ARG_FENCE, ARG_FENCE_TTL, ARG_CLOCK}},
                                             dialect_says_fence};
static const struct command_row row_renew = {{SCRIPT(RENEW), 1, {ARG_LOCK, ARG_TOKEN, ARG_TTL}}, dialect_says_renewed};
/* The server's own, where there is one: see native.h. */
static const struct command_row row_refresh = {
    {NULL, 0, {ARG_SET, ARG_LOCK, ARG_TOKEN, ARG_IFEQ, ARG_TOKEN, ARG_PX_TTL}}, dialect_says_refreshed};
static const struct command_row row_rearm = {{SCRIPT(REARM), 1, {ARG_LOCK, ARG_TOKEN, ARG_TTL}},
                                             dialect_says_ttl_or_never};
static const struct command_row row_add = {{SCRIPT(ADD), 1, {ARG_LOCK, ARG_TOKEN, ARG_TTL}}, dialect_says_sum};
static const struct command_row row_replace = {{SCRIPT(REPLACE), 1, {ARG_LOCK, ARG_TOKEN, ARG_TTL}}, dialect_says_ttl};
static const struct command_row row_release = {{SCRIPT(RELEASE), 1, {ARG_LOCK, ARG_TOKEN}}, dialect_says_done};
static const struct command_row row_hand = {
    {SCRIPT(HAND), 3, {ARG_LOCK, ARG_QUEUE, ARG_COUNTER, ARG_TOKEN, ARG_WAITER, ARG_CLOCK}}, dialect_says_handed};

const struct form evl_renewals = {SCRIPT(RENEW_MANY), FORM_KEY_EACH, {ARG_LOCKS, ARG_TTL, ARG_TOKENS}};

const struct form evl_renewals_scattered = {SCRIPT(RENEW_ANY), 0, {ARG_TTL, ARG_LOCKS, ARG_TOKENS}};

/* --- How questions are answered ----------------------------------------------------------------------------------- */

static bool dialect_finds_text(const struct reply *reply, struct found *ret) {
    ret->there = reply->type == REPLY_STRING;
    ret->text = (struct bytes){reply->text, reply->len};
    return reply->type == REPLY_STRING || reply->type == REPLY_NIL;
}

/* As list.lua says it; its keys are taken apart by who asked. */
static bool dialect_finds_page(const struct reply *reply, struct found *ret) {
    return dialect_finds_text(reply, ret) && ret->there;
}

/* A text that becomes part of a command. */
static bool dialect_finds_mark(const struct reply *reply, struct found *ret) {
    return dialect_finds_text(reply, ret) && (!ret->there || ret->text.len <= MARK_SIZE);
}

static bool dialect_finds_number(const struct reply *reply, struct found *ret) {
    ret->there = true;
    ret->number = reply->integer;
    return reply->type == REPLY_INTEGER;
}

/* Whether it was ended. 2: it was, and not handed on for want of the clock. */
static bool dialect_finds_end(const struct reply *reply, struct found *ret) {
    ret->no_clock = reply->type == REPLY_INTEGER && reply->integer == 2;
    return dialect_finds_number(reply, ret);
}

/* One more of them can be counted, too. */
static bool dialect_is_count(int64_t number) {
    return number >= 0 && number < INT64_MAX;
}

static bool dialect_finds_waiters(const struct reply *reply, struct found *ret) {
    ret->there = true;
    ret->waiters = reply->integer;
    return reply->type == REPLY_INTEGER && dialect_is_count(reply->integer);
}

/* How many are ahead, and one more. */
static bool dialect_finds_place(const struct reply *reply, struct found *ret) {
    ret->there = reply->type == REPLY_INTEGER;
    if (reply->type == REPLY_NIL)
        return true;
    if (reply->type != REPLY_INTEGER || !dialect_is_count(reply->integer))
        return false;
    ret->place = reply->integer + 1;
    return true;
}

/* By what PTTL says. -2: there is no key. -1: it has no expiry. 0: it has less than a millisecond left. */
static bool dialect_note_ttl(int64_t pttl, struct found *ret) {
    ret->there = pttl != -2;
    if (ret->there)
        ret->ttl = pttl == -1 ? INT64_MAX : evl_max(pttl, 1);
    return pttl >= -2;
}

static bool dialect_finds_ttl(const struct reply *reply, struct found *ret) {
    return reply->type == REPLY_INTEGER && dialect_note_ttl(reply->integer, ret);
}

/* "LEFT WAITERS AHEAD VALUE", as survey.lua says it. */
static bool dialect_finds_state(const struct reply *reply, struct found *ret) {
    int64_t numbers[3];
    const char *text = reply->text;
    char *end;

    if (reply->type != REPLY_STRING)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        numbers[i] = strtoll(text, &end, 10);
        if (end == text || *end != ' ')
            return false;
        text = end + 1;
    }
    if (!dialect_note_ttl(numbers[0], ret) || !dialect_is_count(numbers[1]) ||
        (numbers[2] != -1 && !dialect_is_count(numbers[2])))
        return false;
    ret->waiters = numbers[1];
    ret->place = numbers[2] + 1;
    ret->text = (struct bytes){text, reply->len - (size_t)(text - reply->text)};
    return true;
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static const struct ask_row ask_get = {{NULL, 0, {ARG_GET, ARG_LOCK}}, dialect_finds_text};
static const struct ask_row ask_pttl = {{NULL, 0, {ARG_PTTL, ARG_LOCK}}, dialect_finds_ttl};
static const struct ask_row ask_zcard = {{NULL, 0, {ARG_ZCARD, ARG_QUEUE}}, dialect_finds_waiters};
static const struct ask_row ask_zrank = {{NULL, 0, {ARG_ZRANK, ARG_QUEUE, ARG_SOUGHT}}, dialect_finds_place};
static const struct ask_row ask_state = {{SCRIPT(SURVEY), 1, {ARG_LOCK}}, dialect_finds_state};
static const struct ask_row ask_whole = {{SCRIPT(SURVEY), 2, {ARG_LOCK, ARG_QUEUE, ARG_SOUGHT}}, dialect_finds_state};
static const struct ask_row ask_look = {{SCRIPT(LOOK), 1, {ARG_LOCK}}, dialect_finds_mark};
static const struct ask_row ask_end = {{SCRIPT(BREAK), 1, {ARG_LOCK, ARG_SOUGHT}}, dialect_finds_number};
static const struct ask_row ask_hand_on = {
    {SCRIPT(BREAK), 3, {ARG_LOCK, ARG_QUEUE, ARG_COUNTER, ARG_SOUGHT, ARG_CLOCK}}, dialect_finds_end};
static const struct ask_row ask_renewal = {{SCRIPT(RENEW), 1, {ARG_LOCK, ARG_TOKEN, ARG_TTL}}, dialect_finds_number};
static const struct ask_row ask_list = {{SCRIPT(LIST), 0, {ARG_SOUGHT}}, dialect_finds_page};
static const struct ask_row ask_wait = {{NULL, 0, {ARG_WAIT, ARG_REPLICAS, ARG_TIMEOUT}}, dialect_finds_number};

/* --- Dialects ----------------------------------------------------------------------------------------------------- */

/* What all have in common, and in what they differ: how the lock is taken, given back, and ended by force. */
#define DIALECT(how_taken, how_given, how_ended)                                                                       \
    {                                                                                                                  \
        .commands = {[LEASE_ACQUIRE] = &(how_taken), [LEASE_ADOPT] = &row_adopt,     [LEASE_RAISE] = &row_raise,       \
                     [LEASE_RENEW] = &row_renew,     [LEASE_REFRESH] = &row_refresh, [LEASE_REARM] = &row_rearm,       \
                     [LEASE_MEND] = &row_rearm,      [LEASE_RESTORE] = &row_rearm,   [LEASE_ADD] = &row_add,           \
                     [LEASE_REPLACE] = &row_replace, [LEASE_RELEASE] = &(how_given)},                                  \
        .asks = {[ASK_TOKEN] = &ask_get,       [ASK_TYPE] = &ask_get,      [ASK_TTL] = &ask_pttl,                      \
                 [ASK_WAITERS] = &ask_zcard,   [ASK_PLACE] = &ask_zrank,   [ASK_STATE] = &ask_state,                   \
                 [ASK_WHOLE] = &ask_whole,     [ASK_MARK] = &ask_look,     [ASK_BREAK] = &(how_ended),                 \
                 [ASK_RENEWAL] = &ask_renewal, [ASK_REPLICAS] = &ask_wait, [ASK_LIST] = &ask_list},                    \
    }

static const struct dialect dialects[LOCK_KINDS][TAKINGS] = {
    [LOCK_PLAIN] =
        {
            [TAKE_AT_ONCE] = DIALECT(row_set, row_release, ask_end),
            [TAKE_FENCED] = DIALECT(row_set_fenced, row_release, ask_end),
        },
    [LOCK_QUEUED] =
        {
            [TAKE_AT_ONCE] = DIALECT(row_set, row_hand, ask_hand_on),
            [TAKE_FENCED] = DIALECT(row_set_fenced, row_hand, ask_hand_on),
            [TAKE_IN_LINE] = DIALECT(row_join, row_hand, ask_hand_on),
        },
};

bool evl_dialect_renews_plainly(const struct dialect *dialect) {
    return dialect->commands[LEASE_RENEW] == &row_renew;
}

bool evl_dialect_releases_plainly(const struct dialect *dialect) {
    return dialect->commands[LEASE_RELEASE] == &row_release;
}

const struct dialect *evl_dialect(enum lock_kind kind, enum taking taking) {
    const struct dialect *dialect = &dialects[kind][taking];

    assert(dialect->commands[LEASE_ACQUIRE]);
    return dialect;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* Where there is no clock there is no queue: who would wait in it asks again after a pause, as of any lock of another.
 * Unlike the answer that another has it, that leaves open whether the token was granted before. */
static bool dialect_finds_no_queue(const struct dialect *dialect, enum lease_command command, enum reply_error error) {
    return dialect->commands[command] == &row_join && error == ERROR_NO_CLOCK;
}

static void dialect_read_error(const struct dialect *dialect, enum lease_command command, const struct reply *reply,
                               struct reading *ret) {
    struct reply_meaning meaning = evl_reply_meaning(reply->error);
    /* A key of another type says as surely as another token that theirs is gone. */
    bool gone = meaning.status == EVLOCK_EWRONGTYPE && evl_lease_prolongs(command);

    ret->answer.verdict = gone ? LEASE_NO : meaning.verdict;
    ret->answer.status = meaning.status;
    ret->words = reply->text;
    if (dialect_finds_no_queue(dialect, command, reply->error)) {
        ret->answer.verdict = LEASE_REFUSED;
        ret->answer.status = EVLOCK_EHELD;
    }
}

bool evl_dialect_read(const struct dialect *dialect, enum lease_command command, const struct reply *reply, int64_t ttl,
                      struct reading *ret) {
    memset(ret, 0, sizeof(*ret));
    switch (reply->type) {
    case REPLY_LOST:
        ret->answer.verdict = LEASE_UNKNOWN;
        ret->answer.status = EVLOCK_EUNREACHABLE;
        ret->words = reply->text;
        return true;
    case REPLY_ERROR:
        dialect_read_error(dialect, command, reply, ret);
        return true;
    default:
        return dialect->commands[command]->read(reply, ttl, ret);
    }
}

bool evl_dialect_find(const struct dialect *dialect, enum ask ask, const struct reply *reply, struct found *ret) {
    memset(ret, 0, sizeof(*ret));
    return dialect->asks[ask]->read(reply, ret);
}
