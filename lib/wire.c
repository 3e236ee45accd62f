/* Commands as bytes; see wire.h. */
#include "wire.h"

#include <assert.h>
#include <string.h>

#include "hash_tag.h"
#include "memory.h"

/* In front of the arguments: "*", a count, and the end of the line. */
#define HEAD_SIZE 8

/* Of a key that belongs to a lock: the lock's, and what is put around it. */
#define BESIDE_SIZE 544

#define FENCE_SUFFIX ":fence"

static char *wire_put(char *to, const void *data, size_t len) {
    memcpy(to, data, len);
    return to + len;
}

/* The digits of a number, before `end`; snprintf() takes as long as all the rest of a command. */
static char *wire_digits_of(uint64_t number, char *end) {
    do
        *--end = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return end;
}

static char *wire_put_number(char *to, uint64_t number) {
    char end[20], *digits = wire_digits_of(number, end + sizeof(end));

    return wire_put(to, digits, (size_t)(end + sizeof(end) - digits));
}

/* An argument's length, behind which its bytes follow; most have two digits. */
static char *wire_put_length(char *to, size_t len) {
    *to++ = '$';
    if (len >= 100)
        to = wire_put_number(to, len / 10);
    else if (len >= 10)
        *to++ = (char)('0' + len / 10);
    *to++ = (char)('0' + len % 10);
    return wire_put(to, "\r\n", 2);
}

static void wire_push(struct command *command, const void *data, size_t len) {
    assert(len + 32 <= (size_t)(command->text + sizeof(command->text) - command->end));
    command->count++;
    command->end = wire_put(wire_put(wire_put_length(command->end, len), data, len), "\r\n", 2);
}

static void wire_push_bytes(struct command *command, struct bytes bytes) {
    wire_push(command, bytes.data, bytes.len);
}

static void wire_push_number(struct command *command, int64_t number) {
    char end[20], *digits = wire_digits_of((uint64_t)number, end + sizeof(end));

    wire_push(command, digits, (size_t)(end + sizeof(end) - digits));
}

/* Milliseconds, rounded up: the server must not keep less than was agreed. */
static int64_t wire_ms(int64_t time) {
    return (time + 999) / 1000;
}

/* Arguments that are always the same, written as they are sent. */
static void wire_push_ready(struct command *command, unsigned count, const char *text, size_t len) {
    command->count += count;
    command->end = wire_put(command->end, text, len);
}

#define READY(text) text, sizeof(text) - 1

/* --- Keys --------------------------------------------------------------------------------------------------------- */

/* What belongs to a lock shares its cluster slot: by the lock's own hash tag, by all of its name as one, or, where the
 * name has a brace that would end the tag early, by one that is made for that slot. The ends keep what belongs to "{a}"
 * apart from what belongs to "a". */
static size_t wire_beside(char to[BESIDE_SIZE], struct bytes key, const char *suffix) {
    bool tag = evl_hash_tag_is_in(key);
    char *end = to;

    if (!tag)
        *end++ = '{';
    if (!tag && memchr(key.data, '}', key.len)) {
        evl_hash_tag_make(end, key);
        end += HASH_TAG_SIZE;
        *end++ = '}';
    }
    end = wire_put(end, key.data, key.len);
    *end++ = tag ? ':' : '}';
    end = wire_put(end, suffix, strlen(suffix));
    return (size_t)(end - to);
}

/* Never inline, so that most commands need no room on the stack for it. */
__attribute__((noinline)) static void wire_push_beside(struct command *command, struct bytes key, const char *suffix) {
    char beside[BESIDE_SIZE];

    wire_push(command, beside, wire_beside(beside, key, suffix));
}

/* Whether this key is what lies in front of the suffix of another, without so many bytes at either end. */
static bool wire_is_beside(struct bytes other, const char *suffix, size_t front, size_t back) {
    size_t around = front + back + strlen(suffix);
    char beside[BESIDE_SIZE];
    struct bytes key;

    if (other.len <= around || other.len > sizeof(beside))
        return false;
    key = (struct bytes){(const char *)other.data + front, other.len - around};
    return evl_same_bytes(other, (struct bytes){beside, wire_beside(beside, key, suffix)});
}

