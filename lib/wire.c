/* Commands and replies; see wire.h. */
#include "wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <evlock/evlock.h>

#include "memory.h"
#include "scripts.h"
#include "status.h"

enum { ACQUIRE_FENCED, ADD, ADOPT, BREAK, HAND, JOIN, LOOK, RAISE, REARM, RELEASE, RENEW, RENEW_MANY, REPLACE };

/* A fence counter that nobody used for so long goes; the next one starts from the clock. */
static const int64_t fence_ttl = INT64_C(7) * 24 * 3600 * 1000000;

const struct script evl_scripts[] = {
    [ACQUIRE_FENCED] = {"fenced", evl_script_fenced, evl_script_fenced_sha},
    [ADD] = {"add", evl_script_add, evl_script_add_sha},
    [ADOPT] = {"adopt", evl_script_adopt, evl_script_adopt_sha},
    [BREAK] = {"break", evl_script_break, evl_script_break_sha},
    [HAND] = {"hand", evl_script_hand, evl_script_hand_sha},
    [JOIN] = {"join", evl_script_join, evl_script_join_sha},
    [LOOK] = {"look", evl_script_look, evl_script_look_sha},
    [RAISE] = {"raise", evl_script_raise, evl_script_raise_sha},
    [REARM] = {"rearm", evl_script_rearm, evl_script_rearm_sha},
    [RELEASE] = {"release", evl_script_release, evl_script_release_sha},
    [RENEW] = {"renew", evl_script_renew, evl_script_renew_sha},
    [RENEW_MANY] = {"renew_many", evl_script_renew_many, evl_script_renew_many_sha},
    [REPLACE] = {"replace", evl_script_replace, evl_script_replace_sha},
};
const unsigned evl_script_count = sizeof(evl_scripts) / sizeof(evl_scripts[0]);

/* In front of the arguments: "*", a count, and the end of the line. */
#define HEAD_SIZE 8

static char *put(char *to, const void *data, size_t len) {
    memcpy(to, data, len);
    return to + len;
}

/* The digits of a number; snprintf() takes as long as all the rest of a command. */
static char *put_number(char *to, uint64_t number) {
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return put(to, digits + at, sizeof(digits) - at);
}

/* An argument's length, behind which its bytes follow; most have two digits. */
static char *put_length(char *to, size_t len) {
    *to++ = '$';
    if (len < 10 || len >= 100) {
        to = put_number(to, len);
    } else {
        *to++ = (char)('0' + len / 10);
        *to++ = (char)('0' + len % 10);
    }
    return put(to, "\r\n", 2);
}

static void begin(struct command *command) {
    command->count = 0;
    command->end = command->text + HEAD_SIZE;
    command->script = NULL;
}

static void push(struct command *command, const void *data, size_t len) {
    assert(len + 32 <= (size_t)(command->text + sizeof(command->text) - command->end));
    command->count++;
    command->end = put(put(put_length(command->end, len), data, len), "\r\n", 2);
}

static void push_word(struct command *command, const char *word) {
    push(command, word, strlen(word));
}

static void push_number(struct command *command, int64_t number) {
    char digits[24];

    push(command, digits, (size_t)(put_number(digits, (uint64_t)number) - digits));
}

/* Arguments that are always the same, written as they are sent. */
static void push_ready(struct command *command, unsigned count, const char *text, size_t len) {
    command->count += count;
    command->end = put(command->end, text, len);
}

#define READY(text) text, sizeof(text) - 1

struct bytes evl_command_text(struct command *command) {
    char *text = command->text + HEAD_SIZE;
    unsigned count = command->count;

    *--text = '\n';
    *--text = '\r';
    do
        *--text = (char)('0' + count % 10);
    while ((count /= 10) > 0);
    *--text = '*';
    assert(text >= command->text);
    return (struct bytes){text, (size_t)(command->end - text)};
}

/* Milliseconds, rounded up: the server must not keep less than was agreed. */
static int64_t ms(int64_t ttl) {
    return (ttl + 999) / 1000;
}

void evl_command_key(struct command *command, const char *verb, struct bytes key) {
    begin(command);
    push_word(command, verb);
    push(command, key.data, key.len);
}

#define EVALSHA "$7\r\nEVALSHA\r\n$40\r\n"
#define EVAL "$4\r\nEVAL\r\n"

static void begin_script(struct command *command, unsigned script, unsigned keys) {
    begin(command);
    command->script = &evl_scripts[script];
    push_ready(command, 2, READY(EVALSHA));
    command->end = put(put(command->end, command->script->sha, 40), "\r\n", 2);
    push_number(command, keys);
}

char *evl_command_spelled(const struct command *command, size_t *ret_len) {
    const char *rest = command->text + HEAD_SIZE + strlen(EVALSHA) + 40 + 2;
    size_t rest_len = (size_t)(command->end - rest), len = strlen(command->script->text);
    char *text = evl_alloc(64 + len + rest_len), *end = text;

    if (!text)
        return NULL;
    *end++ = '*';
    end = put(put_number(end, command->count), "\r\n", 2);
    end = put_length(put(end, EVAL, strlen(EVAL)), len);
    end = put(put(end, command->script->text, len), "\r\n", 2);
    *ret_len = (size_t)(put(end, rest, rest_len) - text);
    return text;
}

