/* Commands drawn at random; see phrases.h. Each is made from a pattern, whose words %x stand for a word of that kind.
 */
#include "phrases.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../lib/wire.h"
#include "sha1.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- Words -------------------------------------------------------------------------------------------------------- */

/* %s %z %f: keys that are mostly strings, sorted sets, a counter; %k: any. */
static const char *const keys[] = {"s1", "s2", "zset", "fence", "none"};
/* Neither here nor in `junk` is a small positive number, which might become a time to live. */
static const char *const values[] = {"v",
                                     "w",
                                     "tok1",
                                     "tok2",
                                     "1000000000000",
                                     "-3",
                                     "",
                                     "7.5",
                                     "a b\r\nc",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "nan"};
static const char *const tokens[] = {"tok1", "tok2"};
static const char *const members[] = {"m1", "m2", "m3", "m4", "tok1", ""};
static const char *const numbers[] = {"-9", "-3", "-2", "-1", "0", "1", "2", "3", "9"};
static const char *const scores[] = {
    "1", "1", "2", "-1.5", "0.1", "inf", "-inf", "+3", "1e3", "1e300", "-0", "0x10", "12345678901234567890"};
static const char *const channels[] = {"ch1", "ch2", "ch3"};
static const char *const fences[] = {"5", "1000000000000000", "9000000000000000", "x"};
static const char *const junk[] = {"0",
                                   "-1",
                                   "",
                                   "x",
                                   "1.5",
                                   " 1",
                                   "1 ",
                                   "+1",
                                   "01",
                                   "-0",
                                   "--1",
                                   "1e3",
                                   "NX",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "-9223372036854775809",
                                   "9223372036854775",
                                   "99999999999999999999"};

#define PICK(phrases, list) ((list)[pair_draw((phrases)->pair, COUNT(list))])

static uint64_t draw(const struct phrases *phrases, uint64_t below) {
    return pair_draw(phrases->pair, below);
}