/* The three forms that it can have. */
static bool wire_is_counter(struct bytes key) {
    return wire_is_beside(key, FENCE_SUFFIX, 1, 1) || wire_is_beside(key, FENCE_SUFFIX, 0, 1) ||
           wire_is_beside(key, FENCE_SUFFIX, HASH_TAG_SIZE + 2, 1);
}

/* Of one server, or of a master of a cluster. */
static bool wire_is_mark(struct bytes key) {
    static const char mark[] = "evlock:history", in_slot[] = "evlock:history:{";

    return (key.len == sizeof(mark) - 1 && memcmp(key.data, mark, key.len) == 0) ||
           (key.len >= sizeof(in_slot) && memcmp(key.data, in_slot, sizeof(in_slot) - 1) == 0);
}

bool evl_wire_is_own(struct bytes key) {
    return wire_is_counter(key) || wire_is_mark(key);
}

/* --- Arguments ---------------------------------------------------------------------------------------------------- */

/* As grant.lua takes it apart. */
size_t evl_wire_waiter(char to[WAITER_SIZE], struct bytes token, const struct waiter *waiter) {
    char *end = wire_put(to, waiter->channel, strlen(waiter->channel));

    if (waiter->master) {
        *end++ = '-';
        end = wire_put_number(end, waiter->master);
    }
    *end++ = ' ';
    end = wire_put(end, waiter->ticket, strlen(waiter->ticket));
    *end++ = ' ';
    end = wire_put_number(end, (uint64_t)wire_ms(waiter->ttl));
    end = wire_put(end, waiter->fenced ? " 1 " : " 0 ", 3);
    return (size_t)(wire_put(end, token.data, token.len) - to);
}

/* Never inline, as above. */
__attribute__((noinline)) static void wire_push_waiter(struct command *command, const struct subject *subject) {
    char text[WAITER_SIZE];

    if (subject->waiter.ticket)
        wire_push(command, text, evl_wire_waiter(text, subject->token, &subject->waiter));
    else if (subject->clock)
        wire_push(command, "", 0);
}

/* A tenth of a second, for several nodes: they seldom disagree about it. One that restarted, and so may know an old
 * number alone, does not count before that has passed. */
static void wire_push_grain(struct command *command, bool alone) {
    wire_push_number(command, alone ? 1 : 100000);
}

static void wire_push_px(struct command *command, int64_t ttl) {
    if (!ttl)
        return;
    wire_push_ready(command, 1, READY("$2\r\nPX\r\n"));
    wire_push_number(command, wire_ms(ttl));
}

static void wire_push_each(struct command *command, enum argument which, const struct subject *subject) {
    for (unsigned i = 0; i < subject->count; i++)
        wire_push_bytes(command, which == ARG_LOCKS ? subject->renewals[i].key : subject->renewals[i].token);
}

/* Of one size, so that a copy of one is no call. */
static void wire_push_word(struct command *command, enum argument word) {
    static const struct {
        char text[15];
        uint8_t len;
    } words[ARG_WORDS] = {
        [ARG_DELEX] = {READY("$5\r\nDELEX\r\n")}, [ARG_DELIFEQ] = {READY("$7\r\nDELIFEQ\r\n")},
        [ARG_GET] = {READY("$3\r\nGET\r\n")},     [ARG_IFEQ] = {READY("$4\r\nIFEQ\r\n")},
        [ARG_NX] = {READY("$2\r\nNX\r\n")},       [ARG_PTTL] = {READY("$4\r\nPTTL\r\n")},
        [ARG_SET] = {READY("$3\r\nSET\r\n")},     [ARG_WAIT] = {READY("$4\r\nWAIT\r\n")},
        [ARG_ZCARD] = {READY("$5\r\nZCARD\r\n")}, [ARG_ZRANK] = {READY("$5\r\nZRANK\r\n")},
    };

    memcpy(command->end, words[word].text, sizeof(words[word].text));
    command->end += words[word].len;
    command->count++;
}