static bool has_tag(struct bytes key) {
    const char *open = memchr(key.data, '{', key.len);
    const char *close = open ? memchr(open, '}', key.len - (size_t)(open - (const char *)key.data)) : NULL;

    return close && close > open + 1;
}

bool evl_key_has_company(struct bytes key) {
    return has_tag(key) || !memchr(key.data, '}', key.len);
}

/* What belongs to a lock shares its cluster slot: by the lock's own hash tag, or by all of its name as one. Two
 * colons keep what belongs to "{a}" apart from what belongs to "a". */
static void push_beside(struct command *command, struct bytes key, const char *suffix) {
    char beside[544], *end = beside;
    bool tag = has_tag(key);

    if (!tag)
        *end++ = '{';
    end = put(end, key.data, key.len);
    *end++ = tag ? ':' : '}';
    end = put(end, suffix, strlen(suffix));
    push(command, beside, (size_t)(end - beside));
}

static void push_fence_key(struct command *command, struct bytes key) {
    push_beside(command, key, ":fence");
}

/* The plain SET costs the server half of what a script does. */
static void acquire(struct command *command, struct bytes key, struct bytes token, int64_t ttl) {
    begin(command);
    push_ready(command, 1, READY("$3\r\nSET\r\n"));
    push(command, key.data, key.len);
    push(command, token.data, token.len);
    push_ready(command, 1, READY("$2\r\nNX\r\n"));
    if (ttl) {
        push_ready(command, 1, READY("$2\r\nPX\r\n"));
        push_number(command, ms(ttl));
    }
}

void evl_command_fenced(struct command *command, struct bytes key, struct bytes token, int64_t ttl, bool only) {
    /* A tenth of a second, for several: they seldom disagree about it. One that restarted, and so may know an old
     * number alone, does not count before that has passed. */
    const char *grain = only ? "1" : "100000";

    begin_script(command, ACQUIRE_FENCED, 2);
    push(command, key.data, key.len);
    push_fence_key(command, key);
    push(command, token.data, token.len);
    push_number(command, ms(ttl));
    push_number(command, ms(fence_ttl));
    push(command, grain, strlen(grain));
}

void evl_command_raise(struct command *command, struct bytes key, int64_t fence) {
    begin_script(command, RAISE, 1);
    push_fence_key(command, key);
    push_number(command, fence);
    push_number(command, ms(fence_ttl));
}

void evl_command_renewals(struct command *command, const struct renewal *renewals, unsigned count) {
    begin_script(command, RENEW_MANY, count);
    for (unsigned i = 0; i < count; i++)
        push(command, renewals[i].key.data, renewals[i].key.len);
    push_number(command, ms(renewals[0].ttl));
    for (unsigned i = 0; i < count; i++)
        push(command, renewals[i].token.data, renewals[i].token.len);
}

size_t evl_renewal_size(const struct renewal *renewal) {
    return renewal->key.len + renewal->token.len + 32; /* twice "$512", and the ends of four lines */
}

static void begin_queue(struct command *command, unsigned script, struct bytes key) {
    begin_script(command, script, 3);
    push(command, key.data, key.len);
    push_beside(command, key, ":queue");
    push_fence_key(command, key);
}

/* As grant.lua takes it apart. */
size_t evl_waiter_write(char to[WAITER_SIZE], struct bytes token, const struct waiter *waiter) {
    char *end = put(to, waiter->channel, strlen(waiter->channel));

    *end++ = ' ';
    end = put(end, waiter->ticket, strlen(waiter->ticket));
    *end++ = ' ';
    end = put_number(end, (uint64_t)ms(waiter->ttl));
    end = put(end, waiter->fenced ? " 1 " : " 0 ", 3);
    return (size_t)(put(end, token.data, token.len) - to);
}

static void push_waiter(struct command *command, struct bytes token, const struct waiter *waiter) {
    char text[WAITER_SIZE];

    push(command, text, evl_waiter_write(text, token, waiter));
}

void evl_command_queue(struct command *command, const char *verb, struct bytes key, struct bytes member) {
    begin(command);
    push_word(command, verb);
    push_beside(command, key, ":queue");
    if (member.data)
        push(command, member.data, member.len);
}

void evl_command_join(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter) {
    begin_queue(command, JOIN, key);
    push_waiter(command, token, waiter);
    push(command, token.data, token.len);
    push_number(command, ms(waiter->ttl));
    push_word(command, waiter->fenced ? "1" : "0");
}

void evl_command_hand(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter) {
    begin_queue(command, HAND, key);
    push(command, token.data, token.len);
    if (waiter->ticket)
        push_waiter(command, token, waiter);
}

void evl_command_look(struct command *command, struct bytes key) {
    begin_script(command, LOOK, 1);
    push(command, key.data, key.len);
}