static const char *keep(struct phrase *phrase, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *keep(struct phrase *phrase, const char *format, ...) {
    char *word = phrase->room + phrase->used;
    va_list args;
    va_start(args, format);
    phrase->used += (size_t)vsnprintf(word, sizeof(phrase->room) - phrase->used, format, args) + 1;
    va_end(args);
    return word;
}

/* A time to live in ms that no other is near. */
static int64_t fresh_ttl(struct phrases *phrases) {
    return (int64_t)((phrases->times++ * 77773 & 0xfffff) + 1) * 3 * PAIR_SLACK_MS;
}

static const char *key(const struct phrases *phrases, const char *usual) {
    return draw(phrases, 6) == 0 ? PICK(phrases, keys) : usual;
}

static const char *waiter(struct phrases *phrases, struct phrase *phrase) {
    const char *channel = PICK(phrases, channels), *token = PICK(phrases, tokens);
    return keep(phrase, "%s %d %" PRId64 " %d %s", channel, (int)draw(phrases, 3), fresh_ttl(phrases),
                (int)draw(phrases, 2), token);
}

static const char *word(struct phrases *phrases, struct phrase *phrase, char kind) {
    switch (kind) {
    case 's':
        return key(phrases, draw(phrases, 2) ? "s1" : "s2");
    case 'z':
        return key(phrases, "zset");
    case 'f':
        return key(phrases, "fence");
    case 'k':
        return PICK(phrases, keys);
    case 'v':
        return PICK(phrases, values);
    case 'o':
        return PICK(phrases, tokens);
    case 'm':
        return PICK(phrases, members);
    case 'n':
        return PICK(phrases, numbers);
    case 'd':
        return PICK(phrases, scores);
    case 'c':
        return PICK(phrases, channels);
    case 'F':
        return PICK(phrases, fences);
    case 'j':
        return PICK(phrases, junk);
    case 't':
        return keep(phrase, "%" PRId64, fresh_ttl(phrases));
    case 'L': /* too long for words about it */
        return keep(phrase, "%070d", 7);
    case 'w':
        return waiter(phrases, phrase);
    default: /* '0' */
        return draw(phrases, 2) ? "1" : "0";
    }
}

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

static const char *const plain[] = {
    "set %s %v",
    "set %s %o nx px %t",
    "set %k %v",
    "set %s %v px %j",
    "set %s %v px",
    "get %s",
    "get %k",
    "mget %k %k %k",
    "del %k",
    "del %s %z %s",
    "exists %k %k",
    "pttl %k",
    "pexpire %k %t",
    "pexpire %k %t %j",
    "pexpire %k %t nx",
    "pexpire %k %t gt",
    "pexpire %k %t lt",
    "pexpire %k %t xx gt",
    "pexpire %k %t nx lt",
    "pexpire %k %t gt lt",
    "pexpire %k %j",
    "zadd %z %d %m",
    "zadd %z %d %m %d %m",
    "zadd %z nx %d %m",
    "zadd %z %j %m",
    "zadd %z %d %m %j %m",
    "zrem %z %m %m",
    "zcard %z",
    "zrank %z %m",
    "zpopmin %z",
    "zpopmin %z %n",
    "zpopmin %z %j",
    "publish %c %v",
    "pubsub numsub %c %c",
    "pubsub numsub",
    "pubsub",
    "pubsub nothing",
    "select %n",
    "select %j",
    "select 0",
    "select 15",
    "select 16",
    "auth x",
    "auth default x",
    "auth nobody x",
    "auth a b c",
    "client",
    "client nothing",
    "client reply on",
    "client reply %v",
    "client kill id 9223372036854775807",
    "client kill id %j",
    "client kill x",
    "client kill id 1000000000 skipme %v",
    "client kill",
    "ping",
    "ping %v",
    "ping %v %v",
    "wait",
    "script",
    "script nothing",
    "script load",
    "nothing",
    "nothing %v %v",
    "nothing %L %v %L %v",
    "client|id",
    "get|x %v",
    "evalsha 0123456789012345678901234567890123456789 0",
    "evalsha short 0",
    "evalsha short x",
    "eval %v %j",
};
/* Not to be spoilt: what comes of that might wait, or tell what two servers do not have in common. */
static const char *const frail[] = {
    "wait 0 %j", "wait %j 1", "wait -1 -1", "wait 0 0", "client id %v", "info nothing", "time x",
};

static const char *const listening[] = {
    "subscribe %c", "subscribe %c %c", "subscribe %v", "ping",       "ping %v",
    "get %s",       "publish %c %v",   "subscribe",    "ping %v %v", "nothing",
};

/* Each has two keys and two arguments. */
static const char *const texts[] = {
    "return redis.call('get', KEYS[1])",
    "return redis.pcall('get', KEYS[1])",
    "return redis.call('set', KEYS[1], ARGV[1])",
    "return redis.call('set', KEYS[1], ARGV[1], 'nx')",
    "return redis.pcall('zadd', KEYS[1], 'nx', 1, ARGV[1], 2, ARGV[2])",
    "return redis.call('zcard', KEYS[1])",
    "return redis.call('zpopmin', KEYS[1], 9)",
    "return redis.call('zadd', KEYS[1], 'nx', 1.5, ARGV[1])",
    "return redis.call('set', KEYS[1], 12345678901)",
    "return redis.call('set', KEYS[1], 0.1)",
    "return redis.call('set', KEYS[1], 12345678901234567890)",
    "return redis.call('mget', KEYS[1], KEYS[2], 'absent')",
    "return redis.call('publish', 'ch1', ARGV[1])",
    "return redis.call('pubsub', 'numsub', 'ch1', 'ch2')",
    "return {redis.call('exists', KEYS[1]), redis.call('del', KEYS[2])}",
    "redis.call('select', 3); return redis.call('set', KEYS[1], 'db 3')",
    "redis.call('set', KEYS[1], ARGV[1], 'px', '600000000000') return redis.call('get', KEYS[1])",
    "local t = redis.call('time') return {#t, #t[1]}",
    "return {1, 2.9, -2.9, 'x', true, false, 4}",
    "return {1, nil, 3}",
    "return {{1, {2, {}}}, {ok = 'fine'}, {err = 'CODE words'}}",
    "return nil",
    "return true",
    "return false",
    "return 3.99",
    "return -0.5",
    "return 1e300",
    "return 2^53",
    "return {ok = 'a\\r\\nb'}",
    "return {err = 'X a\\r\\nb'}",
    "return {err = 'noword'}",
    "return {x = 1}",
    "return function() end",
    "return KEYS",
    "return ARGV",
    "return #KEYS + #ARGV",
    "return redis.status_reply('FINE')",
    "return redis.error_reply('MINE is this')",
    "return redis.error_reply('-MINE is this')",
    "return redis.error_reply('word')",
    "return redis.error_reply('ERR a ttl must be positive')",
    "return redis.error_reply(1)",
    "return redis.status_reply({})",
    "return redis.error_reply('')",
    "return redis.sha1hex(ARGV[1])",
    "return redis.sha1hex()",
    "return redis.sha1hex('abc')",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.call({})",
    "return redis.pcall('get', nil)",
    "return redis.call('get', true)",
    "return redis.call('nothing', 'x')",
    "return redis.pcall('nothing')",
    "return redis.call('get')",
    "return redis.pcall('client', 'nothing')",
    "return redis.call('client', 'id')",
    "return redis.call('subscribe', 'ch1')",
    "return redis.pcall('eval', 'return 1', 0)",
    "return redis.pcall('script', 'load', 'x')",
    "return redis.pcall('wait', 0, 0)",
    "return redis.pcall('auth', 'x')",
    "return redis.call('ping')",
    "\n\nreturn redis.call('zrank', KEYS[1], ARGV[1])",
    "local function f() return redis.call('zpopmin', KEYS[1]) end\nlocal x = f()\nreturn x",
    "local ok, e = pcall(redis.call, 'zcard', KEYS[1]) return ok and 'good' or e.err",
    "local ok, e = pcall(redis.call, 'zcard', KEYS[1]) return e",
    "return {pcall(error, 'x')}",
    "return {pcall(function(a) return a, 2 end, 1)}",
    "return -1e300",
    "error('thrown')",
    "error('thrown', 0)",
    "error({err = 'MY error'})",
    "error({err = 'MY error', x = 1})",
    "error()",
    "error(12)",
    "local x = nil; return x.y",
    "return 1 + {}",
    "return absent",
    "absent = 1",
    "return math.floor(2.5) .. string.rep('a', 3) .. table.concat({1, 2})",
    "return tostring(12345678901234567)",
    "return string.format('%.0f', 12345678901234567)",
    "return tonumber('0x10') + tonumber(' 7 ')",
    "return type(redis.call('get', 'absent'))",
    "return {type(redis.call('get', KEYS[1])), type(redis.pcall('zpopmin', KEYS[1])), type(KEYS[3])}",
    "return {redis.pcall('get', KEYS[1])}",
    "return unpack({1, 2})",
    "return select('#', 1, 2, 3)",
    "return _G == nil",
    "x y",
    "return (",
    "",
    "return 'a\\0b'",
    "return redis.call('set', KEYS[1], 'a\\0b')",
    "return {redis.call('get', KEYS[1]), #(redis.call('get', KEYS[1]) or '')}",
};

/* evlock's own, with their arguments; one without these is called with some. */
static const struct {
    const char *name, *arguments;
} own[] = {
    {"add", "1 %s %o %t"},
    {"adopt", "1 %s %o"},
    {"break", "1 %s %o"},
    {"break", "3 %s %z %f %o"},
    {"fenced", "2 %s %f %o %t %t 1"},
    {"fenced", "2 %s %f %o %t %t 1 5"},
    {"hand", "3 %s %z %f %o %w"},
    {"join", "3 %s %z %f %w %o %t %0"},
    {"list", "0 0"},
    {"look", "1 %s"},
    {"raise", "1 %f %F %t"},
    {"rearm", "1 %s %o %t"},
    {"release", "1 %s %o"},
    {"renew", "1 %s %o %t"},
    {"replace", "1 %s %o %t"},
    {"survey", "2 %s %z %w"},
    {"", "3 %s %z %f %o %t %t"},
};

/* --- Phrases ------------------------------------------------------------------------------------------------------ */

static void add_words(struct phrases *phrases, struct phrase *phrase, const char *pattern) {
    while (*pattern && phrase->argc < PHRASE_WORDS - 1) {
        int len = (int)strcspn(pattern, " ");
        const char *next = pattern[0] == '%' ? word(phrases, phrase, pattern[1]) : keep(phrase, "%.*s", len, pattern);
        phrase->argv[phrase->argc++] = next;
        pattern += len + (pattern[len] == ' ');
    }
}

static void begin(struct phrase *phrase) {
    phrase->argc = 0;
    phrase->used = 0;
    phrase->likeness = SAME;
}

/* Now and then, one word is another, or missing, or one too many. */
static void spoil(struct phrases *phrases, struct phrase *phrase, bool keep_places) {
    int at = (int)draw(phrases, (uint64_t)phrase->argc);
    switch (draw(phrases, 25) * (keep_places ? 2 : 1)) {
    case 0:
        phrase->argv[at] = at == 0 ? phrase->argv[at] : PICK(phrases, junk);
        break;
    case 1:
        phrase->argv[phrase->argc++] = PICK(phrases, values);
        break;
    case 3:
        if (phrase->argc > 1)
            phrase->argc--;
        break;
    case 5:
        if (at > 0)
            memmove(&phrase->argv[at], &phrase->argv[at + 1], (size_t)(--phrase->argc - at) * sizeof(phrase->argv[0]));
        break;
    default:
        break;
    }
}

static void settle_likeness(struct phrase *phrase) {
    bool all = phrase->argc == 1;
    if (strcasecmp(phrase->argv[0], "pttl") == 0 || strcasecmp(phrase->argv[0], "pexpiretime") == 0)
        phrase->likeness = TIMED;
    else if (all &&
             (strcasecmp(phrase->argv[0], "unsubscribe") == 0 || strcasecmp(phrase->argv[0], "punsubscribe") == 0))
        phrase->likeness = REORDERED; /* as Redis happens to keep them */
}

/* One of evlock's own scripts. */
static void call_own(struct phrases *phrases, struct phrase *phrase) {
    const struct script *script = &evl_scripts[draw(phrases, evl_script_count)];
    size_t i = 0;
    while (i < COUNT(own) - 1 && strcmp(own[i].name, script->name) != 0)
        i++;
    if (draw(phrases, 3) == 0) {
        add_words(phrases, phrase, "script load");
        phrase->argv[phrase->argc++] = script->text;
        return;
    }
    bool whole = draw(phrases, 2);
    phrase->argv[phrase->argc++] = whole ? "eval" : "EvalSha";
    phrase->argv[phrase->argc++] = whole ? script->text : script->sha;
    add_words(phrases, phrase, own[i].arguments);
    spoil(phrases, phrase, true);
    phrase->likeness = TIMED;
}

static void call_text(struct phrases *phrases, struct phrase *phrase) {
    const char *text = PICK(phrases, texts);
    bool shouted = draw(phrases, 4) == 0;
    uint64_t kind = draw(phrases, 8);
    char sha[41];
    sha1_hex(text, strlen(text), sha);
    for (int i = 0; i < 40 && shouted; i++)
        sha[i] = (char)toupper((unsigned char)sha[i]);
    if (kind == 0) {
        add_words(phrases, phrase, "script load");
        phrase->argv[phrase->argc++] = text;
    } else {
        phrase->argv[phrase->argc++] = kind < 4 ? "evalsha" : "eval";
        phrase->argv[phrase->argc++] = kind < 4 ? keep(phrase, "%s", sha) : text;
        add_words(phrases, phrase, draw(phrases, 8) ? "2 %k %k %v %v" : "%n %k %k");
    }
    spoil(phrases, phrase, false);
}

void phrase_draw(struct phrases *phrases, struct phrase *phrase) {
    uint64_t kind = draw(phrases, 100);
    begin(phrase);
    if (kind < 15) {
        call_own(phrases, phrase);
        return;
    }
    if (kind < 35) {
        call_text(phrases, phrase);
        return;
    }
    if (kind < 37) {
        add_words(phrases, phrase, PICK(phrases, frail));
        return;
    }
    add_words(phrases, phrase, PICK(phrases, plain));
    spoil(phrases, phrase, false);
    settle_likeness(phrase);
}

void phrase_draw_listening(struct phrases *phrases, struct phrase *phrase) {
    begin(phrase);
    add_words(phrases, phrase, PICK(phrases, listening));
    settle_likeness(phrase);
}