static void wire_push_argument(struct command *command, enum argument which, const struct subject *subject) {
    switch (which) {
    case ARG_LOCK:
        wire_push_bytes(command, subject->key);
        break;
    case ARG_QUEUE:
        wire_push_beside(command, subject->key, ":queue");
        break;
    case ARG_COUNTER:
        wire_push_beside(command, subject->key, FENCE_SUFFIX);
        break;
    case ARG_LOCKS:
    case ARG_TOKENS:
        wire_push_each(command, which, subject);
        break;
    case ARG_TOKEN:
        wire_push_bytes(command, subject->token);
        break;
    case ARG_TTL:
        wire_push_number(command, wire_ms(subject->ttl));
        break;
    case ARG_PX_TTL:
        wire_push_px(command, subject->ttl);
        break;
    case ARG_FENCE:
        wire_push_number(command, subject->fence);
        break;
    case ARG_FENCE_TTL:
        wire_push_number(command, EVL_FENCE_TTL_MS);
        break;
    case ARG_GRAIN:
        wire_push_grain(command, subject->alone);
        break;
    case ARG_SPARE:
        if (subject->spare || subject->clock)
            wire_push_number(command, subject->spare);
        break;
    case ARG_WAITER:
        wire_push_waiter(command, subject);
        break;
    case ARG_CLOCK:
        if (subject->clock)
            wire_push_number(command, subject->clock);
        break;
    case ARG_SOUGHT:
        wire_push_bytes(command, subject->sought);
        break;
    case ARG_REPLICAS:
        wire_push_number(command, subject->replicas);
        break;
    case ARG_TIMEOUT:
        wire_push_number(command, wire_ms(subject->timeout));
        break;
    default:
        wire_push_word(command, which);
        break;
    }
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

#define EVALSHA "$7\r\nEVALSHA\r\n$40\r\n"
#define EVAL "$4\r\nEVAL\r\n"

/* Most have few keys, whose number is then one digit. */
static void wire_begin_script(struct command *command, const struct script *script, unsigned keys) {
    wire_push_ready(command, 2, READY(EVALSHA));
    command->end = wire_put(wire_put(command->end, script->sha, 40), "\r\n", 2);
    if (keys < 10) {
        wire_push_ready(command, 1, READY("$1\r\n0\r\n"));
        command->end[-3] = (char)('0' + keys);
    } else {
        wire_push_number(command, keys);
    }
}

void evl_command_write(struct command *command, const struct form *form, const struct subject *subject) {
    command->count = 0;
    command->end = command->text + HEAD_SIZE;
    command->script = form->script;
    if (form->script)
        wire_begin_script(command, form->script, form->keys == FORM_KEY_EACH ? subject->count : form->keys);
    for (const uint8_t *argument = form->arguments; *argument != ARG_END; argument++)
        wire_push_argument(command, *argument, subject);
}

struct bytes evl_command_text(struct command *command) {
    char *text = command->text + HEAD_SIZE;

    *--text = '\n';
    *--text = '\r';
    text = wire_digits_of(command->count, text);
    *--text = '*';
    assert(text >= command->text);
    return (struct bytes){text, (size_t)(command->end - text)};
}

char *evl_command_spelled(const struct command *command, size_t *ret_len) {
    const char *rest = command->text + HEAD_SIZE + strlen(EVALSHA) + 40 + 2;
    size_t rest_len = (size_t)(command->end - rest), len = strlen(command->script->text);
    char *text = evl_alloc(64 + len + rest_len), *end = text;

    if (!text)
        return NULL;
    *end++ = '*';
    end = wire_put(wire_put_number(end, command->count), "\r\n", 2);
    end = wire_put_length(wire_put(end, EVAL, strlen(EVAL)), len);
    end = wire_put(wire_put(end, command->script->text, len), "\r\n", 2);
    *ret_len = (size_t)(wire_put(end, rest, rest_len) - text);
    return text;
}

size_t evl_renewal_size(const struct renewal *renewal) {
    return renewal->key.len + renewal->token.len + 32; /* twice "$512", and the ends of four lines */
}