void evl_command_break(struct command *command, struct bytes key, struct bytes mark, bool queue) {
    if (queue) {
        begin_queue(command, BREAK, key);
    } else {
        begin_script(command, BREAK, 1);
        push(command, key.data, key.len);
    }
    push(command, mark.data, mark.len);
}

void evl_command_wait(struct command *command, int64_t replicas, int64_t timeout) {
    begin(command);
    push_word(command, "WAIT");
    push_number(command, replicas);
    push_number(command, ms(timeout));
}

void evl_command_lease(struct command *command, enum lease_command kind, struct bytes key, struct bytes token,
                       int64_t ttl) {
    static const unsigned script_of[] = {
        [LEASE_ADOPT] = ADOPT, [LEASE_RENEW] = RENEW,     [LEASE_REARM] = REARM,     [LEASE_MEND] = REARM,
        [LEASE_ADD] = ADD,     [LEASE_REPLACE] = REPLACE, [LEASE_RELEASE] = RELEASE,
    };

    if (kind == LEASE_ACQUIRE) {
        acquire(command, key, token, ttl);
        return;
    }
    begin_script(command, script_of[kind], 1);
    push(command, key.data, key.len);
    push(command, token.data, token.len);
    if (kind != LEASE_ADOPT && kind != LEASE_RELEASE)
        push_number(command, ms(ttl));
}

/* As the longest that a lock may have; a foreign key may live longer, which then does not count. */
static const int64_t longest_ttl_ms = INT64_C(10) * 366 * 24 * 3600 * 1000;

/* The scripts' numbers have gaps beyond this, and draw none there. */
static const int64_t fence_most = INT64_C(1) << 53;

static bool answer_integer(enum lease_command kind, int64_t value, struct lease_answer *answer) {
    if (value == 0) {
        answer->verdict = LEASE_NO;
        return true;
    }
    answer->verdict = LEASE_YES;
    if (kind == LEASE_RELEASE)
        return value == 1;
    if (kind == LEASE_ACQUIRE || kind == LEASE_RAISE) {
        answer->fence = value;
        return value > 0 && value <= fence_most;
    }
    if (value < -1)
        return false;
    answer->ttl = value == -1 ? LEASE_NEVER : (value < longest_ttl_ms ? value : longest_ttl_ms) * 1000;
    if (value == -1 && kind == LEASE_ADD) {
        answer->verdict = LEASE_REFUSED;
        answer->status = evl_fail(EVLOCK_ENOTTL, "the key has no expiry");
    }
    return value > 0 || (value == -1 && (kind == LEASE_ADD || kind == LEASE_ADOPT));
}

/* "TIME AHEAD LEFT", as join.lua says it. */
static bool answer_queued(const char *text, struct lease_answer *answer) {
    int64_t left;
    char *end;

    answer->time = strtoll(text, &end, 10);
    answer->ahead = strtoll(end, &end, 10);
    left = strtoll(end, &end, 10);
    if (*end || left < -1)
        return false;
    answer->verdict = LEASE_QUEUED;
    answer->ttl = left == -1 ? LEASE_NEVER : (left < longest_ttl_ms ? left : longest_ttl_ms) * 1000;
    return answer->time > 0 && answer->ahead >= 0;
}

bool evl_command_answer(enum lease_command kind, const struct lease *lease, const struct reply *reply,
                        struct lease_answer *ret_answer) {
    bool plain = kind == LEASE_ACQUIRE && !evl_lease_fenced(lease) && !evl_lease_queued(lease);
    struct reply_meaning meaning;
    bool gone;

    memset(ret_answer, 0, sizeof(*ret_answer));
    switch (reply->type) {
    case REPLY_LOST:
        ret_answer->verdict = LEASE_UNKNOWN;
        ret_answer->status = EVLOCK_EUNREACHABLE;
        evl_error_set(reply->text);
        return true;
    case REPLY_ERROR:
        meaning = evl_reply_meaning(reply->text);
        /* A key of another type says as surely as another token that theirs is gone. */
        gone = meaning.status == EVLOCK_EWRONGTYPE && evl_lease_prolongs(kind);
        ret_answer->verdict = gone ? LEASE_NO : meaning.verdict;
        ret_answer->status = meaning.status;
        evl_error_set(reply->text);
        return true;
    case REPLY_OK:
        ret_answer->verdict = LEASE_YES;
        return plain;
    case REPLY_NIL:
        ret_answer->verdict = LEASE_NO;
        return plain;
    case REPLY_INTEGER:
        if (kind == LEASE_ACQUIRE && evl_lease_queued(lease) && reply->integer == 0)
            return false; /* who has not got it waits */
        return !plain && answer_integer(kind, reply->integer, ret_answer);
    case REPLY_STRING:
        return kind == LEASE_ACQUIRE && evl_lease_queued(lease) && answer_queued(reply->text, ret_answer);
    case REPLY_RENEWED:
        ret_answer->verdict = LEASE_YES;
        ret_answer->ttl = evl_lease_terms(lease)->ttl;
        return kind == LEASE_RENEW;
    case REPLY_AGAIN:
        ret_answer->verdict = LEASE_AGAIN;
        return kind == LEASE_RENEW;
    case REPLY_OTHER:
        break;
    }
    return false;
}
