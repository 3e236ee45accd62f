/* Commands and replies; see wire.h. */
#include "wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <evlock/evlock.h>

#include "scripts.h"
#include "status.h"

enum { ADD, ADOPT, RELEASE, RENEW, REPLACE };

const struct script evl_scripts[] = {
    [ADD] = {"add", evl_script_add, evl_script_add_sha},
    [ADOPT] = {"adopt", evl_script_adopt, evl_script_adopt_sha},
    [RELEASE] = {"release", evl_script_release, evl_script_release_sha},
    [RENEW] = {"renew", evl_script_renew, evl_script_renew_sha},
    [REPLACE] = {"replace", evl_script_replace, evl_script_replace_sha},
};
const unsigned evl_script_count = sizeof(evl_scripts) / sizeof(evl_scripts[0]);

static void push(struct command *command, const void *data, size_t len) {
    assert(command->argc < COMMAND_ARGS);
    command->argv[command->argc] = data;
    command->len[command->argc++] = len;
}

static void push_word(struct command *command, const char *word) {
    push(command, word, strlen(word));
}

/* Milliseconds, rounded up: the server must not keep less than was agreed. */
static void push_ttl(struct command *command, int64_t ttl) {
    int len = snprintf(command->number, sizeof(command->number), "%" PRId64, (ttl + 999) / 1000);
    push(command, command->number, (size_t)len);
}

static void begin(struct command *command) {
    command->argc = 0;
    command->script = NULL;
}

void evl_command_words(struct command *command, ...) {
    va_list words;
    const char *word;

    begin(command);
    va_start(words, command);
    while ((word = va_arg(words, const char *)))
        push_word(command, word);
    va_end(words);
}

void evl_command_key(struct command *command, const char *verb, struct bytes key) {
    begin(command);
    push_word(command, verb);
    push(command, key.data, key.len);
}

static void begin_script(struct command *command, unsigned script, struct bytes key, struct bytes token) {
    begin(command);
    command->script = &evl_scripts[script];
    push_word(command, "EVALSHA");
    push(command, command->script->sha, 40);
    push_word(command, "1");
    push(command, key.data, key.len);
    push(command, token.data, token.len);
}

/* The plain SET costs the server half of what a script does. */
static void acquire(struct command *command, struct bytes key, struct bytes token, int64_t ttl) {
    begin(command);
    push_word(command, "SET");
    push(command, key.data, key.len);
    push(command, token.data, token.len);
    push_word(command, "NX");
    if (ttl) {
        push_word(command, "PX");
        push_ttl(command, ttl);
    }
}

void evl_command_lease(struct command *command, enum lease_command kind, struct bytes key, struct bytes token,
                       int64_t ttl) {
    static const unsigned script_of[] = {
        [LEASE_ADOPT] = ADOPT,     [LEASE_RENEW] = RENEW,     [LEASE_ADD] = ADD,
        [LEASE_REPLACE] = REPLACE, [LEASE_RELEASE] = RELEASE,
    };

    if (kind == LEASE_ACQUIRE) {
        acquire(command, key, token, ttl);
        return;
    }
    begin_script(command, script_of[kind], key, token);
    if (kind == LEASE_RENEW || kind == LEASE_ADD || kind == LEASE_REPLACE)
        push_ttl(command, ttl);
}

static bool answer_integer(enum lease_command kind, int64_t value, struct lease_answer *answer) {
    if (value == 0) {
        answer->verdict = LEASE_NO;
        return true;
    }
    answer->verdict = LEASE_YES;
    if (kind == LEASE_RELEASE)
        return value == 1;
    answer->ttl = value == -1 ? LEASE_NEVER : value * 1000;
    if (value == -1 && kind == LEASE_ADD) {
        answer->verdict = LEASE_REFUSED;
        answer->status = evl_fail(EVLOCK_ENOTOWNED, "the key has no expiry");
    }
    return value > 0 || (value == -1 && (kind == LEASE_ADD || kind == LEASE_ADOPT));
}

bool evl_command_answer(enum lease_command kind, const struct reply *reply, struct lease_answer *ret_answer) {
    struct reply_meaning meaning;

    memset(ret_answer, 0, sizeof(*ret_answer));
    switch (reply->type) {
    case REPLY_LOST:
        ret_answer->verdict = LEASE_UNKNOWN;
        ret_answer->status = EVLOCK_EUNREACHABLE;
        evl_error_set(reply->text);
        return true;
    case REPLY_ERROR:
        meaning = evl_reply_meaning(reply->text);
        ret_answer->verdict = meaning.verdict;
        ret_answer->status = meaning.status;
        evl_error_set(reply->text);
        return true;
    case REPLY_OK:
        ret_answer->verdict = LEASE_YES;
        return kind == LEASE_ACQUIRE;
    case REPLY_NIL:
        ret_answer->verdict = LEASE_NO;
        return kind == LEASE_ACQUIRE;
    case REPLY_INTEGER:
        return kind != LEASE_ACQUIRE && answer_integer(kind, reply->integer, ret_answer);
    case REPLY_STRING:
    case REPLY_OTHER:
        break;
    }
    return false;
}
